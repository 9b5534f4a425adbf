package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// bit applies operations on bits in turn; what is missing is an int32 of 0. The result is an int64 if any operand is.
type bit []bitOperation

type bitOperation struct {
	name string // and, or, xor
	arg  bson.RawValue
}

func parseBit(_ *parser, path string, arg bson.RawValue) (modifier, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.BadValue.Errorf("The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}",
			value.TypeName(arg.Type))
	}
	var m bit
	for it := value.Elements(arg.Value); it.Next(); {
		name, v := string(it.Name()), it.Value()
		if name != "and" && name != "or" && name != "xor" {
			return nil, mongoerr.BadValue.Errorf("The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s: %s}",
				name, name, value.Brief(v, 200))
		}
		if v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64 {
			return nil, mongoerr.BadValue.Errorf("The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s: %s}",
				value.TypeName(v.Type), name, value.Brief(v, 200))
		}
		m = append(m, bitOperation{name, v})
	}
	if m == nil {
		return nil, mongoerr.BadValue.Errorf("You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return m, nil
}

func (m bit) modify(c *context, path string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type == 0 {
		old = value.Int32(0)
	}
	if old.Type != bson.TypeInt32 && old.Type != bson.TypeInt64 {
		return value.Missing, mongoerr.BadValue.Errorf("Cannot apply $bit to a value of non-integral type. %s has the field %s of non-integer type %s",
			c.id(), lastName(path), value.TypeName(old.Type))
	}
	n, _ := value.AsInt64(old)
	wide := old.Type == bson.TypeInt64
	for _, op := range m {
		x, _ := value.AsInt64(op.arg)
		wide = wide || op.arg.Type == bson.TypeInt64
		switch op.name {
		case "and":
			n &= x
		case "or":
			n |= x
		case "xor":
			n ^= x
		}
	}
	if wide {
		return value.Int64(n), nil
	}
	return value.Int32(int32(n)), nil
}
