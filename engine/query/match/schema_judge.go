package match

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// judge holds values against a schema. err is a pattern's that gave up; the judgement is void then.
type judge struct{ err error }

func (j *judge) valid(s *schema, v bson.RawValue) bool {
	switch {
	case s.types != nil && !s.types.Has(v.Type):
		return false
	case s.enum != nil && !slices.ContainsFunc(s.enum, func(w bson.RawValue) bool { return sameUnordered(v, w) }):
		return false
	}
	for _, c := range s.allOf {
		if !j.valid(c, v) {
			return false
		}
	}
	if s.anyOf != nil && j.count(s.anyOf, v, 1) == 0 || s.oneOf != nil && j.count(s.oneOf, v, 2) != 1 {
		return false
	}
	if s.not != nil && j.valid(s.not, v) {
		return false
	}
	switch {
	case value.IsNumber(v.Type):
		return s.number.valid(v)
	case v.Type == bson.TypeString:
		return j.str(&s.str, value.StringBytes(v))
	case v.Type == bson.TypeEmbeddedDocument:
		return j.object(&s.object, v)
	case v.Type == bson.TypeArray:
		return j.array(&s.array, v)
	}
	return true
}

// count is how many of list v fulfils, counted up to enough.
func (j *judge) count(list []*schema, v bson.RawValue, enough int) int {
	n := 0
	for _, c := range list {
		if j.valid(c, v) {
			if n++; n == enough {
				break
			}
		}
	}
	return n
}

func (r *numberRules) valid(v bson.RawValue) bool {
	if r.minimum.Type != 0 {
		if d := value.Compare(v, r.minimum); isNaN(v) != isNaN(r.minimum) || d < 0 || d == 0 && r.exclusiveMinimum {
			return false
		}
	}
	if r.maximum.Type != 0 {
		if d := value.Compare(v, r.maximum); isNaN(v) != isNaN(r.maximum) || d > 0 || d == 0 && r.exclusiveMaximum {
			return false
		}
	}
	return r.multipleOf.Type == 0 || multiple(v, r.multipleOf)
}

func multipleDouble(v, m float64) bool { return math.Mod(v, m) == 0 }

func multipleDecimal(v, m bson.RawValue) bool {
	a, b := value.AsDecimal(v), value.AsDecimal(m)
	if a.Form != apd.Finite || b.Form != apd.Finite {
		return false
	}
	var rest apd.Decimal
	if _, err := value.DecimalContext.Rem(&rest, a, b); err != nil {
		return false
	}
	return rest.IsZero()
}

func (j *judge) str(r *stringRules, text []byte) bool {
	if r.minLength != nil || r.maxLength != nil {
		n := int64(utf8.RuneCount(text))
		if r.minLength != nil && n < *r.minLength || r.maxLength != nil && n > *r.maxLength {
			return false
		}
	}
	return r.pattern == nil || j.found(r.pattern, text)
}

func (j *judge) found(re *pattern, text []byte) bool {
	if j.err != nil {
		return false
	}
	ok, err := re.match(text)
	j.err = err
	return ok
}

func (j *judge) object(r *objectRules, v bson.RawValue) bool {
	if r.minProperties != nil || r.maxProperties != nil {
		n := int64(value.Count(v.Value))
		if r.minProperties != nil && n < *r.minProperties || r.maxProperties != nil && n > *r.maxProperties {
			return false
		}
	}
	for _, name := range r.required {
		if value.Lookup(v.Value, name).Type == 0 {
			return false
		}
	}
	for _, p := range r.properties {
		if f := value.Lookup(v.Value, p.name); f.Type != 0 && !j.valid(p.schema, f) {
			return false
		}
	}
	for _, d := range r.dependencies {
		if value.Lookup(v.Value, d.name).Type == 0 {
			continue
		}
		for _, name := range d.names {
			if value.Lookup(v.Value, name).Type == 0 {
				return false
			}
		}
		if d.schema != nil && !j.valid(d.schema, v) {
			return false
		}
	}
	if r.patterns == nil && r.additional == nil {
		return true
	}
	for it := value.Elements(v.Value); it.Next(); {
		known := slices.ContainsFunc(r.properties, func(p property) bool { return p.name == string(it.Name()) })
		for _, p := range r.patterns {
			if j.found(p.re, it.Name()) {
				known = true
				if !j.valid(p.schema, it.Value()) {
					return false
				}
			}
		}
		if !known && r.additional != nil && !j.valid(r.additional, it.Value()) {
			return false
		}
	}
	return true
}

func (j *judge) array(r *arrayRules, v bson.RawValue) bool {
	if r.minItems != nil || r.maxItems != nil {
		n := int64(value.Count(v.Value))
		if r.minItems != nil && n < *r.minItems || r.maxItems != nil && n > *r.maxItems {
			return false
		}
	}
	it := value.Elements(v.Value)
	for k := 0; it.Next(); k++ {
		c := r.all
		switch {
		case k < len(r.each):
			c = r.each[k]
		case r.each != nil:
			c = r.additional
		}
		if c != nil && !j.valid(c, it.Value()) {
			return false
		}
	}
	return !r.unique || unique(v.Value)
}

// unique says whether no two elements of an array are the same.
func unique(array []byte) bool {
	var elems []bson.RawValue
	for it := value.Elements(array); it.Next(); {
		elems = append(elems, it.Value())
	}
	slices.SortFunc(elems, compareUnordered)
	for i := 1; i < len(elems); i++ {
		if compareUnordered(elems[i-1], elems[i]) == 0 {
			return false
		}
	}
	return true
}

// sameUnordered is equality as JSON schema has it: the order of a document's fields does not count.
func sameUnordered(a, b bson.RawValue) bool { return compareUnordered(a, b) == 0 }

// compareUnordered is an order of values in which documents with the same fields are the same.
func compareUnordered(a, b bson.RawValue) int {
	switch {
	case a.Type != b.Type:
		return value.Compare(a, b)
	case a.Type != bson.TypeEmbeddedDocument && a.Type != bson.TypeArray:
		return value.Compare(a, b)
	}
	fa, fb := fieldsOf(a), fieldsOf(b)
	for i := range min(len(fa), len(fb)) {
		if d := bytes.Compare(fa[i].name, fb[i].name); d != 0 {
			return d
		}
		if d := compareUnordered(fa[i].v, fb[i].v); d != 0 {
			return d
		}
	}
	return len(fa) - len(fb)
}

type field struct {
	name []byte
	v    bson.RawValue
}

// fieldsOf are a document's fields by name, or an array's elements.
func fieldsOf(v bson.RawValue) (f []field) {
	named := v.Type == bson.TypeEmbeddedDocument
	for it := value.Elements(v.Value); it.Next(); {
		if named {
			f = append(f, field{it.Name(), it.Value()})
		} else {
			f = append(f, field{nil, it.Value()})
		}
	}
	if named {
		slices.SortStableFunc(f, func(a, b field) int { return bytes.Compare(a.name, b.name) })
	}
	return f
}
