package key

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Kind says how a field of a pattern orders.
type Kind uint8

const (
	Ascending Kind = iota
	Descending
	Hashed // ascending by value.IndexHash
)

// Field is one field of a pattern.
type Field struct {
	Path value.Path
	Kind Kind
}

// Pattern says what an index holds of each document, or what a sort orders by: up to FieldsMax fields.
type Pattern struct {
	Fields []Field
	// Wild is set for the pattern of a wildcard index: {"$**": 1}, {"a.$**": -1}.
	Wild *Wild
	// Sparse leaves out the keys none of whose fields exist in the document.
	Sparse bool
	// Collation orders strings; nil is by bytes.
	Collation Collation
}

// FieldsMax is how many fields an index may have.
const FieldsMax = 32

// ParsePattern reads the key of an index: {a: 1, "b.c": -1, d: "hashed"}. Its errors are CannotCreateIndex.
func ParsePattern(spec bson.Raw) (Pattern, error) {
	var p Pattern
	hashed := 0
	seen := map[string]bool{}
	for it := value.Elements(spec); it.Next(); {
		name, v := string(it.Name()), it.Value()
		f := Field{Path: value.ParsePath(name)}
		base, wild := cutWildcard(name)
		if wild {
			p.Wild = newWild(base)
		}
		if !wild || base != "" {
			if err := checkPath(base, value.ParsePath(base)); err != nil {
				return Pattern{}, err
			}
		}
		if seen[f.Path.String()] {
			return Pattern{}, mongoerr.CannotCreateIndex.Errorf("Index key pattern %s contains the field '%s' twice", show(spec), f.Path)
		}
		seen[f.Path.String()] = true
		switch {
		case value.IsNumber(v.Type):
			switch c := value.Compare(v, value.Int32(0)); {
			case c == 0:
				return Pattern{}, mongoerr.CannotCreateIndex.Errorf("Values in the index key pattern cannot be 0.")
			case value.Equal(v, nan):
				return Pattern{}, mongoerr.CannotCreateIndex.Errorf("Values in the index key pattern cannot be NaN.")
			case c < 0:
				f.Kind = Descending
			}
		case v.Type == bson.TypeString:
			switch plugin := string(value.StringBytes(v)); plugin {
			case "hashed":
				f.Kind = Hashed
				hashed++
			case "text", "2d", "2dsphere":
				return Pattern{}, mongoerr.NotImplemented.Errorf("indexes of type '%s' are not supported yet", plugin)
			default:
				return Pattern{}, mongoerr.CannotCreateIndex.Errorf("Unknown index plugin '%s'", plugin)
			}
		default:
			return Pattern{}, mongoerr.CannotCreateIndex.Errorf("Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, "+
				"numbers < 0, and strings are allowed.", value.TypeName(v.Type))
		}
		p.Fields = append(p.Fields, f)
	}
	switch {
	case len(p.Fields) == 0:
		return Pattern{}, mongoerr.CannotCreateIndex.Errorf("Index keys cannot be empty.")
	case len(p.Fields) > FieldsMax:
		return Pattern{}, mongoerr.CannotCreateIndex.Errorf("too many fields in an index key: %d, and at most %d are allowed", len(p.Fields), FieldsMax)
	case hashed > 1:
		return Pattern{}, mongoerr.Code(31303).Errorf("A maximum of one index field is allowed to be hashed but found %d for 'key' pattern %s", hashed, show(spec))
	case p.Wild != nil && hashed > 0:
		return Pattern{}, mongoerr.CannotCreateIndex.Errorf("wildcard indexes do not allow hashed fields: %s", show(spec))
	case p.Wild != nil && len(p.Fields) > 1:
		return Pattern{}, mongoerr.NotImplemented.Errorf("compound wildcard indexes are not supported yet")
	}
	return p, nil
}

// Hashed says whether a field is hashed.
func (p Pattern) Hashed() bool {
	for _, f := range p.Fields {
		if f.Kind == Hashed {
			return true
		}
	}
	return false
}

func show(spec bson.Raw) string { return value.Brief(value.Document(spec), 1000) }

var nan = value.MustParse("NaN")

func checkPath(name string, p value.Path) error {
	if name == "" {
		return mongoerr.CannotCreateIndex.Errorf("Index keys cannot be an empty field.")
	}
	for _, part := range p.Parts() {
		switch {
		case part.Name == "":
			return mongoerr.CannotCreateIndex.Errorf("Index key '%s' contains an empty field, or begins or ends with a dot", name)
		case part.Name[0] == '$' && part.Name != "$id" && part.Name != "$ref" && part.Name != "$db":
			return mongoerr.CannotCreateIndex.Errorf("Index key '%s' contains an illegal field name: field name starts with '$'.", name)
		}
	}
	return nil
}

// Name is the name that an index of this pattern has if it is given none: a_1_b.c_-1_d_hashed.
func (p Pattern) Name() string {
	var b strings.Builder
	for i, f := range p.Fields {
		if i > 0 {
			b.WriteByte('_')
		}
		b.WriteString(f.Path.String())
		switch f.Kind {
		case Ascending:
			b.WriteString("_1")
		case Descending:
			b.WriteString("_-1")
		case Hashed:
			b.WriteString("_hashed")
		}
	}
	return b.String()
}

// AppendField appends the key of v as field i of the pattern; missing is null.
func (p Pattern) AppendField(dst []byte, i int, v bson.RawValue) []byte {
	e := encoder{dst: dst, coll: p.Collation}
	e.field(p.Fields[i].Kind, v)
	return e.dst
}

func (e *encoder) field(k Kind, v bson.RawValue) {
	if v.Type == 0 {
		if k == Hashed {
			v = value.Null
		} else {
			e.note(isMissing)
		}
	} else {
		e.exists = true
	}
	at := len(e.dst)
	switch {
	case k == Hashed:
		if e.coll != nil && HoldsText(v) { // what has the same key must have the same hash
			d := decoder{in: AppendBy(e.coll, nil, v)}
			v.Type, v.Value = d.value(nil, 0)
		}
		e.value(value.Int64(value.IndexHash(v)))
	case v.Type == 0:
		e.dst = append(e.dst, tagNull)
	default:
		e.value(v)
	}
	if k == Descending {
		invert(e.dst[at:])
	}
}
