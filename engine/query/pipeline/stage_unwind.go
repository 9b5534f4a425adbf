package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// unwindStage gives a document for each element of an array in it. What is no array counts as an array of itself; null, missing
// and empty arrays give nothing, unless they are to be kept.
type unwindStage struct {
	path  []string
	index []string // nil: none
	keep  bool
}

func parseUnwind(_ *parser, arg bson.RawValue) (stage, error) {
	s := &unwindStage{}
	path := arg
	switch arg.Type {
	case bson.TypeString:
	case bson.TypeEmbeddedDocument:
		path = value.Missing
		for it := value.Elements(arg.Value); it.Next(); {
			v := it.Value()
			switch name := string(it.Name()); name {
			case "path":
				if v.Type != bson.TypeString {
					return nil, code(28808).Errorf("expected a string as the path for $unwind stage, got %s",
						value.TypeName(v.Type))
				}
				path = v
			case "preserveNullAndEmptyArrays":
				if v.Type != bson.TypeBoolean {
					return nil, code(28809).Errorf("expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s",
						value.TypeName(v.Type))
				}
				s.keep = value.Truth(v)
			case "includeArrayIndex":
				if v.Type != bson.TypeString || len(value.StringBytes(v)) == 0 {
					return nil, code(28810).Errorf("expected a non-empty string for the includeArrayIndex option to $unwind stage, got %s",
						value.TypeName(v.Type))
				}
				name := string(value.StringBytes(v))
				if name[0] == '$' {
					return nil, code(28822).Errorf("includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s",
						name)
				}
				var err error
				if s.index, err = fieldPath(name); err != nil {
					return nil, err
				}
			default:
				return nil, code(28811).Errorf("unrecognized option to $unwind stage: %s", name)
			}
		}
		if path.Type == 0 {
			return nil, code(28812).Errorf("no path specified to $unwind stage")
		}
	default:
		return nil, code(15981).Errorf("expected either a string or an object as specification for $unwind stage, got %s",
			value.TypeName(arg.Type))
	}
	name, err := pathOf("$unwind", path, 28818)
	if err != nil {
		return nil, err
	}
	s.path = strings.Split(name, ".")
	return s, nil
}

func (s *unwindStage) run(in Iterator) Iterator {
	var doc bson.Raw
	var elements value.Iter
	var buf, second []byte
	i := int64(-1)
	give := func(v, index bson.RawValue) bson.Raw {
		buf = setPath(buf[:0], doc, s.path, v)
		if s.index == nil {
			return buf
		}
		second = setPath(second[:0], buf, s.index, index)
		return second
	}
	return over(in, func() (bson.Raw, error) {
		for {
			if i >= 0 {
				if elements.Next() {
					i++
					return give(elements.Value(), value.Int64(i-1)), nil
				}
				i = -1
			}
			var err error
			if doc, err = in.Next(); err != nil || doc == nil {
				return nil, err
			}
			switch v := getPath(doc, s.path); {
			case v.Type == bson.TypeArray && value.Count(v.Value) > 0:
				elements, i = value.Elements(v.Value), 0
			case v.Type == bson.TypeArray && s.keep:
				return give(value.Missing, value.Null), nil
			case v.Type == bson.TypeArray:
			case value.IsNullish(v) && !s.keep:
			case s.index != nil:
				second = setPath(second[:0], doc, s.index, value.Null)
				return second, nil
			default:
				return doc, nil
			}
		}
	})
}
