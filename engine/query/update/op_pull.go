package update

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// pull takes the elements off an array that its condition holds of.
//
//	{$pull: {a: {$gt: 5}}}, {$pull: {a: /x/}}   the element, as a field's value, matches
//	{$pull: {a: {b: 1}}}                        the element is a document that matches the filter
//	{$pull: {a: 5}}, {$pull: {a: [1]}}          the element is equal
type pull struct {
	holds func(c *context, element bson.RawValue) (bool, error)
}

func parsePull(p *parser, _ string, arg bson.RawValue) (modifier, error) {
	operators := false
	if arg.Type == bson.TypeEmbeddedDocument {
		it := value.Elements(arg.Value)
		operators = it.Next() && isDollar(it.Name()) && !slices.Contains([]string{"$and", "$or", "$nor", "$expr", "$where",
			"$comment", "$ref", "$id", "$db"}, string(it.Name()))
	}
	switch {
	case operators || arg.Type == bson.TypeRegex:
		test, err := p.compile(finish(appendElement([]byte{0, 0, 0, 0}, "", arg), 0))
		if err != nil {
			return nil, err
		}
		return pull{func(_ *context, v bson.RawValue) (bool, error) {
			return test(finish(appendElement([]byte{0, 0, 0, 0}, "", v), 0))
		}}, nil
	case arg.Type == bson.TypeEmbeddedDocument:
		test, err := p.compile(arg.Value)
		if err != nil {
			return nil, err
		}
		return pull{func(_ *context, v bson.RawValue) (bool, error) {
			if v.Type != bson.TypeEmbeddedDocument {
				return false, nil
			}
			return test(v.Value)
		}}, nil
	}
	return pull{func(c *context, v bson.RawValue) (bool, error) { return c.update.order.compare(v, arg) == 0, nil }}, nil
}

func (m pull) modify(c *context, _ string, old bson.RawValue) (bson.RawValue, error) {
	switch old.Type {
	case 0:
		return old, nil
	case bson.TypeArray:
	default:
		return old, mongoerr.BadValue.Errorf("Cannot apply $pull to a non-array value")
	}
	kept := newArray(nil)
	all := true
	for it := value.Elements(old.Value); it.Next(); {
		holds, err := m.holds(c, it.Value())
		if err != nil {
			return old, err
		}
		if holds {
			all = false
		} else {
			kept.add(it.Value())
		}
	}
	if all {
		return old, nil
	}
	return kept.value(), nil
}
