package update

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// push puts values into an array, then sorts it, then cuts it.
type push struct {
	values   []bson.RawValue
	position *int64 // from the end if negative; nil is the end
	sort     []sortField
	slice    *int64 // the last ones if negative
}

// sortField is a field to sort documents by, or with an empty path the elements themselves.
type sortField struct {
	path      value.Path
	direction int
}

func parsePush(_ *parser, _ string, arg bson.RawValue) (modifier, error) {
	m := &push{values: []bson.RawValue{arg}}
	if arg.Type != bson.TypeEmbeddedDocument || value.Lookup(arg.Value, "$each").Type == 0 {
		return m, nil
	}
	for it := value.Elements(arg.Value); it.Next(); {
		v := it.Value()
		switch name := string(it.Name()); name {
		case "$each":
			if v.Type != bson.TypeArray {
				return nil, mongoerr.BadValue.Errorf("The argument to $each in $push must be an array but it was of type: %s", value.TypeName(v.Type))
			}
			m.values = list(v)
		case "$position":
			n, ok := whole(v)
			if !ok {
				return nil, mongoerr.BadValue.Errorf("The value for $position must be an integer value, not of type: %s", value.TypeName(v.Type))
			}
			m.position = &n
		case "$slice":
			n, ok := whole(v)
			if !ok {
				return nil, mongoerr.BadValue.Errorf("The value for $slice must be an integer value but was given type: %s", value.TypeName(v.Type))
			}
			m.slice = &n
		case "$sort":
			var err error
			if m.sort, err = parseSort(v); err != nil {
				return nil, err
			}
		default:
			return nil, mongoerr.BadValue.Errorf("Unrecognized clause in $push: %s", name)
		}
	}
	return m, nil
}

func whole(v bson.RawValue) (int64, bool) {
	if !value.IsNumber(v.Type) {
		return 0, false
	}
	return value.AsInt64(v)
}

func parseSort(v bson.RawValue) ([]sortField, error) {
	direction := func(v bson.RawValue) (int, bool) {
		n, ok := whole(v)
		return int(n), ok && (n == 1 || n == -1)
	}
	if v.Type != bson.TypeEmbeddedDocument {
		d, ok := direction(v)
		if !ok {
			return nil, mongoerr.BadValue.Errorf("The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
		}
		return []sortField{{direction: d}}, nil
	}
	var fields []sortField
	for it := value.Elements(v.Value); it.Next(); {
		name := string(it.Name())
		d, ok := direction(it.Value())
		switch {
		case !ok:
			return nil, mongoerr.BadValue.Errorf("The $sort element value must be either 1 or -1")
		case name == "":
			return nil, mongoerr.BadValue.Errorf("The $sort field cannot be empty")
		case strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
			return nil, mongoerr.BadValue.Errorf("The $sort field is a dotted field but has an empty part: %s", name)
		}
		fields = append(fields, sortField{value.ParsePath(name), d})
	}
	if fields == nil {
		return nil, mongoerr.BadValue.Errorf("The $sort pattern is empty when it should be a set of fields.")
	}
	return fields, nil
}

func (m *push) modify(c *context, path string, old bson.RawValue) (bson.RawValue, error) {
	switch old.Type {
	case 0, bson.TypeArray:
	default:
		return old, mongoerr.BadValue.Errorf("The field '%s' must be an array but is of type %s in document %s", path,
			value.TypeName(old.Type), c.id())
	}
	if old.Type != 0 && m.position == nil && m.sort == nil && m.slice == nil {
		if len(m.values) == 0 {
			return old, nil
		}
		a := growArray(make([]byte, 0, len(old.Value)+16), old.Value)
		for _, v := range m.values {
			a.add(v)
		}
		return a.value(), nil
	}
	values := list(old)
	at := len(values)
	if m.position != nil {
		p := *m.position
		if p < 0 {
			p += int64(at)
		}
		at = int(min(max(p, 0), int64(at)))
	}
	values = slices.Insert(values, at, m.values...)
	if m.sort != nil {
		slices.SortStableFunc(values, func(a, b bson.RawValue) int { return m.compare(c, a, b) })
	}
	if m.slice != nil {
		n := int64(len(values))
		if s := *m.slice; s >= 0 {
			values = values[:min(s, n)]
		} else if s > -n {
			values = values[n+s:]
		}
	}
	return arrayOf(values), nil
}

func (m *push) compare(c *context, a, b bson.RawValue) int {
	for _, f := range m.sort {
		x, y := a, b
		if f.path.Len() > 0 {
			x, y = fieldOf(a, f.path), fieldOf(b, f.path)
		}
		if d := c.update.order.compare(x, y); d != 0 {
			return d * f.direction
		}
	}
	return 0
}

// fieldOf is what a document is sorted by; null if it has no such field, or is no document.
func fieldOf(v bson.RawValue, path value.Path) bson.RawValue {
	if v.Type == bson.TypeEmbeddedDocument {
		if v = value.Get(v.Value, path); v.Type != 0 {
			return v
		}
	}
	return value.Null
}
