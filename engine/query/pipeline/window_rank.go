package pipeline

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// rank is $rank, $denseRank and $documentNumber.
type rank struct {
	op string
	by *expr.By
}

func parseRank(_ *parser, op string, arg bson.RawValue, by *expr.By, _ *window) (windowFunction, error) {
	if arg.Type != bson.TypeEmbeddedDocument || value.Count(arg.Value) != 0 {
		return nil, code(5371603).Errorf("%s must be specified with '{}' as the value", op)
	}
	if op != "$documentNumber" && len(by.Paths()) != 1 {
		return nil, code(5371602).Errorf("%s must be specified with a top level sortBy expression with exactly one element", op)
	}
	return &rank{op, by}, nil
}

func (f *rank) compute(p *partition) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(p.rows))
	n := 0
	for i, r := range p.rows {
		tie := i > 0 && f.by.Compare(p.c, p.rows[i-1].key, r.key) == 0
		switch {
		case f.op == "$documentNumber" || f.op == "$rank" && !tie:
			n = i + 1
		case !tie:
			n++
		}
		out[i] = value.Int64(int64(n))
		if n <= math.MaxInt32 {
			out[i] = value.Int32(int32(n))
		}
	}
	return out, nil
}

// shift is $shift: the value of a document that stands before or behind.
type shift struct {
	output  *expr.Expr
	by      int64
	missing bson.RawValue
}

func parseShift(p *parser, op string, arg bson.RawValue, _ *expr.By, _ *window) (windowFunction, error) {
	v, err := fields(op, arg, "output", "by", "default")
	if err != nil {
		return nil, err
	}
	f := &shift{missing: value.Null}
	for i, name := range []string{"output", "by"} {
		if v[i].Type == 0 {
			return nil, mongoerr.FailedToParse.Errorf("%s requires an '%s' expression", op, name)
		}
	}
	ok := false
	if f.by, ok = whole(v[1]); !ok || f.by != int64(int32(f.by)) {
		return nil, mongoerr.FailedToParse.Errorf("'%s:by' field must be an integer, but found %s", op, value.Brief(v[1], 100))
	}
	if v[2].Type != 0 {
		e, err := p.expression(v[2])
		if err != nil {
			return nil, err
		}
		if f.missing, ok = e.Constant(); !ok {
			return nil, mongoerr.FailedToParse.Errorf("'%s:default' expression must yield a constant value", op)
		}
	}
	f.output, err = p.expression(v[0])
	return f, err
}

func (f *shift) compute(p *partition) ([]bson.RawValue, error) {
	values, err := p.values(f.output)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(values))
	for i := range values {
		out[i] = f.missing
		if j := int64(i) + f.by; j >= 0 && j < int64(len(values)) {
			out[i] = clone(values[j])
		}
	}
	return out, nil
}

// movingAverage is $expMovingAvg: each number moves the average by a part of its distance.
type movingAverage struct {
	input *expr.Expr
	alpha float64
}

func parseMovingAverage(p *parser, op string, arg bson.RawValue, _ *expr.By, _ *window) (windowFunction, error) {
	v, err := fields(op, arg, "input", "N", "alpha")
	if err != nil {
		return nil, err
	}
	f := &movingAverage{}
	switch {
	case v[0].Type == 0:
		return nil, mongoerr.FailedToParse.Errorf("%s requires an 'input'", op)
	case (v[1].Type == 0) == (v[2].Type == 0):
		return nil, mongoerr.FailedToParse.Errorf("%s sub object must have exactly two fields: an 'input' field, and either an 'N' field or an 'alpha' field",
			op)
	case v[1].Type != 0:
		n, ok := whole(v[1])
		if !ok || n <= 0 {
			return nil, mongoerr.FailedToParse.Errorf("'N' field must be an integer greater than zero, but found %s",
				value.Brief(v[1], 100))
		}
		f.alpha = 2 / (float64(n) + 1)
	case !value.IsNumber(v[2].Type):
		return nil, mongoerr.FailedToParse.Errorf("'alpha' must be a number")
	default:
		if f.alpha = value.AsDouble(v[2]); !(f.alpha > 0 && f.alpha < 1) {
			return nil, mongoerr.FailedToParse.Errorf("'alpha' must be between 0 and 1 (exclusive), found alpha: %v", f.alpha)
		}
	}
	f.input, err = p.expression(v[0])
	return f, err
}

func (f *movingAverage) compute(p *partition) ([]bson.RawValue, error) {
	values, err := p.values(f.input)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(values))
	average, begun := 0.0, false
	for i, v := range values {
		out[i] = value.Null
		if value.IsNumber(v.Type) {
			x := value.AsDouble(v)
			if begun {
				x = x*f.alpha + average*(1-f.alpha)
			}
			average, begun = x, true
		}
		if begun {
			out[i] = value.Double(average)
		}
	}
	return out, nil
}

// covariance is $covariancePop and $covarianceSamp, over pairs that are both numbers.
type covariance struct {
	x, y   *expr.Expr
	sample bool
	w      window
}

func parseCovariance(p *parser, op string, arg bson.RawValue, _ *expr.By, w *window) (windowFunction, error) {
	if arg.Type != bson.TypeArray || value.Count(arg.Value) != 2 {
		return nil, mongoerr.FailedToParse.Errorf("%s must have exactly two argument expressions", op)
	}
	f := &covariance{sample: op == "$covarianceSamp", w: *w}
	var err error
	if f.x, err = p.expression(value.At(arg.Value, 0)); err != nil {
		return nil, err
	}
	f.y, err = p.expression(value.At(arg.Value, 1))
	return f, err
}

func (f *covariance) compute(p *partition) ([]bson.RawValue, error) {
	xs, err := p.values(f.x)
	if err != nil {
		return nil, err
	}
	ys, err := p.values(f.y)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(xs))
	for i := range out {
		lo, hi, err := f.w.span(p, i)
		if err != nil {
			return nil, err
		}
		n, mx, my, c := 0.0, 0.0, 0.0, 0.0
		for j := lo; j < hi; j++ {
			if !value.IsNumber(xs[j].Type) || !value.IsNumber(ys[j].Type) {
				continue
			}
			x, y := value.AsDouble(xs[j]), value.AsDouble(ys[j])
			n++
			dx := x - mx
			mx += dx / n
			my += (y - my) / n
			c += dx * (y - my)
		}
		if err := p.tick(0); err != nil {
			return nil, err
		}
		d := n
		if f.sample {
			d--
		}
		if out[i] = value.Null; d > 0 {
			out[i] = value.Double(c / d)
		}
	}
	return out, nil
}
