package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// mul multiplies a number; what is missing becomes a zero of the factor's type.
type mul struct{ by, zero bson.RawValue }

func parseMul(_ *parser, path string, arg bson.RawValue) (modifier, error) {
	if !value.IsNumber(arg.Type) {
		return nil, mongoerr.TypeMismatch.Errorf("Cannot multiply with non-numeric argument: {%s: %s}", path, value.Brief(arg, 200))
	}
	m := mul{by: arg}
	switch arg.Type {
	case bson.TypeInt32:
		m.zero = value.Int32(0)
	case bson.TypeInt64:
		m.zero = value.Int64(0)
	case bson.TypeDouble:
		m.zero = value.Double(0)
	default:
		m.zero = value.MustParse(`NumberDecimal("0")`)
	}
	return m, nil
}

func (m mul) modify(c *context, path string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type == 0 {
		return m.zero, nil
	}
	return c.arithmetic("$mul", value.Multiply, path, old, m.by)
}
