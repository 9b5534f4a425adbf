package collation

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/text/language"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Strengths: how many levels count.
const (
	primary    = 1
	tertiary   = 3
	quaternary = 4
	identical  = 5
)

const (
	caseOff   = "off"
	caseUpper = "upper"
	caseLower = "lower"
)

// version is what clients are shown as the version of the tables. MongoDB has had this one since it has had collations, and dumps of its
// collections carry it.
const version = "57.1"

// fields are the fields of a collation's document.
type fields struct {
	locale          string
	caseLevel       bool
	caseFirst       string
	strength        int64
	numericOrdering bool
	shifted         bool
	maxVariable     string
	normalization   bool
	backwards       bool
}

// Parse reads a collation. It is nil for {} and {locale: "simple"}. The errors are clients': BadValue, FailedToParse, TypeMismatch, and
// NotImplemented for what is MongoDB's and cannot be done here.
func Parse(spec bson.Raw) (*Collation, error) {
	if value.Count(spec) == 0 {
		return nil, nil
	}
	name := value.Lookup(spec, "locale")
	switch {
	case name.Type == 0:
		return nil, mongoerr.Code(40414).Errorf("BSON field 'collation.locale' is missing but a required field")
	case name.Type != bson.TypeString:
		return nil, wrongType("locale", name, "string")
	}
	id := string(value.StringBytes(name))
	if id == "simple" {
		if value.Count(spec) > 1 {
			return nil, mongoerr.FailedToParse.Errorf("If locale=simple, no other fields should be present in: %s", show(spec))
		}
		return nil, nil
	}
	l, err := findLocale(id, spec)
	if err != nil {
		return nil, err
	}
	c := &Collation{fields: fields{
		locale: id, caseFirst: l.caseFirst, strength: tertiary, shifted: l.shifted, maxVariable: "punct", normalization: l.normalization,
		backwards: l.backwards,
	}}
	for it := value.Elements(spec); it.Next(); {
		if err := c.fields.set(string(it.Name()), it.Value(), spec); err != nil {
			return nil, err
		}
	}
	if err := c.fields.check(spec); err != nil {
		return nil, err
	}
	c.spec = c.fields.raw()
	if c.tag, err = c.fields.tag(l.tag, min(c.fields.strength, tertiary)); err != nil {
		return nil, err
	}
	c.tag4, err = c.fields.tag(l.tag, quaternary)
	return c, err
}

// Read is Parse of a field's value.
func Read(name string, v bson.RawValue) (*Collation, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.TypeMismatch.Errorf("BSON field '%s' is the wrong type '%s', expected type 'object'", name, value.TypeName(v.Type))
	}
	return Parse(v.Value)
}

func (f *fields) set(name string, v bson.RawValue, spec bson.Raw) (err error) {
	switch name {
	case "locale":
	case "caseLevel":
		f.caseLevel, err = flag(name, v)
	case "caseFirst":
		f.caseFirst, err = choice(name, v, caseUpper, caseLower, caseOff)
	case "strength":
		if !value.IsNumber(v.Type) {
			return wrongType(name, v, "number")
		}
		if d := value.AsDouble(v); d != math.Trunc(d) || d < primary || d > identical {
			return mongoerr.FailedToParse.Errorf("Field 'strength' must be an integer 1 through 5. Got: %s", value.Brief(v, 100))
		}
		f.strength = value.TruncateInt64(v)
	case "numericOrdering":
		f.numericOrdering, err = flag(name, v)
	case "alternate":
		var s string
		s, err = choice(name, v, "non-ignorable", "shifted")
		f.shifted = s == "shifted"
	case "maxVariable":
		f.maxVariable, err = choice(name, v, "punct", "space")
	case "normalization":
		f.normalization, err = flag(name, v)
	case "backwards":
		f.backwards, err = flag(name, v)
	case "version":
		if v.Type != bson.TypeString {
			return wrongType(name, v, "string")
		}
		if s := string(value.StringBytes(v)); s != version {
			return mongoerr.Code(161).Errorf("Requested collation version %s but the only available collator version was %s. Requested "+
				"collation spec: %s", s, version, show(spec))
		}
	default:
		return mongoerr.Code(40415).Errorf("BSON field 'collation.%s' is an unknown field.", name)
	}
	return err
}

// check refuses what makes no sense together, and what the tables cannot do.
func (f *fields) check(spec bson.Raw) error {
	switch {
	case f.backwards && f.strength == primary:
		return mongoerr.BadValue.Errorf("'backwards' is invalid with 'strength' of 1 in: %s", show(spec))
	case f.caseFirst != caseOff && !f.caseLevel && f.strength < tertiary:
		return mongoerr.BadValue.Errorf("'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: %s", show(spec))
	case f.shifted && f.maxVariable == "space":
		return mongoerr.NotImplemented.Errorf("a collation with alternate 'shifted' and maxVariable 'space' is not implemented: %s", show(spec))
	case f.strength >= quaternary && f.language() == "ja":
		return mongoerr.NotImplemented.Errorf("strength 4 and 5, which tell Hiragana from Katakana, are not implemented for Japanese: %s", show(spec))
	}
	return nil
}

func (f *fields) language() string {
	name, _, _ := strings.Cut(f.locale, "_")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// raw is the document with all fields, in MongoDB's order.
func (f *fields) raw() bson.Raw {
	alternate := "non-ignorable"
	if f.shifted {
		alternate = "shifted"
	}
	return bson.Raw(bsoncore.NewDocumentBuilder().
		AppendString("locale", f.locale).AppendBoolean("caseLevel", f.caseLevel).AppendString("caseFirst", f.caseFirst).
		AppendInt32("strength", int32(f.strength)).AppendBoolean("numericOrdering", f.numericOrdering).AppendString("alternate", alternate).
		AppendString("maxVariable", f.maxVariable).AppendBoolean("normalization", f.normalization).AppendBoolean("backwards", f.backwards).
		AppendString("version", version).Build())
}

// tag is what the library is asked for. Without it a case level is taken from the third level.
func (f *fields) tag(base string, strength int64) (language.Tag, error) {
	t, err := language.Parse(base)
	set := func(key, to string) {
		if err == nil {
			t, err = t.SetTypeForKey(key, to)
		}
	}
	set("ks", "level"+string(rune('0'+strength)))
	if f.caseLevel && strength < tertiary {
		set("kc", "true")
	}
	if f.shifted {
		set("ka", "shifted")
	}
	if f.backwards {
		set("kb", "true")
	}
	if err != nil {
		return t, mongoerr.InternalError.Errorf("the locale %s is not one of the tables': %w", base, err)
	}
	return t, nil
}

func flag(name string, v bson.RawValue) (bool, error) {
	if v.Type != bson.TypeBoolean {
		return false, wrongType(name, v, "bool")
	}
	return v.Boolean(), nil
}

func choice(name string, v bson.RawValue, of ...string) (string, error) {
	if v.Type != bson.TypeString {
		return "", wrongType(name, v, "string")
	}
	s := string(value.StringBytes(v))
	for _, x := range of {
		if s == x {
			return s, nil
		}
	}
	return "", mongoerr.FailedToParse.Errorf("Field '%s' must be one of '%s'. Got: %s", name, strings.Join(of, "', '"), s)
}

func wrongType(name string, v bson.RawValue, want string) error {
	return mongoerr.TypeMismatch.Errorf("BSON field 'collation.%s' is the wrong type '%s', expected type '%s'", name, value.TypeName(v.Type), want)
}

func show(spec bson.Raw) string { return value.Brief(value.Document(spec), 500) }
