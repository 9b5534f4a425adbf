package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// inc adds to a number; what is missing becomes the number that would be added.
type inc struct{ by bson.RawValue }

func parseInc(_ *parser, path string, arg bson.RawValue) (modifier, error) {
	if !value.IsNumber(arg.Type) {
		return nil, mongoerr.TypeMismatch.Errorf("Cannot increment with non-numeric argument: {%s: %s}", path, value.Brief(arg, 200))
	}
	return inc{arg}, nil
}

func (m inc) modify(c *context, path string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type == 0 {
		return m.by, nil
	}
	return c.arithmetic("$inc", value.Add, path, old, m.by)
}

// arithmetic applies f to a number that must be one.
func (c *context) arithmetic(name string, f func(a, b bson.RawValue) (bson.RawValue, bool), path string, old,
	arg bson.RawValue) (bson.RawValue, error) {
	if !value.IsNumber(old.Type) {
		return value.Missing, mongoerr.TypeMismatch.Errorf("Cannot apply %s to a value of non-numeric type. %s has the field '%s' of non-numeric type %s",
			name, c.id(), lastName(path), value.TypeName(old.Type))
	}
	r, ok := f(old, arg)
	if !ok {
		return value.Missing, mongoerr.BadValue.Errorf("Failed to apply %s operations to current value (%s) for document %s", name, value.Text(old), c.id())
	}
	return r, nil
}
