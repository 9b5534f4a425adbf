package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// slope is $derivative, the slope from the first to the last document of a window, and $integral, the area under them by the
// trapezoidal rule. Dates are measured in a unit.
type slope struct {
	op    string
	input *expr.Expr
	unit  float64 // milliseconds; 0: the order is by numbers
	w     window
}

func parseSlope(p *parser, op string, arg bson.RawValue, by *expr.By, w *window) (windowFunction, error) {
	v, err := fields(op, arg, "input", "unit")
	if err != nil {
		return nil, err
	}
	f := &slope{op: op, w: *w}
	switch {
	case v[0].Type == 0:
		return nil, mongoerr.FailedToParse.Errorf("%s requires an 'input' expression", op)
	case len(by.Paths()) != 1:
		return nil, mongoerr.FailedToParse.Errorf("%s requires a sortBy of one field", op)
	case op == "$derivative" && w.from.open && w.to.open && !w.ranged:
		return nil, mongoerr.FailedToParse.Errorf("%s requires explicit window bounds", op)
	}
	if v[1].Type != 0 {
		u, err := expr.ParseUnit(op, v[1])
		if err != nil {
			return nil, err
		}
		if u.Millis() == 0 {
			return nil, code(5490704).Errorf("unit must be 'week' or smaller")
		}
		f.unit = float64(u.Millis())
	}
	f.input, err = p.expression(v[0])
	return f, err
}

// place is where a document lies on the axis, dates in milliseconds: distances are brought to the unit, so that no digits are lost.
func (f *slope) place(r windowDoc) (float64, error) {
	switch k := r.key[0]; {
	case k.Type == bson.TypeDateTime && f.unit != 0:
		return float64(k.DateTime()), nil
	case k.Type == bson.TypeDateTime:
		return 0, code(5624900).Errorf("%s with a date sortBy needs a 'unit'", f.op)
	case value.IsNumber(k.Type) && f.unit == 0:
		return value.AsDouble(k), nil
	case f.unit != 0:
		return 0, code(5624901).Errorf("%s with a 'unit' expects the sortBy field to be a date, but it was %s",
			f.op, value.TypeName(k.Type))
	default:
		return 0, code(5624902).Errorf("%s expects the sortBy field to be a number, but it was %s", f.op, value.TypeName(k.Type))
	}
}

func (f *slope) distance(from, to float64) float64 {
	if f.unit == 0 {
		return to - from
	}
	return (to - from) / f.unit
}

func (f *slope) compute(p *partition) ([]bson.RawValue, error) {
	ys, err := p.values(f.input)
	if err != nil {
		return nil, err
	}
	xs := make([]float64, len(ys))
	for i, r := range p.rows {
		if xs[i], err = f.place(r); err != nil {
			return nil, err
		}
	}
	out := make([]bson.RawValue, len(ys))
	for i := range out {
		lo, hi, err := f.w.span(p, i)
		if err != nil {
			return nil, err
		}
		out[i] = value.Null
		if f.op == "$integral" {
			if out[i], err = f.area(xs, ys, lo, hi); err != nil {
				return nil, err
			}
			if err := p.tick(0); err != nil {
				return nil, err
			}
			continue
		}
		if hi-lo < 2 || xs[lo] == xs[hi-1] || value.IsNullish(ys[lo]) || value.IsNullish(ys[hi-1]) {
			continue
		}
		if !value.IsNumber(ys[lo].Type) || !value.IsNumber(ys[hi-1].Type) {
			return nil, mongoerr.TypeMismatch.Errorf("%s's input must be numbers", f.op)
		}
		out[i] = value.Double((value.AsDouble(ys[hi-1]) - value.AsDouble(ys[lo])) / f.distance(xs[lo], xs[hi-1]))
	}
	return out, nil
}

func (f *slope) area(xs []float64, ys []bson.RawValue, lo, hi int) (bson.RawValue, error) {
	sum, numbers, last := 0.0, 0, -1
	for j := lo; j < hi; j++ {
		switch {
		case value.IsNullish(ys[j]):
			continue
		case !value.IsNumber(ys[j].Type):
			return value.Missing, mongoerr.TypeMismatch.Errorf("%s's input must be numbers, not %s",
				f.op, value.TypeName(ys[j].Type))
		}
		if last >= 0 {
			sum += (value.AsDouble(ys[last]) + value.AsDouble(ys[j])) / 2 * f.distance(xs[last], xs[j])
		}
		numbers, last = numbers+1, j
	}
	if numbers == 0 {
		return value.Null, nil
	}
	return value.Double(sum), nil
}

// locf is $locf: null and missing are filled by the last value before.
type locf struct{ input *expr.Expr }

func parseLocf(p *parser, _ string, arg bson.RawValue, _ *expr.By, _ *window) (windowFunction, error) {
	e, err := p.expression(arg)
	return &locf{e}, err
}

func (f *locf) compute(p *partition) ([]bson.RawValue, error) {
	values, err := p.values(f.input)
	if err != nil {
		return nil, err
	}
	last := value.Null
	for i, v := range values {
		if !value.IsNullish(v) {
			last = clone(v)
		}
		values[i] = last
	}
	return values, nil
}

// linearFill is $linearFill: null and missing between two numbers are filled on the line between them.
type linearFill struct {
	input *expr.Expr
	slope
}

func parseLinearFill(p *parser, op string, arg bson.RawValue, by *expr.By, _ *window) (windowFunction, error) {
	if len(by.Paths()) != 1 {
		return nil, code(605001).Errorf("%s must be specified with a top level sortBy expression with exactly one element", op)
	}
	e, err := p.expression(arg)
	return &linearFill{e, slope{op: op}}, err
}

func (f *linearFill) compute(p *partition) ([]bson.RawValue, error) {
	values, err := p.values(f.input)
	if err != nil {
		return nil, err
	}
	xs := make([]float64, len(values))
	for i, r := range p.rows {
		f.unit = 0
		if r.key[0].Type == bson.TypeDateTime {
			f.unit = 1
		}
		if xs[i], err = f.place(r); err != nil {
			return nil, err
		}
		if i > 0 && xs[i] == xs[i-1] {
			return nil, code(6050106).Errorf("there can be no repeated values in the sort field of %s", f.op)
		}
	}
	last := -1
	for i, v := range values {
		switch {
		case value.IsNullish(v):
			values[i] = value.Null
			continue
		case !value.IsNumber(v.Type):
			return nil, mongoerr.TypeMismatch.Errorf("value to be filled must be numeric or nullish, not %s",
				value.TypeName(v.Type))
		}
		if last >= 0 {
			y0, y1 := value.AsDouble(values[last]), value.AsDouble(v)
			for j := last + 1; j < i; j++ {
				values[j] = value.Double(y0 + (y1-y0)*(xs[j]-xs[last])/(xs[i]-xs[last]))
			}
		}
		values[i], last = clone(v), i
	}
	return values, nil
}
