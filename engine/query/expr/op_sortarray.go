package expr

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// By is an order of values: of the values themselves, or of fields in them.
type By struct {
	Whole  int // ±1: the value itself is compared
	fields []byField
}

type byField struct {
	names      []string
	descending bool
}

// ParseBy reads {a: 1, b: -1}, 1 or -1.
func ParseBy(op string, v bson.RawValue) (By, error) {
	if isNumber(v) {
		if n, ok := value.AsInt64(v); ok && (n == 1 || n == -1) {
			return By{Whole: int(n)}, nil
		}
		return By{}, code(2942505).Errorf("the sortBy of %s must be 1, -1 or a document of fields, not %s", op, value.Brief(v, 100))
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return By{}, code(2942507).Errorf("the sortBy of %s must be a document or a number, not %s", op, typeName(v))
	}
	var by By
	for it := value.Elements(v.Value); it.Next(); {
		names, err := splitPath(string(it.Name()))
		if err != nil {
			return by, err
		}
		n, ok := int64(0), false
		if isNumber(it.Value()) {
			n, ok = value.AsInt64(it.Value())
		}
		if !ok || n != 1 && n != -1 {
			return by, mongoerr.LocationSortOrder.Errorf("$sort key ordering must be 1 (for ascending) or -1 (for descending) in %s",
				op)
		}
		by.fields = append(by.fields, byField{names, n < 0})
	}
	if by.fields == nil {
		return by, code(15976).Errorf("the sortBy of %s must have at least one sort key", op)
	}
	return by, nil
}

// Paths are the fields that the order looks at.
func (by By) Paths() []string {
	var paths []string
	for _, f := range by.fields {
		paths = append(paths, strings.Join(f.names, "."))
	}
	return paths
}

// Key is what v is ordered by. An array counts by its least element where the order ascends, and by its greatest where it
// descends.
func (by By) Key(c *Context, v bson.RawValue) []bson.RawValue {
	if by.Whole != 0 {
		return []bson.RawValue{v}
	}
	keys := make([]bson.RawValue, len(by.fields))
	for i, f := range by.fields {
		k, err := follow(v, f.names)
		if err != nil || !isDocument(v) {
			k = value.Missing
		}
		if k.Type == bson.TypeArray {
			k = extreme(c, k, f.descending)
		}
		if k.Type == 0 {
			k = value.Null
		}
		keys[i] = k
	}
	return keys
}

// extreme is the least or the greatest element of an array; of an empty one it is undefined, below null.
func extreme(c *Context, array bson.RawValue, greatest bool) bson.RawValue {
	best := bson.RawValue{Type: bson.TypeUndefined}
	first := true
	for it := value.Elements(array.Value); it.Next(); {
		if d := c.compare(it.Value(), best); first || greatest && d > 0 || !greatest && d < 0 {
			best, first = it.Value(), false
		}
	}
	return best
}

// Compare orders two keys.
func (by By) Compare(c *Context, a, b []bson.RawValue) int {
	if by.Whole != 0 {
		return by.Whole * c.compare(a[0], b[0])
	}
	for i, f := range by.fields {
		if d := c.compare(a[i], b[i]); d != 0 {
			if f.descending {
				return -d
			}
			return d
		}
	}
	return 0
}

// sortArray is $sortArray.
type sortArray struct {
	input node
	by    By
}

func (n *sortArray) eval(c *Context) (bson.RawValue, error) {
	v, err := n.input.eval(c)
	switch {
	case err != nil:
		return v, err
	case nullish(v):
		return value.Null, nil
	case !isArray(v):
		return v, code(2942504).Errorf("the input argument to $sortArray must be an array, but was of type: %s", typeName(v))
	}
	type row struct {
		key []bson.RawValue
		v   bson.RawValue
	}
	var rows []row
	for _, e := range elements(v) {
		rows = append(rows, row{n.by.Key(c, e), e})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return n.by.Compare(c, a.key, b.key) })
	b := newArray()
	for _, r := range rows {
		b.add(r.v)
	}
	return b.done()
}

func parseSortArray(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$sortArray", arg, 2942500, 2942501, 2942502, []string{"input", "sortBy"}, nil)
	if err != nil {
		return nil, err
	}
	n := &sortArray{}
	if n.by, err = ParseBy("$sortArray", raw[1]); err != nil {
		return nil, err
	}
	n.input, err = p.parse(raw[0])
	return n, err
}

// Falls says whether the order of field i, or of the values, is descending.
func (by By) Falls(i int) bool {
	if by.Whole != 0 {
		return by.Whole < 0
	}
	return by.fields[i].descending
}
