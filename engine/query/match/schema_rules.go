package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// The keywords about numbers, strings, documents and arrays.

func schemaNumber(to *bson.RawValue, keyword string, arg bson.RawValue, at string) error {
	if !value.IsNumber(arg.Type) {
		return wrongType(keyword, "a number", at, arg)
	}
	*to = arg
	return nil
}

func schemaMinimum(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaNumber(&s.number.minimum, "minimum", arg, at)
}

func schemaMaximum(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaNumber(&s.number.maximum, "maximum", arg, at)
}

func schemaExclusiveMinimum(_ *parser, s *schema, arg bson.RawValue, at string) error {
	s.deferred.exclusiveMinimum = arg
	return schemaBool(&s.number.exclusiveMinimum, "exclusiveMinimum", arg, at)
}

func schemaExclusiveMaximum(_ *parser, s *schema, arg bson.RawValue, at string) error {
	s.deferred.exclusiveMaximum = arg
	return schemaBool(&s.number.exclusiveMaximum, "exclusiveMaximum", arg, at)
}

func schemaMultipleOf(_ *parser, s *schema, arg bson.RawValue, at string) error {
	if err := schemaNumber(&s.number.multipleOf, "multipleOf", arg, at); err != nil {
		return err
	}
	if value.Compare(arg, value.Int32(0)) <= 0 {
		return malformed("multipleOf", "must have a positive value", at)
	}
	return nil
}

func schemaBool(to *bool, keyword string, arg bson.RawValue, at string) error {
	if arg.Type != bson.TypeBoolean {
		return wrongType(keyword, "a boolean", at, arg)
	}
	*to = arg.Value[0] != 0
	return nil
}

func schemaCount(to **int64, keyword string, arg bson.RawValue, at string) error {
	if !value.IsNumber(arg.Type) {
		return wrongType(keyword, "a number", at, arg)
	}
	n, ok := value.AsInt64(arg)
	if !ok || n < 0 {
		return malformed(keyword, "must be a non-negative integer, not "+show(arg), at)
	}
	*to = &n
	return nil
}

func schemaMinLength(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaCount(&s.str.minLength, "minLength", arg, at)
}

func schemaMaxLength(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaCount(&s.str.maxLength, "maxLength", arg, at)
}

func schemaMinProperties(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaCount(&s.object.minProperties, "minProperties", arg, at)
}

func schemaMaxProperties(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaCount(&s.object.maxProperties, "maxProperties", arg, at)
}

func schemaMinItems(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaCount(&s.array.minItems, "minItems", arg, at)
}

func schemaMaxItems(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaCount(&s.array.maxItems, "maxItems", arg, at)
}

func schemaUniqueItems(_ *parser, s *schema, arg bson.RawValue, at string) error {
	return schemaBool(&s.array.unique, "uniqueItems", arg, at)
}

func schemaPattern(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	if arg.Type != bson.TypeString {
		return wrongType("pattern", "a string", at, arg)
	}
	s.str.pattern, err = p.compile("$jsonSchema keyword 'pattern'"+where(at), string(value.StringBytes(arg)), "")
	return err
}

// schemaNames parses an array of at least one name, each once.
func schemaNames(keyword string, arg bson.RawValue, at string) (names []string, err error) {
	if arg.Type != bson.TypeArray {
		return nil, wrongType(keyword, "an array", at, arg)
	}
	seen := map[string]bool{}
	for it := value.Elements(arg.Value); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return nil, wrongType(keyword, "an array of strings", at, it.Value())
		}
		name := string(value.StringBytes(it.Value()))
		if seen[name] {
			return nil, malformed(keyword, "cannot contain a name twice", at)
		}
		seen[name] = true
		names = append(names, name)
	}
	if names == nil {
		return nil, malformed(keyword, "cannot be an empty array", at)
	}
	return names, nil
}

func schemaRequired(_ *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.object.required, err = schemaNames("required", arg, at)
	return err
}

func schemaProperties(p *parser, s *schema, arg bson.RawValue, at string) error {
	if arg.Type != bson.TypeEmbeddedDocument {
		return wrongType("properties", "an object", at, arg)
	}
	for it := value.Elements(arg.Value); it.Next(); {
		name := string(it.Name())
		c, err := p.child("properties", it.Value(), below(at, name))
		if err != nil {
			return err
		}
		s.object.properties = append(s.object.properties, property{name, c})
	}
	return nil
}

func schemaPatternProperties(p *parser, s *schema, arg bson.RawValue, at string) error {
	if arg.Type != bson.TypeEmbeddedDocument {
		return wrongType("patternProperties", "an object", at, arg)
	}
	for it := value.Elements(arg.Value); it.Next(); {
		name := string(it.Name())
		re, err := p.compile("$jsonSchema keyword 'patternProperties'"+where(at), name, "")
		if err != nil {
			return err
		}
		c, err := p.child("patternProperties", it.Value(), below(at, name))
		if err != nil {
			return err
		}
		s.object.patterns = append(s.object.patterns, patternProperty{re, c})
	}
	return nil
}

// additional parses a boolean or a schema.
func (p *parser) additional(keyword string, arg bson.RawValue, at string) (*schema, error) {
	switch arg.Type {
	case bson.TypeBoolean:
		if arg.Value[0] != 0 {
			return nil, nil
		}
		return never, nil
	case bson.TypeEmbeddedDocument:
		return p.schema(arg.Value, at)
	}
	return nil, wrongType(keyword, "an object or a boolean", at, arg)
}

func schemaAdditionalProperties(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.object.additional, err = p.additional("additionalProperties", arg, at)
	return err
}

func schemaAdditionalItems(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	s.array.additional, err = p.additional("additionalItems", arg, at)
	return err
}

func schemaItems(p *parser, s *schema, arg bson.RawValue, at string) (err error) {
	if arg.Type == bson.TypeEmbeddedDocument {
		s.array.all, err = p.schema(arg.Value, at)
		return err
	}
	if arg.Type != bson.TypeArray {
		return wrongType("items", "an object or an array", at, arg)
	}
	s.array.each = []*schema{}
	for it := value.Elements(arg.Value); it.Next(); {
		c, err := p.child("items", it.Value(), at)
		if err != nil {
			return err
		}
		s.array.each = append(s.array.each, c)
	}
	return nil
}

func schemaDependencies(p *parser, s *schema, arg bson.RawValue, at string) error {
	if arg.Type != bson.TypeEmbeddedDocument {
		return wrongType("dependencies", "an object", at, arg)
	}
	for it := value.Elements(arg.Value); it.Next(); {
		d := dependency{name: string(it.Name())}
		var err error
		switch v := it.Value(); v.Type {
		case bson.TypeArray:
			d.names, err = schemaNames("dependencies", v, at)
		case bson.TypeEmbeddedDocument:
			d.schema, err = p.schema(v.Value, at)
		default:
			err = mongoerr.TypeMismatch.Errorf("$jsonSchema keyword 'dependencies': '%s' must be an object or an array%s", d.name, where(at))
		}
		if err != nil {
			return err
		}
		s.object.dependencies = append(s.object.dependencies, d)
	}
	return nil
}

// multiple says whether v is a multiple of m: exactly if both are whole or one is decimal, else as doubles divide.
func multiple(v, m bson.RawValue) bool {
	if v.Type == bson.TypeDecimal128 || m.Type == bson.TypeDecimal128 {
		return multipleDecimal(v, m)
	}
	if i, ok := value.AsInt64(v); ok {
		if k, ok := value.AsInt64(m); ok {
			return i%k == 0
		}
	}
	return multipleDouble(value.AsDouble(v), value.AsDouble(m))
}
