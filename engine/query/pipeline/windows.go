package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
)

// windowRow is one row of the table: a function of $setWindowFields that is no accumulator. Accumulators are window functions, too.
type windowRow struct {
	name string
	// parse reads the operand. by is the order of the documents, w the window.
	parse func(p *parser, op string, arg bson.RawValue, by *expr.By, w *window) (windowFunction, error)
	// window functions without it take none.
	window bool
	// sorted functions need an order.
	sorted bool
}

// windows is sorted by name.
var windows = []windowRow{
	{name: "$covariancePop", parse: parseCovariance, window: true},
	{name: "$covarianceSamp", parse: parseCovariance, window: true},
	{name: "$denseRank", parse: parseRank, sorted: true},
	{name: "$derivative", parse: parseSlope, window: true, sorted: true},
	{name: "$documentNumber", parse: parseRank, sorted: true},
	{name: "$expMovingAvg", parse: parseMovingAverage, sorted: true},
	{name: "$integral", parse: parseSlope, window: true, sorted: true},
	{name: "$linearFill", parse: parseLinearFill, sorted: true},
	{name: "$locf", parse: parseLocf},
	{name: "$rank", parse: parseRank, sorted: true},
	{name: "$shift", parse: parseShift, sorted: true},
}

// partition is documents that a window function sees together, in order.
type partition struct {
	c       *expr.Context
	rows    []windowDoc
	budget  *budget
	spilled *spill.Buffer // the documents, if they do not stand in the rows
	reader  *spill.BufferReader
}

// windowDoc is a document with what it is ordered by.
type windowDoc struct {
	key []bson.RawValue
	doc bson.Raw
}

// doc is document i. It dies with the next call.
func (p *partition) doc(i int) (bson.Raw, error) {
	if p.spilled == nil {
		return p.rows[i].doc, nil
	}
	return p.reader.At(i)
}

// windowFunction computes the values of a field of all documents of a partition.
type windowFunction interface {
	compute(p *partition) ([]bson.RawValue, error)
}

// window is the documents around one that a function is about: by their positions, or by the distance of what they are ordered by.
type window struct {
	ranged   bool
	unit     *expr.Unit
	from, to bound
}

// bound is an end of a window.
type bound struct {
	open    bool // unbounded
	current bool
	n       bson.RawValue // the distance
}

// wholePartition is the window if none is given.
var wholePartition = window{from: bound{open: true}, to: bound{open: true}}

// windowFunction reads one field of the output: {$op: arg, window: {...}}.
func (p *parser) windowFunction(name string, v bson.RawValue, by *expr.By) (windowFunction, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.FailedToParse.Errorf("the field '%s' must be an object", name)
	}
	var op string
	var arg bson.RawValue
	w := wholePartition
	given := false
	for it := value.Elements(v.Value); it.Next(); {
		switch s := string(it.Name()); {
		case s == "window":
			given = true
			if err := w.parse(it.Value(), by); err != nil {
				return nil, err
			}
		case strings.HasPrefix(s, "$") && op == "":
			op, arg = s, it.Value()
		default:
			return nil, mongoerr.FailedToParse.Errorf("a window function takes one operator and a 'window', but '%s' of the field '%s' is neither",
				s, name)
		}
	}
	if op == "" {
		return nil, mongoerr.FailedToParse.Errorf("expected a $-prefixed window function for the field '%s'", name)
	}
	i, ok := slices.BinarySearchFunc(p.windows, op, func(r windowRow, op string) int { return strings.Compare(r.name, op) })
	if ok {
		row := p.windows[i]
		switch {
		case given && !row.window:
			return nil, code(5371601).Errorf("%s does not accept a 'window' field", op)
		case row.sorted && by == nil:
			return nil, code(5371602).Errorf("%s must be specified with a top level sortBy expression", op)
		}
		return row.parse(p, op, arg, by, &w)
	}
	a, err := p.accumulator(name, op, arg)
	if mongoerr.Is(err, 15952) {
		return nil, mongoerr.FailedToParse.Errorf("unrecognized window function, %s", op)
	}
	return &windowed{a, w}, err
}

// parse reads {documents: [l, u]} or {range: [l, u], unit: "day"}.
func (w *window) parse(v bson.RawValue, by *expr.By) error {
	f, err := fields("window", v, "documents", "range", "unit")
	if err != nil {
		return err
	}
	list := f[0]
	switch {
	case f[0].Type != 0 && f[1].Type != 0:
		return mongoerr.FailedToParse.Errorf("'window' field can only specify either document-based or range-based bounds")
	case f[0].Type == 0 && f[1].Type == 0:
		if f[2].Type != 0 {
			return mongoerr.FailedToParse.Errorf("'unit' needs a range")
		}
		return nil
	case f[1].Type != 0:
		list, w.ranged = f[1], true
		if by == nil || len(by.Paths()) != 1 || by.Falls(0) {
			return code(5339902).Errorf("range-based bounds require a sortBy of one ascending field")
		}
		if f[2].Type != 0 {
			u, err := expr.ParseUnit("window", f[2])
			if err != nil {
				return err
			}
			w.unit = &u
		}
	case f[2].Type != 0:
		return mongoerr.FailedToParse.Errorf("window bounds can only specify 'unit' with range-based bounds")
	case by == nil:
		return code(5339901).Errorf("document-based bounds require a sortBy")
	}
	if list.Type != bson.TypeArray || value.Count(list.Value) != 2 {
		return mongoerr.FailedToParse.Errorf("window bounds must be a 2-element array: %s", value.Brief(list, 100))
	}
	if w.from, err = w.bound(value.At(list.Value, 0)); err != nil {
		return err
	}
	if w.to, err = w.bound(value.At(list.Value, 1)); err != nil {
		return err
	}
	if !w.from.open && !w.to.open && value.Compare(w.from.distance(), w.to.distance()) > 0 {
		return code(5339900).Errorf("lower bound must not exceed upper bound: %s", value.Brief(list, 100))
	}
	return nil
}

func (b bound) distance() bson.RawValue {
	if b.current {
		return value.Int32(0)
	}
	return b.n
}

func (w *window) bound(v bson.RawValue) (bound, error) {
	switch s := string(value.StringBytes(v)); {
	case s == "unbounded":
		return bound{open: true}, nil
	case s == "current":
		return bound{current: true}, nil
	case !value.IsNumber(v.Type):
		return bound{}, mongoerr.FailedToParse.Errorf("window bounds must be 'unbounded', 'current', or a number, not %s",
			value.Brief(v, 100))
	}
	if _, ok := value.AsInt64(v); !ok && (!w.ranged || w.unit != nil) {
		return bound{}, mongoerr.FailedToParse.Errorf("numeric document-based bounds, and bounds with a unit, must be an integer, not %s",
			value.Brief(v, 100))
	}
	return bound{n: v}, nil
}

// span is the documents [lo, hi) that the window of document i holds.
func (w *window) span(p *partition, i int) (lo, hi int, err error) {
	n := len(p.rows)
	if !w.ranged {
		return w.position(w.from, i, 0, n), w.position(w.to, i, -1, n) + 1, nil
	}
	if lo, err = w.search(p, w.from, i, false); err != nil {
		return 0, 0, err
	}
	hi, err = w.search(p, w.to, i, true)
	return lo, max(lo, hi), err
}

// position is where a bound of a window by positions lies. open is what -1 stands for: the start (0) or the end (-1).
func (w *window) position(b bound, i, open, n int) int {
	switch {
	case b.open && open == 0:
		return 0
	case b.open:
		return n - 1
	case b.current:
		return i
	}
	d := int(min(max(value.TruncateInt64(b.n), -int64(n)-1), int64(n)+1))
	if open == 0 {
		return min(max(i+d, 0), n)
	}
	return min(max(i+d, -1), n-1)
}

// search is the first document at or behind a bound, or with after the first one behind it.
func (w *window) search(p *partition, b bound, i int, after bool) (int, error) {
	if b.open {
		if after {
			return len(p.rows), nil
		}
		return 0, nil
	}
	limit := p.rows[i].key[0]
	switch {
	case limit.Type == bson.TypeDateTime && w.unit != nil:
		if !b.current {
			n, _ := value.AsInt64(b.n)
			ms, ok := w.unit.Add(limit.DateTime(), n)
			if !ok {
				return 0, code(5429401).Errorf("a window's bound is no date")
			}
			limit = value.Date(ms)
		}
	case value.IsNumber(limit.Type) && w.unit == nil:
		if !b.current {
			sum, ok := value.Add(limit, b.n)
			if !ok {
				sum = value.Double(value.AsDouble(limit) + value.AsDouble(b.n))
			}
			limit = sum
		}
	case w.unit != nil:
		return 0, code(5429513).Errorf("invalid range: expected the sortBy field to be a date, but it was %s",
			value.TypeName(limit.Type))
	default:
		return 0, code(5429414).Errorf("invalid range: expected the sortBy field to be a number, but it was %s",
			value.TypeName(limit.Type))
	}
	at, _ := slices.BinarySearchFunc(p.rows, limit, func(r windowDoc, limit bson.RawValue) int {
		d := compare(p.c, r.key[0], limit)
		if d == 0 && after {
			return -1
		}
		return d
	})
	return at, nil
}

// windowed is an accumulator over a window. While the window only grows at its end, the accumulator goes on; else it begins anew.
type windowed struct {
	*accumulation
	w window
}

func (f *windowed) compute(p *partition) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(p.rows))
	var args []bson.RawValue
	var state accumulator
	first, next := -1, 0
	var v bson.RawValue
	fresh := false
	for i := range p.rows {
		lo, hi, err := f.w.span(p, i)
		if err != nil {
			return nil, err
		}
		if state == nil || lo != first || hi < next {
			if state, err = f.start(p.c, value.Null); err != nil {
				return nil, err
			}
			first, next, fresh = lo, lo, true
		}
		for ; next < hi; next++ {
			fresh = true
			doc, err := p.doc(next)
			if err != nil {
				return nil, err
			}
			if err := f.feed(p.c, state, doc, &args, p.budget); err != nil {
				return nil, err
			}
			if err := p.tick(next); err != nil {
				return nil, err
			}
		}
		if fresh {
			r, err := state.result(p.c)
			if err != nil {
				return nil, err
			}
			v, fresh = clone(r), false
			if err := p.budget.take(len(v.Value)); err != nil {
				return nil, err
			}
		}
		out[i] = v
	}
	return out, nil
}

// tick asks now and then whether to go on.
func (p *partition) tick(n int) error {
	if n%tickEvery == 0 && p.c.Tick != nil {
		return p.c.Tick()
	}
	return nil
}

// values are an expression's values for all rows.
func (p *partition) values(e *expr.Expr) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(p.rows))
	for i := range p.rows {
		doc, err := p.doc(i)
		if err != nil {
			return nil, err
		}
		v, err := e.Eval(p.c, doc)
		if err != nil {
			return nil, err
		}
		if p.spilled != nil {
			v = clone(v)
			if err := p.budget.take(len(v.Value) + windowDocSize); err != nil {
				return nil, err
			}
		}
		out[i] = v
		if err := p.tick(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}
