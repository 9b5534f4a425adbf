package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseType(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	n := &Type{Path: path, path: p.pathOf(path, false)}
	if arg.Type != bson.TypeArray {
		return n, n.Types.add("$type at '"+path+"'", arg)
	}
	if value.Count(arg.Value) == 0 {
		return nil, mongoerr.FailedToParse.Errorf("$type at '%s' must match at least one type", path)
	}
	for it := value.Elements(arg.Value); it.Next(); {
		if err := n.Types.add("$type at '"+path+"'", it.Value()); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// add puts the type that v names, or whose number it is, into the set. who is named in errors.
func (s *Types) add(who string, v bson.RawValue) error {
	switch {
	case v.Type == bson.TypeString:
		name := string(value.StringBytes(v))
		types := value.TypesNamed(name)
		if types == nil {
			return mongoerr.BadValue.Errorf("%s: unknown type name alias: %s", who, name)
		}
		for _, t := range types {
			*s = s.With(t)
		}
	case value.IsNumber(v.Type):
		i, ok := wholeOf(v)
		if ok && i == 0 {
			return mongoerr.BadValue.Errorf("%s: invalid numerical type code: 0. Instead use {$exists: false}", who)
		}
		t, known := value.TypeNumbered(i)
		if !ok || !known {
			return mongoerr.BadValue.Errorf("%s: invalid numerical type code: %s", who, show(v))
		}
		*s = s.With(t)
	default:
		return mongoerr.TypeMismatch.Errorf("%s: a type must be represented as a number or a string, not %s", who,
			value.TypeName(v.Type))
	}
	return nil
}
