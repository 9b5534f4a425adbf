package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// explainedSchema finds out which keywords of a schema a value breaks. It reads the schema's document again, one keyword at a
// time with those that belong to it, so that judging need not remember what it saw.
type explainedSchema struct{ err error }

// companions are the keywords without which one cannot be judged.
var companions = map[string][]string{
	"minimum": {"exclusiveMinimum"}, "maximum": {"exclusiveMaximum"}, "additionalProperties": {"properties", "patternProperties"},
	"additionalItems": {"items"},
}

// alone are the keywords that are judged with another.
var alone = map[string]bool{"exclusiveMinimum": true, "exclusiveMaximum": true, "title": true, "description": true}

// breaks says whether v breaks the schema raw.
func (x *explainedSchema) breaks(raw bson.Raw, v bson.RawValue) bool {
	p := &parser{operators: operators, keywords: schemaKeywords}
	s, err := p.schema(raw, "")
	if err != nil {
		x.err = err
		return false
	}
	j := judge{}
	ok := j.valid(s, v)
	if j.err != nil {
		x.err = j.err
	}
	return !ok
}

// rules are the keywords of the schema raw that v breaks.
func (x *explainedSchema) rules(raw bson.Raw, v bson.RawValue) bson.A {
	list := bson.A{}
	for it := value.Elements(raw); it.Next() && x.err == nil; {
		name, arg := string(it.Name()), it.Value()
		if alone[name] {
			continue
		}
		single := document(func(dst []byte) []byte {
			dst = appendValue(dst, name, arg)
			for _, c := range companions[name] {
				if more := value.Lookup(raw, c); more.Type != 0 {
					// Of its companions a keyword needs the names, not the rules; without rules only it can be broken.
					dst = appendValue(dst, c, lenient(c, more))
				}
			}
			return dst
		})
		if x.breaks(single, v) {
			list = append(list, append(bson.D{{Key: "operatorName", Value: name}}, x.rule(name, arg, single, v)...))
		}
	}
	return list
}

// lenient is the operand of properties, patternProperties or items with schemas that everything fulfils.
func lenient(keyword string, arg bson.RawValue) bson.RawValue {
	if arg.Type == bson.TypeBoolean || arg.Type == bson.TypeEmbeddedDocument && keyword == "items" {
		return arg
	}
	return bson.RawValue{Type: arg.Type, Value: document(func(dst []byte) []byte {
		for it := value.Elements(arg.Value); it.Next(); {
			dst = appendValue(dst, string(it.Name()), value.Document(document(func(dst []byte) []byte { return dst })))
		}
		return dst
	})}
}

// rule is what there is to say about a broken keyword.
func (x *explainedSchema) rule(name string, arg bson.RawValue, single bson.Raw, v bson.RawValue) bson.D {
	specified := bson.E{Key: "specifiedAs", Value: document(func(dst []byte) []byte { return appendValue(dst, name, arg) })}
	considered := bson.E{Key: "consideredValue", Value: v}
	because := func(reason string) bson.E { return bson.E{Key: "reason", Value: reason} }
	switch name {
	case "properties":
		return bson.D{{Key: "propertiesNotSatisfied", Value: x.properties(arg, v)}}
	case "required":
		return bson.D{specified, {Key: "missingProperties", Value: missing(arg, v)}}
	case "type", "bsonType":
		return bson.D{specified, because("type did not match"), considered, {Key: "consideredType", Value: value.TypeName(v.Type)}}
	case "minimum", "maximum":
		return bson.D{{Key: "specifiedAs", Value: single}, because("comparison failed"), considered}
	case "multipleOf":
		return bson.D{specified, because("considered value is not a multiple of the specified value"), considered}
	case "minLength", "maxLength":
		return bson.D{specified, because("specified string length was not satisfied"), considered}
	case "pattern":
		return bson.D{specified, because("regular expression did not match"), considered}
	case "enum":
		return bson.D{specified, because("value was not found in enum"), considered}
	case "minProperties", "maxProperties":
		return bson.D{specified, because("specified number of properties was not satisfied"), {Key: "numberOfProperties", Value: int32(value.Count(v.Value))}}
	case "minItems", "maxItems":
		return bson.D{specified, because("array did not match specified length"), considered, {Key: "numberOfItems", Value: int32(value.Count(v.Value))}}
	case "uniqueItems":
		return bson.D{specified, because("found a duplicate item"), considered}
	case "allOf", "anyOf", "oneOf":
		return x.schemas(name, arg, v)
	case "not":
		return bson.D{specified, because("child expression matched")}
	case "items", "additionalItems":
		return x.items(name, arg, single, v)
	case "additionalProperties":
		return x.additional(arg, single, v)
	case "patternProperties":
		return bson.D{{Key: "details", Value: x.patterns(arg, v)}}
	}
	return bson.D{{Key: "failingDependencies", Value: x.dependencies(arg, v)}}
}

func (x *explainedSchema) properties(arg, v bson.RawValue) bson.A {
	list := bson.A{}
	for it := value.Elements(arg.Value); it.Next(); {
		name, s := string(it.Name()), it.Value().Value
		f := value.Lookup(v.Value, name)
		if f.Type == 0 || !x.breaks(s, f) {
			continue
		}
		d := bson.D{{Key: "propertyName", Value: name}}
		for _, remark := range []string{"title", "description"} {
			if r := value.Lookup(s, remark); r.Type != 0 {
				d = append(d, bson.E{Key: remark, Value: r})
			}
		}
		list = append(list, append(d, bson.E{Key: "details", Value: x.rules(s, f)}))
	}
	return list
}

// missing are the names of arg that v does not have.
func missing(arg, v bson.RawValue) bson.A {
	list := bson.A{}
	for it := value.Elements(arg.Value); it.Next(); {
		if name := string(value.StringBytes(it.Value())); value.Lookup(v.Value, name).Type == 0 {
			list = append(list, name)
		}
	}
	return list
}

func (x *explainedSchema) schemas(name string, arg, v bson.RawValue) bson.D {
	broken, kept := bson.A{}, bson.A{}
	i := int32(0)
	for it := value.Elements(arg.Value); it.Next(); i++ {
		if x.breaks(it.Value().Value, v) {
			broken = append(broken, bson.D{{Key: "index", Value: i}, {Key: "details", Value: x.rules(it.Value().Value, v)}})
		} else {
			kept = append(kept, i)
		}
	}
	if name == "oneOf" && len(kept) > 0 {
		return bson.D{{Key: "reason", Value: "more than one subschema matched"}, {Key: "matchingSchemaIndexes", Value: kept}}
	}
	return bson.D{{Key: "schemasNotSatisfied", Value: broken}}
}

func (x *explainedSchema) items(name string, arg bson.RawValue, single bson.Raw, v bson.RawValue) bson.D {
	from := 0
	if name == "additionalItems" {
		from = value.Count(value.Lookup(single, "items").Value)
	}
	i := 0
	for it := value.Elements(v.Value); it.Next(); i++ {
		s := arg
		if name == "items" && arg.Type == bson.TypeArray {
			s = value.At(arg.Value, i)
		}
		if i < from || s.Type != bson.TypeEmbeddedDocument || !x.breaks(s.Value, it.Value()) {
			continue
		}
		return bson.D{{Key: "reason", Value: "At least one item did not match the sub-schema"}, {Key: "itemIndex", Value: int32(i)},
			{Key: "details", Value: x.rules(s.Value, it.Value())}}
	}
	return bson.D{{Key: "reason", Value: "found additional items"}, {Key: "additionalItems", Value: behind(v, from)}}
}

// behind are the elements from position i on.
func behind(v bson.RawValue, i int) bson.RawValue {
	var list []bson.RawValue
	for it := value.Elements(v.Value); it.Next(); i-- {
		if i <= 0 {
			list = append(list, it.Value())
		}
	}
	return array(list)
}

func (x *explainedSchema) additional(arg bson.RawValue, single bson.Raw, v bson.RawValue) bson.D {
	names := bson.A{}
	for it := value.Elements(v.Value); it.Next(); {
		// A document of this field alone breaks the keyword if the field does.
		only := value.Document(document(func(dst []byte) []byte { return appendValue(dst, string(it.Name()), it.Value()) }))
		if !x.breaks(single, only) {
			continue
		}
		if arg.Type == bson.TypeEmbeddedDocument {
			return bson.D{{Key: "reason", Value: "at least one additional property did not match the subschema"},
				{Key: "failingProperty", Value: string(it.Name())}, {Key: "details", Value: x.rules(arg.Value, it.Value())}}
		}
		names = append(names, string(it.Name()))
	}
	return bson.D{{Key: "specifiedAs", Value: bson.D{{Key: "additionalProperties", Value: arg}}}, {Key: "additionalProperties", Value: names}}
}

func (x *explainedSchema) patterns(arg, v bson.RawValue) bson.A {
	list := bson.A{}
	for it := value.Elements(arg.Value); it.Next(); {
		re, err := newPattern(string(it.Name()), "")
		if err != nil {
			x.err = err
			return list
		}
		for f := value.Elements(v.Value); f.Next(); {
			found, err := re.match(f.Name())
			if err != nil {
				x.err = err
			}
			if found && x.breaks(it.Value().Value, f.Value()) {
				list = append(list, bson.D{{Key: "propertyName", Value: string(f.Name())}, {Key: "regexMatched", Value: string(it.Name())},
					{Key: "details", Value: x.rules(it.Value().Value, f.Value())}})
			}
		}
	}
	return list
}

func (x *explainedSchema) dependencies(arg, v bson.RawValue) bson.A {
	list := bson.A{}
	for it := value.Elements(arg.Value); it.Next(); {
		name, d := string(it.Name()), it.Value()
		if value.Lookup(v.Value, name).Type == 0 {
			continue
		}
		if d.Type == bson.TypeArray {
			if names := missing(d, v); len(names) > 0 {
				list = append(list, bson.D{{Key: "conditionalProperty", Value: name}, {Key: "missingProperties", Value: names}})
			}
		} else if x.breaks(d.Value, v) {
			list = append(list, bson.D{{Key: "conditionalProperty", Value: name}, {Key: "details", Value: x.rules(d.Value, v)}})
		}
	}
	return list
}
