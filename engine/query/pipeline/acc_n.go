package pipeline

import (
	"encoding/binary"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// ranked keeps the n best of what it is given: $top, $bottom, their forms with n, $minN and $maxN order by a key; $firstN and
// $lastN by the order of coming.
type ranked struct {
	op     string
	n      int
	size   *expr.Expr // what n is, if it depends on the group
	single bool
	drop   bool // nullish values do not count
	tail   bool // the last n are wanted
	order  func(c *expr.Context, a, b []bson.RawValue) int
	rows   []rankedRow
}

type rankedRow struct {
	key []bson.RawValue
	v   bson.RawValue
}

// size reads the operand n: a number, or an expression over the key of the group.
func (p *parser) size(op string, v bson.RawValue) (n int, of *expr.Expr, err error) {
	e, err := p.expression(v)
	if err != nil {
		return 0, nil, err
	}
	c, ok := e.Constant()
	if !ok {
		return 0, e, nil
	}
	n, err = expr.CheckN(op, c)
	return n, nil, err
}

// begin finds out n.
func (a *ranked) begin(c *expr.Context, id bson.RawValue) error {
	if a.size == nil {
		return nil
	}
	doc := bson.Raw{5, 0, 0, 0, 0}
	if id.Type == bson.TypeEmbeddedDocument {
		doc = bson.Raw(id.Value)
	}
	v, err := a.size.Eval(c, doc)
	if err == nil {
		a.n, err = expr.CheckN(a.op, v)
	}
	return err
}

// parseN reads {$firstN: {n: 2, input: e}} and its kin.
func parseN(p *parser, op string, arg bson.RawValue) (*accumulation, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(5787900).Errorf("specification must be an object; found %s: %s", op, value.Brief(arg, 100))
	}
	var n, input bson.RawValue
	for it := value.Elements(arg.Value); it.Next(); {
		switch string(it.Name()) {
		case "n":
			n = it.Value()
		case "input":
			input = it.Value()
		default:
			return nil, code(5787901).Errorf("unknown argument to %s: %s", op, it.Name())
		}
	}
	if n.Type == 0 {
		return nil, code(5787906).Errorf("missing value for 'n' in %s", op)
	}
	if input.Type == 0 {
		return nil, code(5787907).Errorf("missing value for 'input' in %s", op)
	}
	count, size, err := p.size(op, n)
	if err != nil {
		return nil, err
	}
	e, err := p.expression(input)
	if err != nil {
		return nil, err
	}
	sign := 0
	switch op {
	case "$minN":
		sign = 1
	case "$maxN":
		sign = -1
	}
	return &accumulation{[]*expr.Expr{e}, func() accumulator {
		r := &ranked{op: op, n: count, size: size, drop: sign != 0, tail: op == "$lastN"}
		if sign != 0 {
			r.order = func(c *expr.Context, a, b []bson.RawValue) int { return sign * compare(c, a[0], b[0]) }
		}
		return r
	}}, nil
}

// parseTop reads {$topN: {n: 2, sortBy: {a: 1}, output: e}} and its kin.
func parseTop(p *parser, op string, arg bson.RawValue) (*accumulation, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(5788001).Errorf("specification must be an object; found %s: %s", op, value.Brief(arg, 100))
	}
	single := !strings.HasSuffix(op, "N")
	var n, by, output bson.RawValue
	for it := value.Elements(arg.Value); it.Next(); {
		switch name := string(it.Name()); {
		case name == "n" && !single:
			n = it.Value()
		case name == "sortBy":
			by = it.Value()
		case name == "output":
			output = it.Value()
		default:
			return nil, code(5788002).Errorf("unknown argument to %s: %s", op, name)
		}
	}
	switch {
	case n.Type == 0 && !single:
		return nil, code(5788003).Errorf("missing value for 'n' in %s", op)
	case output.Type == 0:
		return nil, code(5788004).Errorf("missing value for 'output' in %s", op)
	case by.Type != bson.TypeEmbeddedDocument:
		return nil, code(5788005).Errorf("'sortBy' in %s must be an object", op)
	}
	count := 1
	var size *expr.Expr
	if !single {
		var err error
		if count, size, err = p.size(op, n); err != nil {
			return nil, err
		}
	}
	order, err := expr.ParseBy(op, by)
	if err != nil {
		return nil, err
	}
	e, err := p.expression(output)
	if err != nil {
		return nil, err
	}
	root, err := p.expression(value.String("$$ROOT"))
	return &accumulation{[]*expr.Expr{e, root}, func() accumulator {
		return &topped{ranked{op: op, n: count, size: size, single: single, tail: strings.HasPrefix(op, "$bottom"), order: order.Compare}, order}
	}}, err
}

// topped is a ranked whose key is in the document.
type topped struct {
	ranked
	by expr.By
}

func (a *topped) add(c *expr.Context, args []bson.RawValue) (int, error) {
	return a.insert(c, a.by.Key(c, args[1]), args[0])
}

func (a *ranked) add(c *expr.Context, args []bson.RawValue) (int, error) {
	if a.drop && value.IsNullish(args[0]) {
		return 0, nil
	}
	return a.insert(c, args[:1], args[0])
}

func (a *ranked) insert(c *expr.Context, key []bson.RawValue, v bson.RawValue) (int, error) {
	at := len(a.rows)
	if a.order != nil {
		at, _ = slices.BinarySearchFunc(a.rows, key, func(r rankedRow, key []bson.RawValue) int {
			if d := a.order(c, r.key, key); d != 0 {
				return d
			}
			return -1 // behind its equals
		})
	}
	full := len(a.rows) >= a.n
	if full && (!a.tail && at == len(a.rows) || a.tail && at == 0) {
		return 0, nil
	}
	row := rankedRow{v: clone(v)}
	grew := len(v.Value) + groupSize
	if a.order != nil {
		for _, k := range key {
			row.key = append(row.key, clone(k))
			grew += len(k.Value)
		}
	}
	a.rows = slices.Insert(a.rows, at, row)
	if full && a.tail {
		a.rows = slices.Delete(a.rows, 0, 1)
	} else if full {
		a.rows = a.rows[:a.n]
	}
	if full {
		return 0, nil
	}
	return grew, nil
}

func (a *ranked) result(*expr.Context) (bson.RawValue, error) {
	if a.single {
		if len(a.rows) == 0 {
			return value.Null, nil
		}
		return a.rows[0].v, nil
	}
	b := newDocument()
	for _, r := range a.rows {
		b.add(r.v)
	}
	return value.Array(b.raw()), nil
}

// save appends, for each row, how many values its key has, these, and its value.
func (a *ranked) save(dst []byte) []byte {
	for _, r := range a.rows {
		dst = binary.AppendUvarint(dst, uint64(len(r.key)))
		dst = appendValue(appendValues(dst, r.key), r.v)
	}
	return dst
}

func (a *ranked) load(b []byte) {
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		b = b[size:]
		var r rankedRow
		for range n {
			var k bson.RawValue
			k, b = cutValue(b)
			r.key = append(r.key, k)
		}
		r.v, b = cutValue(b)
		a.rows = append(a.rows, r)
	}
}
