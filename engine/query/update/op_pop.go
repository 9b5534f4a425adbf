package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// pop takes the first or the last element off an array.
type pop struct{ first bool }

func parsePop(_ *parser, path string, arg bson.RawValue) (modifier, error) {
	if !value.IsNumber(arg.Type) {
		return nil, mongoerr.FailedToParse.Errorf("Expected a number in: %s: %s", path, value.Brief(arg, 200))
	}
	n, ok := value.AsInt64(arg)
	if !ok || n != 1 && n != -1 {
		return nil, mongoerr.FailedToParse.Errorf("$pop expects 1 or -1, found: %s", value.Brief(arg, 200))
	}
	return pop{first: n < 0}, nil
}

func (m pop) modify(_ *context, path string, old bson.RawValue) (bson.RawValue, error) {
	switch old.Type {
	case 0:
		return old, nil
	case bson.TypeArray:
	default:
		return old, mongoerr.TypeMismatch.Errorf("Path '%s' contains an element of non-array type '%s'", path, value.TypeName(old.Type))
	}
	values := list(old)
	switch {
	case len(values) == 0:
		return old, nil
	case m.first:
		values = values[1:]
	default:
		values = values[:len(values)-1]
	}
	return arrayOf(values), nil
}
