package update

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// addToSet appends those values to an array that it does not have.
type addToSet []bson.RawValue

func parseAddToSet(p *parser, _ string, arg bson.RawValue) (modifier, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return addToSet{arg}, nil
	}
	it := value.Elements(arg.Value)
	if !it.Next() || string(it.Name()) != "$each" {
		return addToSet{arg}, nil
	}
	each := it.Value()
	if each.Type != bson.TypeArray {
		return nil, mongoerr.TypeMismatch.Errorf("The argument to $each in $addToSet must be an array but it was of type: %s", value.TypeName(each.Type))
	}
	if it.Next() {
		return nil, mongoerr.BadValue.Errorf("Found unexpected fields after $each in $addToSet: %s", value.Brief(arg, 200))
	}
	var m addToSet
	seen := newMembers(p.opts.Compare, nil)
	for _, v := range list(each) {
		if !seen.has(v) {
			seen.add(v)
			m = append(m, v)
		}
	}
	return m, nil
}

func (m addToSet) modify(c *context, path string, old bson.RawValue) (bson.RawValue, error) {
	switch old.Type {
	case 0:
		return arrayOf(m), nil
	case bson.TypeArray:
	default:
		return old, mongoerr.BadValue.Errorf("Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", lastName(path), value.TypeName(old.Type))
	}
	has := newMembers(c.update.order, list(old))
	a := growArray(nil, old.Value)
	before := a.n
	for _, v := range m {
		if !has.has(v) {
			a.add(v)
		}
	}
	if a.n == before {
		return old, nil
	}
	return a.value(), nil
}

// members are values that others are looked up among: by hash if they are many and the order is the usual one, else one by one.
type members struct {
	order  Order
	values []bson.RawValue
	hashed map[uint64][]int // the values of a hash; nil while there are few
}

// membersFew is up to how many values a scan is quicker than hashing.
const membersFew = 16

func newMembers(order Order, values []bson.RawValue) *members {
	m := &members{order: order}
	for _, v := range values {
		m.add(v)
	}
	return m
}

func (m *members) add(v bson.RawValue) {
	m.values = append(m.values, v)
	switch {
	case m.hashed != nil:
		m.hash(len(m.values) - 1)
	case len(m.values) > membersFew && m.order == nil:
		m.hashed = map[uint64][]int{}
		for i := range m.values {
			m.hash(i)
		}
	}
}

func (m *members) hash(i int) {
	h := value.Hash(0, m.values[i])
	m.hashed[h] = append(m.hashed[h], i)
}

func (m *members) has(v bson.RawValue) bool {
	if m.hashed == nil {
		return slices.ContainsFunc(m.values, func(o bson.RawValue) bool { return m.order.compare(o, v) == 0 })
	}
	return slices.ContainsFunc(m.hashed[value.Hash(0, v)], func(i int) bool { return m.order.compare(m.values[i], v) == 0 })
}
