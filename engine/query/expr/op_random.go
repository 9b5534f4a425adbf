package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// random is a number in [0, 1).
type random struct{}

func (random) eval(c *Context) (bson.RawValue, error) {
	f, err := c.random()
	return value.Double(f), err
}

func (c *Context) random() (float64, error) {
	if c.Rand == nil {
		return 0, mongoerr.IllegalOperation.Errorf("random numbers are not allowed here")
	}
	return float64(c.Rand()>>11) / (1 << 53), nil
}

func parseRand(p *parser, arg bson.RawValue) (node, error) {
	if arg.Type == bson.TypeArray && value.Count(arg.Value) == 0 || arg.Type == bson.TypeEmbeddedDocument && value.Count(arg.Value) == 0 {
		return random{}, nil
	}
	return nil, code(3040501).Errorf("$rand does not currently accept arguments")
}

// sampled is true with a probability.
type sampled struct{ rate float64 }

func (n sampled) eval(c *Context) (bson.RawValue, error) {
	f, err := c.random()
	return boolean(f < n.rate), err
}

// parseSampleRate reads the operand of $sampleRate, which stands in $match only.
func parseSampleRate(_ *parser, arg bson.RawValue) (node, error) {
	if !isNumber(arg) {
		return nil, mongoerr.BadValue.Errorf("$sampleRate needs a number between 0 and 1, not %s", typeName(arg))
	}
	rate := value.AsDouble(arg)
	if !(rate >= 0 && rate <= 1) {
		return nil, mongoerr.BadValue.Errorf("$sampleRate needs a number between 0 and 1, not %s", value.Brief(arg, 100))
	}
	return sampled{rate}, nil
}
