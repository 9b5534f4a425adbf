package update

import "go.mongodb.org/mongo-driver/v2/bson"

// bound is $min and $max: the argument takes the old value's place if it lies on the right side of it in the order of all values.
type bound struct {
	v    bson.RawValue
	side int // of the argument, as compare gives it
}

func parseMin(_ *parser, _ string, arg bson.RawValue) (modifier, error) { return bound{arg, -1}, nil }

func (m bound) modify(c *context, _ string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type == 0 || c.update.order.compare(m.v, old)*m.side > 0 {
		return m.v, nil
	}
	return old, nil
}
