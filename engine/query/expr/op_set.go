package expr

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Sets are arrays whose order and repetitions do not count. Results have neither: they are sorted, but for $setDifference, which
// keeps the order of its first operand.

// set is the elements of an array, sorted and without repetitions.
func (c *Context) set(v bson.RawValue) []bson.RawValue {
	list := elements(v)
	slices.SortStableFunc(list, c.compare)
	return slices.CompactFunc(list, func(a, b bson.RawValue) bool { return c.compare(a, b) == 0 })
}

func (c *Context) in(set []bson.RawValue, v bson.RawValue) bool {
	_, ok := slices.BinarySearchFunc(set, v, c.compare)
	return ok
}

func callSetUnion(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	b := newArray()
	for _, v := range args {
		switch {
		case nullish(v):
			return value.Null, nil
		case !isArray(v):
			return value.Missing, code(17043).Errorf("all operands of $setUnion must be arrays. One argument is of type: %s",
				typeName(v))
		}
		for it := value.Elements(v.Value); it.Next(); {
			b.add(it.Value())
		}
	}
	all, err := b.done()
	if err != nil {
		return all, err
	}
	return arrayOf(c.set(all))
}

func callSetIntersection(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	var common []bson.RawValue
	for i, v := range args {
		switch {
		case nullish(v):
			return value.Null, nil
		case !isArray(v):
			return value.Missing, code(17047).Errorf("all operands of $setIntersection must be arrays. One argument is of type: %s",
				typeName(v))
		}
		set := c.set(v)
		if i > 0 {
			set = slices.DeleteFunc(set, func(v bson.RawValue) bool { return !c.in(common, v) })
		}
		common = set
	}
	return arrayOf(common)
}

func callSetDifference(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch a, b := args[0], args[1]; {
	case nullish(a, b):
		return value.Null, nil
	case !isArray(a):
		return value.Missing, code(17048).Errorf("both operands of $setDifference must be arrays. First argument is of type: %s",
			typeName(a))
	case !isArray(b):
		return value.Missing, code(17049).Errorf("both operands of $setDifference must be arrays. Second argument is of type: %s",
			typeName(b))
	default:
		without, have := c.set(b), c.set(a)
		given := make([]bool, len(have))
		r := newArray()
		for it := value.Elements(a.Value); it.Next(); {
			i, _ := slices.BinarySearchFunc(have, it.Value(), c.compare)
			if !given[i] && !c.in(without, it.Value()) {
				given[i] = true
				r.add(it.Value())
			}
		}
		return r.done()
	}
}

func callSetEquals(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	var first []bson.RawValue
	equal := true
	for i, v := range args {
		if !isArray(v) {
			return value.Missing, code(17044).Errorf("all operands of $setEquals must be arrays. %d-th argument is of type: %s",
				i+1, typeName(v))
		}
		set := c.set(v)
		if i == 0 {
			first = set
			continue
		}
		equal = equal && slices.EqualFunc(first, set, func(a, b bson.RawValue) bool { return c.compare(a, b) == 0 })
	}
	return boolean(equal), nil
}

func callSetIsSubset(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch a, b := args[0], args[1]; {
	case !isArray(a):
		return value.Missing, code(17046).Errorf("both operands of $setIsSubset must be arrays. First argument is of type: %s",
			typeName(a))
	case !isArray(b):
		return value.Missing, code(17042).Errorf("both operands of $setIsSubset must be arrays. Second argument is of type: %s",
			typeName(b))
	default:
		set := c.set(b)
		for it := value.Elements(a.Value); it.Next(); {
			if !c.in(set, it.Value()) {
				return no, nil
			}
		}
		return yes, nil
	}
}

func callAllElementsTrue(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	if !isArray(args[0]) {
		return value.Missing, code(17040).Errorf("$allElementsTrue's argument must be an array, but is %s", typeName(args[0]))
	}
	for it := value.Elements(args[0].Value); it.Next(); {
		if !value.Truth(it.Value()) {
			return no, nil
		}
	}
	return yes, nil
}

func callAnyElementTrue(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	if !isArray(args[0]) {
		return value.Missing, code(17041).Errorf("$anyElementTrue's argument must be an array, but is %s", typeName(args[0]))
	}
	for it := value.Elements(args[0].Value); it.Next(); {
		if value.Truth(it.Value()) {
			return yes, nil
		}
	}
	return no, nil
}
