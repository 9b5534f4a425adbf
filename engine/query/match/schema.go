package match

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// schema is a JSON schema of draft 4 as MongoDB reads it, parsed: every keyword constrains values of the types it is about and
// lets all others pass. Zero values mean that a keyword is absent.
type schema struct {
	raw bson.Raw // for whoever explains a failure

	types    *Types // of type and bsonType
	enum     []bson.RawValue
	allOf    []*schema
	anyOf    []*schema
	oneOf    []*schema
	not      *schema
	number   numberRules
	str      stringRules
	object   objectRules
	array    arrayRules
	deferred *deferred
}

type numberRules struct {
	minimum, maximum                   bson.RawValue
	exclusiveMinimum, exclusiveMaximum bool
	multipleOf                         bson.RawValue
}

type stringRules struct {
	minLength, maxLength *int64
	pattern              *pattern
}

type objectRules struct {
	minProperties, maxProperties *int64
	required                     []string
	properties                   []property
	patterns                     []patternProperty
	additional                   *schema // of fields that neither list names; nil lets them pass
	dependencies                 []dependency
}

type property struct {
	name   string
	schema *schema
}

type patternProperty struct {
	re     *pattern
	schema *schema
}

// dependency binds a document that has the field name: to have all of names, and to fulfil schema.
type dependency struct {
	name   string
	names  []string
	schema *schema
}

type arrayRules struct {
	minItems, maxItems *int64
	unique             bool
	all                *schema   // items: of every element
	each               []*schema // items: of the elements in turn, additional of those behind
	additional         *schema
}

// deferred are keywords that only mean something together with a later one.
type deferred struct {
	exclusiveMinimum, exclusiveMaximum bson.RawValue
}

// never is the schema that nothing fulfils: additionalProperties: false.
var never = &schema{not: &schema{}}

// keyword is one row of the table of keywords. parse may be nil: the keyword is a remark.
type keyword struct {
	name  string
	parse func(p *parser, s *schema, arg bson.RawValue, at string) error
	todo  bool // JSON schema has it, MongoDB refuses it
}

// schemaKeywords is sorted by name.
var schemaKeywords = []keyword{
	{name: "$ref", todo: true},
	{name: "$schema", todo: true},
	{name: "additionalItems", parse: schemaAdditionalItems},
	{name: "additionalProperties", parse: schemaAdditionalProperties},
	{name: "allOf", parse: schemaAllOf},
	{name: "anyOf", parse: schemaAnyOf},
	{name: "bsonType", parse: schemaBSONType},
	{name: "default", todo: true},
	{name: "definitions", todo: true},
	{name: "dependencies", parse: schemaDependencies},
	{name: "description", parse: schemaText},
	{name: "enum", parse: schemaEnum},
	{name: "exclusiveMaximum", parse: schemaExclusiveMaximum},
	{name: "exclusiveMinimum", parse: schemaExclusiveMinimum},
	{name: "format", todo: true},
	{name: "id", todo: true},
	{name: "items", parse: schemaItems},
	{name: "maxItems", parse: schemaMaxItems},
	{name: "maxLength", parse: schemaMaxLength},
	{name: "maxProperties", parse: schemaMaxProperties},
	{name: "maximum", parse: schemaMaximum},
	{name: "minItems", parse: schemaMinItems},
	{name: "minLength", parse: schemaMinLength},
	{name: "minProperties", parse: schemaMinProperties},
	{name: "minimum", parse: schemaMinimum},
	{name: "multipleOf", parse: schemaMultipleOf},
	{name: "not", parse: schemaNot},
	{name: "oneOf", parse: schemaOneOf},
	{name: "pattern", parse: schemaPattern},
	{name: "patternProperties", parse: schemaPatternProperties},
	{name: "properties", parse: schemaProperties},
	{name: "required", parse: schemaRequired},
	{name: "title", parse: schemaText},
	{name: "type", parse: schemaType},
	{name: "uniqueItems", parse: schemaUniqueItems},
}

// schema parses a schema. at is its place, for errors.
func (p *parser) schema(doc bson.Raw, at string) (*schema, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	s := &schema{raw: doc, deferred: &deferred{}}
	for it := value.Elements(doc); it.Next(); {
		name := string(it.Name())
		i, ok := slices.BinarySearchFunc(p.keywords, name, func(k keyword, name string) int { return strings.Compare(k.name, name) })
		switch {
		case !ok:
			return nil, mongoerr.FailedToParse.Errorf("unknown $jsonSchema keyword: %s%s", name, where(at))
		case p.keywords[i].todo:
			return nil, mongoerr.FailedToParse.Errorf("$jsonSchema keyword '%s' is not currently supported%s", name, where(at))
		}
		if err := p.keywords[i].parse(p, s, it.Value(), at); err != nil {
			return nil, err
		}
	}
	d := s.deferred
	s.deferred = nil
	switch {
	case d.exclusiveMinimum.Type != 0 && s.number.minimum.Type == 0:
		return nil, mongoerr.FailedToParse.Errorf("$jsonSchema keyword 'minimum' must be present if exclusiveMinimum is%s", where(at))
	case d.exclusiveMaximum.Type != 0 && s.number.maximum.Type == 0:
		return nil, mongoerr.FailedToParse.Errorf("$jsonSchema keyword 'maximum' must be present if exclusiveMaximum is%s", where(at))
	}
	if s.array.each == nil {
		s.array.additional = nil // it would be about the elements behind those of items
	}
	return s, nil
}

func where(at string) string {
	if at == "" {
		return ""
	}
	return " (at '" + at + "')"
}

func wrongType(keyword, want, at string, got bson.RawValue) error {
	return mongoerr.TypeMismatch.Errorf("$jsonSchema keyword '%s' must be %s, not %s%s", keyword, want, value.TypeName(got.Type), where(at))
}

func malformed(keyword, what, at string) error {
	return mongoerr.FailedToParse.Errorf("$jsonSchema keyword '%s' %s%s", keyword, what, where(at))
}

func below(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// child parses a keyword's operand that is itself a schema.
func (p *parser) child(keyword string, arg bson.RawValue, at string) (*schema, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, wrongType(keyword, "an object", at, arg)
	}
	return p.schema(arg.Value, at)
}

// children parses a keyword's operand that is an array of at least one schema.
func (p *parser) children(keyword string, arg bson.RawValue, at string) (list []*schema, err error) {
	if arg.Type != bson.TypeArray {
		return nil, wrongType(keyword, "an array", at, arg)
	}
	for it := value.Elements(arg.Value); it.Next(); {
		s, err := p.child(keyword, it.Value(), at)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if list == nil {
		return nil, mongoerr.BadValue.Errorf("$jsonSchema keyword '%s' must be a nonempty array%s", keyword, where(at))
	}
	return list, nil
}

func schemaText(_ *parser, _ *schema, arg bson.RawValue, at string) error {
	if arg.Type != bson.TypeString {
		return wrongType("title or description", "a string", at, arg)
	}
	return nil
}

func schemaAllOf(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.allOf, err = p.children("allOf", arg, at)
	return err
}

func schemaAnyOf(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.anyOf, err = p.children("anyOf", arg, at)
	return err
}

func schemaOneOf(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.oneOf, err = p.children("oneOf", arg, at)
	return err
}

func schemaNot(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.not, err = p.child("not", arg, at)
	return err
}

func schemaEnum(_ *parser, s *schema, arg bson.RawValue, at string) error {
	if arg.Type != bson.TypeArray {
		return wrongType("enum", "an array", at, arg)
	}
	for it := value.Elements(arg.Value); it.Next(); {
		v := it.Value()
		if slices.ContainsFunc(s.enum, func(w bson.RawValue) bool { return sameUnordered(v, w) }) {
			return malformed("enum", "has duplicate values", at)
		}
		s.enum = append(s.enum, v)
		if len(s.enum) > enumMax {
			return malformed("enum", "has too many values", at)
		}
	}
	if s.enum == nil {
		return malformed("enum", "cannot be an empty array", at)
	}
	return nil
}

// enumMax bounds the square that looking for duplicates takes.
const enumMax = 10_000

// schemaTypes are the names that type knows; bsonType has the rest.
var schemaTypes = map[string]string{"object": "object", "array": "array", "number": "number", "boolean": "bool", "string": "string",
	"null": "null"}

func schemaType(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return s.typeNames("type", arg, at, func(name string) ([]bson.Type, error) {
		if name == "integer" {
			return nil, malformed("type", "'integer' is not currently supported", at)
		}
		return value.TypesNamed(schemaTypes[name]), nil
	})
}

func schemaBSONType(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return s.typeNames("bsonType", arg, at, func(name string) ([]bson.Type, error) { return value.TypesNamed(name), nil })
}

func (s *schema) typeNames(keyword string, arg bson.RawValue, at string, find func(string) ([]bson.Type, error)) error {
	if s.types != nil {
		return malformed("type", "and 'bsonType' cannot both be specified", at)
	}
	s.types = &Types{}
	add := func(v bson.RawValue) error {
		if v.Type != bson.TypeString {
			return wrongType(keyword, "a string or an array of strings", at, v)
		}
		name := string(value.StringBytes(v))
		types, err := find(name)
		if err != nil {
			return err
		}
		if types == nil {
			return mongoerr.BadValue.Errorf("$jsonSchema keyword '%s': unknown type name alias: %s%s", keyword, name, where(at))
		}
		for _, t := range types {
			*s.types = s.types.With(t)
		}
		return nil
	}
	if arg.Type != bson.TypeArray {
		return add(arg)
	}
	var names []string
	for it := value.Elements(arg.Value); it.Next(); {
		if err := add(it.Value()); err != nil {
			return err
		}
		name := string(value.StringBytes(it.Value()))
		if slices.Contains(names, name) {
			return malformed(keyword, "has duplicate values", at)
		}
		names = append(names, name)
	}
	if names == nil {
		return malformed(keyword, "must name at least one type", at)
	}
	return nil
}
