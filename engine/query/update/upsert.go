package update

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Make is the document that an upsert inserts if nothing matches filter: what the filter's equalities say, then the update. _id is
// in front if there is one; if there is none the caller makes it. A replacement takes only _id from the filter.
//
// Equalities are {path: value} and {path: {$eq: value}}, {path: {$in: [value]}} and {path: {$all: [value]}} with one value, at the
// top and in $and, and in an $or of one clause. Two for one path, or for a path and one inside of it, are NotSingleValueField.
func (u *Update) Make(filter bson.Raw, ctx Context) (bson.Raw, error) {
	ctx.Insert = true
	ctx.Positional = -1
	var s seed
	if err := s.filter(filter); err != nil {
		return nil, err
	}
	if u.root == nil {
		if err := s.onlyID(); err != nil {
			return nil, err
		}
	}
	doc, err := s.document()
	if err != nil {
		return nil, err
	}
	doc, _, err = u.Apply(doc, ctx)
	if err != nil {
		return nil, err
	}
	if doc, err = keepID(doc, doc); err != nil {
		return nil, err
	}
	return doc, value.Validate(doc)
}

// seed is the equalities of a filter, in its order.
type seed []equality

type equality struct {
	path value.Path
	v    bson.RawValue
}

func (s *seed) filter(filter bson.Raw) error {
	for it := value.Elements(filter); it.Next(); {
		name, v := string(it.Name()), it.Value()
		switch {
		case name == "$and" && v.Type == bson.TypeArray, name == "$or" && v.Type == bson.TypeArray && value.Count(v.Value) == 1:
			for clauses := value.Elements(v.Value); clauses.Next(); {
				if err := s.filter(clauses.Value().Value); err != nil {
					return err
				}
			}
		case strings.HasPrefix(name, "$"):
		default:
			if err := s.field(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *seed) field(name string, v bson.RawValue) error {
	switch v.Type {
	case bson.TypeRegex, bson.TypeUndefined:
		return nil
	case bson.TypeEmbeddedDocument:
		it := value.Elements(v.Value)
		if !it.Next() || !isDollar(it.Name()) || isReference(it.Name()) {
			break
		}
		for more := true; more; more = it.Next() {
			arg := it.Value()
			switch string(it.Name()) {
			case "$eq":
			case "$in", "$all":
				if arg.Type != bson.TypeArray || value.Count(arg.Value) != 1 {
					continue
				}
				arg = value.At(arg.Value, 0)
				if inner := value.Elements(arg.Value); arg.Type == bson.TypeEmbeddedDocument && inner.Next() && isDollar(inner.Name()) {
					continue // $all: [{$elemMatch: …}]
				}
				if arg.Type == bson.TypeRegex {
					continue
				}
			default:
				continue
			}
			if err := s.add(name, arg); err != nil {
				return err
			}
		}
		return nil
	}
	return s.add(name, v)
}

// isReference says whether name belongs to a DBRef, a value whose names begin with $.
func isReference(name []byte) bool {
	return slices.Contains([]string{"$ref", "$id", "$db"}, string(name))
}

func (s *seed) add(name string, v bson.RawValue) error {
	path := value.ParsePath(name)
	for _, e := range *s {
		switch {
		case e.path.String() == name:
			return mongoerr.NotSingleValueField.Errorf("cannot infer query fields to set, path '%s' is matched twice", name)
		case path.HasPrefix(e.path), e.path.HasPrefix(path):
			return mongoerr.NotSingleValueField.Errorf("cannot infer query fields to set, both paths '%s' and '%s' are matched", name, e.path)
		}
	}
	*s = append(*s, equality{path, v})
	return nil
}

// onlyID drops all but _id, which must be said as a whole.
func (s *seed) onlyID() error {
	for _, e := range *s {
		if e.path.Len() > 1 && e.path.Part(0).Name == "_id" {
			return mongoerr.NotExactValueField.Errorf("field at '_id' must be exactly specified, field at sub-path '%s'found", e.path)
		}
	}
	*s = slices.DeleteFunc(*s, func(e equality) bool { return e.path.String() != "_id" })
	return nil
}

// document is the equalities as fields, in the order of the filter.
func (s *seed) document() (bson.Raw, error) {
	c := context{update: &Update{}}
	doc := bson.Raw{5, 0, 0, 0, 0}
	for _, e := range *s {
		if err := checkPath(e.path.String()); err != nil {
			return nil, err
		}
		n := &node{path: e.path.String(), mod: set{e.v}}
		for i := e.path.Len() - 1; i >= 0; i-- {
			part := e.path.Part(i)
			n = &node{fields: []field{{name: part.Name, index: part.Index, node: n}}}
		}
		var err error
		if doc, _, err = c.document(nil, n, doc); err != nil {
			return nil, err
		}
	}
	return doc, nil
}
