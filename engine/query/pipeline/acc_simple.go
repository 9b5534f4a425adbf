package pipeline

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// sum is $sum.
type sum struct{ expr.Total }

func (a *sum) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	a.Add(args[0])
	return 0, nil
}

func (a *sum) result(*expr.Context) (bson.RawValue, error) { return a.Sum(), nil }
func (a *sum) save(dst []byte) []byte                      { return a.Save(dst) }
func (a *sum) load(b []byte)                               { a.Load(b) }

// average is $avg.
type average struct{ expr.Total }

func (a *average) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	a.Add(args[0])
	return 0, nil
}

func (a *average) result(*expr.Context) (bson.RawValue, error) { return a.Average(), nil }
func (a *average) save(dst []byte) []byte                      { return a.Save(dst) }
func (a *average) load(b []byte)                               { a.Load(b) }

// parseCountAccumulator reads {$count: {}}.
func parseCountAccumulator(_ *parser, _ string, arg bson.RawValue) (*accumulation, error) {
	if arg.Type != bson.TypeEmbeddedDocument || value.Count(arg.Value) != 0 {
		return nil, code(15952).Errorf("$count takes no arguments, i.e. $count:{}")
	}
	return &accumulation{nil, func() accumulator { return new(counter) }}, nil
}

// counter is $count.
type counter int64

func (a *counter) add(*expr.Context, []bson.RawValue) (int, error) {
	*a++
	return 0, nil
}

func (a *counter) result(*expr.Context) (bson.RawValue, error) { return number(int64(*a)), nil }

func (a *counter) save(dst []byte) []byte { return binary.AppendUvarint(dst, uint64(*a)) }

func (a *counter) load(b []byte) {
	n, _ := binary.Uvarint(b)
	*a = counter(n)
}

// extreme is $min and $max; null and missing do not count.
type extreme struct {
	sign int
	best bson.RawValue
}

func (a *extreme) add(c *expr.Context, args []bson.RawValue) (int, error) {
	v := args[0]
	if value.IsNullish(v) || a.best.Type != 0 && a.sign*compare(c, v, a.best) <= 0 {
		return 0, nil
	}
	old := len(a.best.Value)
	a.best.Type = v.Type
	a.best.Value = append(a.best.Value[:0], v.Value...)
	return len(v.Value) - old, nil
}

func (a *extreme) result(*expr.Context) (bson.RawValue, error) { return a.best, nil }

func (a *extreme) save(dst []byte) []byte { return appendValue(dst, a.best) }
func (a *extreme) load(b []byte)          { a.best, _ = cutValue(b) }

// first is $first.
type first struct {
	seen bool
	v    bson.RawValue
}

func (a *first) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	if a.seen {
		return 0, nil
	}
	a.seen, a.v = true, clone(args[0])
	return len(a.v.Value), nil
}

func (a *first) result(*expr.Context) (bson.RawValue, error) { return a.v, nil }

func (a *first) save(dst []byte) []byte {
	if !a.seen {
		return dst
	}
	return appendValue(dst, a.v)
}

func (a *first) load(b []byte) {
	if a.seen = len(b) > 0; a.seen {
		a.v, _ = cutValue(b)
	}
}

// last is $last.
type last struct{ v bson.RawValue }

func (a *last) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	old := len(a.v.Value)
	a.v.Type, a.v.Value = args[0].Type, append(a.v.Value[:0], args[0].Value...)
	return len(a.v.Value) - old, nil
}

func (a *last) result(*expr.Context) (bson.RawValue, error) { return a.v, nil }

func (a *last) save(dst []byte) []byte { return appendValue(dst, a.v) }
func (a *last) load(b []byte)          { a.v, _ = cutValue(b) }

// push is $push; missing is left out.
type push struct{ list builder }

func (a *push) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	if args[0].Type == 0 {
		return 0, nil
	}
	if a.list.b == nil {
		a.list.reset()
	}
	old := cap(a.list.b)
	a.list.add(args[0])
	return cap(a.list.b) - old, nil
}

func (a *push) result(*expr.Context) (bson.RawValue, error) {
	b := builder{b: append([]byte(nil), a.list.b...)}
	if a.list.b == nil {
		b.reset()
	}
	return value.Array(b.raw()), nil
}

func (a *push) save(dst []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(a.list.n)), a.list.b...)
}

func (a *push) load(b []byte) {
	n, size := binary.Uvarint(b)
	a.list.n = int(n)
	if size < len(b) {
		a.list.b = b[size:len(b):len(b)]
	}
}

// distinct is $addToSet.
type distinct struct{ groups *groups }

func parseAddToSet(p *parser, _ string, arg bson.RawValue) (*accumulation, error) {
	e, err := p.expression(arg)
	o := p.opts
	return &accumulation{[]*expr.Expr{e}, func() accumulator { return &distinct{newGroups(o)} }}, err
}

func (a *distinct) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	if args[0].Type == 0 {
		return 0, nil
	}
	if _, born := a.groups.find(args[0]); born {
		return len(args[0].Value) + groupSize, nil
	}
	return 0, nil
}

func (a *distinct) result(*expr.Context) (bson.RawValue, error) { return arrayOf(a.groups.keys), nil }

func (a *distinct) save(dst []byte) []byte { return appendValues(dst, a.groups.keys) }

func (a *distinct) load(b []byte) {
	for len(b) > 0 {
		var v bson.RawValue
		v, b = cutValue(b)
		a.groups.find(v)
	}
}

// spread is $stdDevPop and $stdDevSamp.
type spread struct {
	expr.Spread
	sample bool
}

func (a *spread) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	a.Add(args[0])
	return 0, nil
}

func (a *spread) result(*expr.Context) (bson.RawValue, error) { return a.Deviation(a.sample), nil }
func (a *spread) save(dst []byte) []byte                      { return a.Save(dst) }
func (a *spread) load(b []byte)                               { a.Load(b) }

// merged is $mergeObjects.
type merged struct{ expr.Merger }

func (a *merged) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	old := a.Size()
	err := a.Add(clone(args[0]))
	return a.Size() - old, err
}

func (a *merged) result(*expr.Context) (bson.RawValue, error) { return a.Value() }

func (a *merged) save(dst []byte) []byte { return a.Save(dst) }
func (a *merged) load(b []byte)          { a.Load(b) }

// percentiles is $percentile and $median.
type percentiles struct {
	expr.Percentiles
	parts  []float64
	single bool
}

func (a *percentiles) add(_ *expr.Context, args []bson.RawValue) (int, error) {
	old := a.Size()
	a.Add(args[0])
	return a.Size() - old, nil
}

func (a *percentiles) result(*expr.Context) (bson.RawValue, error) {
	list := a.At(a.parts)
	if a.single {
		return list[0], nil
	}
	return arrayOf(list), nil
}

func (a *percentiles) save(dst []byte) []byte { return a.Save(dst) }
func (a *percentiles) load(b []byte)          { a.Load(b) }

func parsePercentile(p *parser, op string, arg bson.RawValue) (*accumulation, error) {
	v, err := fields(op, arg, "input", "p", "method")
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"input", "p", "method"} {
		if v[i].Type == 0 {
			return nil, missing(op, name)
		}
	}
	list, err := p.expression(v[1])
	if err != nil {
		return nil, err
	}
	parts, err := expr.ReadPercentiles(list)
	if err != nil {
		return nil, err
	}
	if err := expr.CheckMethod(op, v[2]); err != nil {
		return nil, err
	}
	e, err := p.expression(v[0])
	return &accumulation{[]*expr.Expr{e}, func() accumulator { return &percentiles{parts: parts} }}, err
}

func parseMedian(p *parser, op string, arg bson.RawValue) (*accumulation, error) {
	v, err := fields(op, arg, "input", "method")
	if err != nil {
		return nil, err
	}
	if v[0].Type == 0 {
		return nil, missing(op, "input")
	}
	if err := expr.CheckMethod(op, v[1]); err != nil {
		return nil, err
	}
	e, err := p.expression(v[0])
	return &accumulation{[]*expr.Expr{e}, func() accumulator { return &percentiles{parts: []float64{0.5}, single: true} }}, err
}
