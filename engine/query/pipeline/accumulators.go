package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// accumulatorRow is one row of the table.
type accumulatorRow struct {
	name string
	// plain accumulators take one expression and are made by it alone.
	plain func() accumulator
	// parse reads the operand of the others.
	parse func(p *parser, op string, arg bson.RawValue) (*accumulation, error)
	// refused accumulators exist in MongoDB; why is part of the answer.
	refused string
}

// accumulators is sorted by name.
var accumulators = []accumulatorRow{
	{name: "$accumulator", refused: "there is no JavaScript"},
	{name: "$addToSet", parse: parseAddToSet},
	{name: "$avg", plain: func() accumulator { return &average{} }},
	{name: "$bottom", parse: parseTop},
	{name: "$bottomN", parse: parseTop},
	{name: "$concatArrays", plain: func() accumulator { return &concat{} }},
	{name: "$count", parse: parseCountAccumulator},
	{name: "$first", plain: func() accumulator { return &first{} }},
	{name: "$firstN", parse: parseN},
	{name: "$last", plain: func() accumulator { return &last{} }},
	{name: "$lastN", parse: parseN},
	{name: "$max", plain: func() accumulator { return &extreme{sign: 1} }},
	{name: "$maxN", parse: parseN},
	{name: "$median", parse: parseMedian},
	{name: "$mergeObjects", plain: func() accumulator { return &merged{} }},
	{name: "$min", plain: func() accumulator { return &extreme{sign: -1} }},
	{name: "$minN", parse: parseN},
	{name: "$percentile", parse: parsePercentile},
	{name: "$push", plain: func() accumulator { return &push{} }},
	{name: "$setUnion", parse: parseSetUnion},
	{name: "$stdDevPop", plain: func() accumulator { return &spread{} }},
	{name: "$stdDevSamp", plain: func() accumulator { return &spread{sample: true} }},
	{name: "$sum", plain: func() accumulator { return &sum{} }},
	{name: "$top", parse: parseTop},
	{name: "$topN", parse: parseTop},
}

// accumulator is what one field of one group has come to.
type accumulator interface {
	// add takes the values of the accumulation's expressions; grew is about how many bytes more are held. What is kept is copied.
	add(c *expr.Context, args []bson.RawValue) (grew int, err error)
	// result may be asked for more than once, and may be missing, which is null in a document.
	result(c *expr.Context) (bson.RawValue, error)
	// save appends all of that as bytes; load makes a new accumulator go on from there. It may keep b.
	save(dst []byte) []byte
	load(b []byte)
}

// beginner is an accumulator that depends on the key of its group.
type beginner interface {
	begin(c *expr.Context, id bson.RawValue) error
}

// accumulation is an accumulator as it is written: the expressions that feed it, and how it begins.
type accumulation struct {
	exprs []*expr.Expr
	make  func() accumulator
}

// start is the accumulator of a group that begins; id is its key.
func (n *accumulation) start(c *expr.Context, id bson.RawValue) (accumulator, error) {
	a := n.make()
	if b, ok := a.(beginner); ok {
		return a, b.begin(c, id)
	}
	return a, nil
}

// feed evaluates the expressions for doc and adds their values to a. args is memory to use again.
func (n *accumulation) feed(c *expr.Context, a accumulator, doc bson.Raw, args *[]bson.RawValue, b *budget) error {
	list := (*args)[:0]
	for _, e := range n.exprs {
		v, err := e.Eval(c, doc)
		if err != nil {
			return err
		}
		list = append(list, v)
	}
	*args = list
	grew, err := a.add(c, list)
	if err != nil || grew == 0 {
		return err
	}
	return b.take(grew)
}

// accumulation reads {name: {$op: arg}}.
func (p *parser) accumulation(name string, v bson.RawValue) (*accumulation, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, code(40234).Errorf("the field '%s' must be an accumulator object", name)
	}
	it := value.Elements(v.Value)
	if !it.Next() || value.Count(v.Value) != 1 {
		return nil, code(40238).Errorf("the field '%s' must specify one accumulator", name)
	}
	return p.accumulator(name, string(it.Name()), it.Value())
}

// accumulator reads {op: arg}; name is the field's.
func (p *parser) accumulator(name, op string, arg bson.RawValue) (*accumulation, error) {
	i, ok := slices.BinarySearchFunc(p.accumulators, op, func(r accumulatorRow, op string) int { return strings.Compare(r.name, op) })
	switch {
	case !ok && !strings.HasPrefix(op, "$"):
		return nil, code(40234).Errorf("the field '%s' must be an accumulator object", name)
	case !ok:
		return nil, code(15952).Errorf("unknown group operator '%s'", op)
	}
	row := p.accumulators[i]
	switch {
	case row.refused != "":
		return nil, mongoerr.NotImplemented.Errorf("the accumulator %s is not implemented: %s", op, row.refused)
	case row.parse != nil:
		return row.parse(p, op, arg)
	case arg.Type == bson.TypeArray && value.Count(arg.Value) != 1:
		return nil, code(40237).Errorf("the %s accumulator is a unary operator", op)
	}
	if arg.Type == bson.TypeArray {
		arg = value.At(arg.Value, 0)
	}
	e, err := p.expression(arg)
	return &accumulation{[]*expr.Expr{e}, row.plain}, err
}
