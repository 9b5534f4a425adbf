package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// The accumulators as expressions: over the elements of an array that is the only operand, or over the operands themselves.

func over(args []bson.RawValue) []bson.RawValue {
	if len(args) == 1 && isArray(args[0]) {
		return elements(args[0])
	}
	return args
}

func callSum(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	var t Total
	for _, v := range over(args) {
		t.Add(v)
	}
	return t.Sum(), nil
}

func callAvg(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	var t Total
	for _, v := range over(args) {
		t.Add(v)
	}
	return t.Average(), nil
}

func callMin(c *Context, args []bson.RawValue) (bson.RawValue, error) { return best(c, args, -1) }

func callMax(c *Context, args []bson.RawValue) (bson.RawValue, error) { return best(c, args, 1) }

func best(c *Context, args []bson.RawValue, sign int) (bson.RawValue, error) {
	best := value.Null
	for _, v := range over(args) {
		if !nullish(v) && (best.Type == bson.TypeNull || sign*c.compare(v, best) > 0) {
			best = v
		}
	}
	return best, nil
}

func callStdDevPop(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return deviation(args, false)
}

func callStdDevSamp(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return deviation(args, true)
}

func deviation(args []bson.RawValue, sample bool) (bson.RawValue, error) {
	var s Spread
	for _, v := range over(args) {
		s.Add(v)
	}
	return s.Deviation(sample), nil
}

func parsePercentile(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$percentile", arg, 7436200, 40415, 40414, []string{"input", "p", "method"}, nil)
	if err != nil {
		return nil, err
	}
	list, err := p.parse(raw[1])
	if err != nil {
		return nil, err
	}
	parts, err := ReadPercentiles(p.finish(list))
	if err != nil {
		return nil, err
	}
	if err := CheckMethod("$percentile", raw[2]); err != nil {
		return nil, err
	}
	input, err := p.parse(raw[0])
	if err != nil {
		return nil, err
	}
	return p.call("$percentile", func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		var q Percentiles
		for _, v := range over(args) {
			q.Add(v)
		}
		return arrayOf(q.At(parts))
	}, input), nil
}

func parseMedian(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$median", arg, 7436100, 40415, 40414, []string{"input", "method"}, nil)
	if err != nil {
		return nil, err
	}
	if err := CheckMethod("$median", raw[1]); err != nil {
		return nil, err
	}
	input, err := p.parse(raw[0])
	if err != nil {
		return nil, err
	}
	return p.call("$median", func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		var q Percentiles
		for _, v := range over(args) {
			q.Add(v)
		}
		return q.At([]float64{0.5})[0], nil
	}, input), nil
}
