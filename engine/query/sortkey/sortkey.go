// Package sortkey puts documents in the order that a sort asks for: Parse reads {a: 1, b: -1}, an Extractor makes of each
// document a key whose bytes order as the documents shall, and a Sorter holds documents and gives them back in order, all or
// the first few, in bounded memory.
//
// A document's place is decided by the least of the keys that an index of the same pattern would hold of it (package key):
// an array counts by its least element where the order ascends and by its greatest where it descends, an empty array is
// undefined, below null, and missing is null. Fields that share an array are taken from one element of it, two different arrays are an
// error.
//
// Documents with equal keys stay in the order of their records, whichever plan found them first, so that pages cut out by
// skip and limit never overlap.
package sortkey

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// MongoDB's numbers of what can be wrong with a sort.
const (
	codeTooManyFields mongoerr.Code = 13103
	codeIllegalKey    mongoerr.Code = 15974
	codeMetaOnly      mongoerr.Code = 17312
	codeTwice         mongoerr.Code = 7472500
)

// Options are what a sort means beside what it says.
type Options struct {
	Collation key.Collation // nil: strings are ordered by their bytes
}

// Spec is a parsed sort. It is immutable.
type Spec struct {
	fields  []Field
	pattern key.Pattern
	natural int
}

// Field is one field of a sort.
type Field struct {
	Path       string
	Descending bool
}

// Parse reads a sort. An empty one is nil without an error: any order will do.
func Parse(spec bson.Raw, opts Options) (*Spec, error) {
	s := &Spec{pattern: key.Pattern{Collation: opts.Collation}}
	for it := value.Elements(spec); it.Next(); {
		name, v := string(it.Name()), it.Value()
		if name == "$natural" {
			n, err := direction(name, v)
			if err != nil {
				return nil, err
			}
			if value.Count(spec) > 1 {
				return nil, mongoerr.BadValue.Errorf("cannot include '$natural' in a compound sort: %s", value.Brief(value.Document(spec), 200))
			}
			s.natural = n
			return s, nil
		}
		if err := s.add(name, v); err != nil {
			return nil, err
		}
	}
	if s.fields == nil {
		return nil, nil
	}
	return s, nil
}

func (s *Spec) add(name string, v bson.RawValue) error {
	if v.Type == bson.TypeEmbeddedDocument {
		first := value.Elements(v.Value)
		if first.Next() && string(first.Name()) == "$meta" {
			return mongoerr.NotImplemented.Errorf("sorting by $meta (at '%s') is not implemented", name)
		}
		return codeMetaOnly.Errorf("$meta is the only expression supported by $sort right now (at '%s')", name)
	}
	if err := checkPath(name); err != nil {
		return err
	}
	n, err := direction(name, v)
	if err != nil {
		return err
	}
	for _, f := range s.fields {
		if f.Path == name {
			return codeTwice.Errorf("$sort key must not contain duplicate keys (duplicate: '%s')", name)
		}
	}
	if len(s.fields) == key.FieldsMax {
		return codeTooManyFields.Errorf("too many compound keys: a sort has at most %d", key.FieldsMax)
	}
	f := key.Field{Path: value.ParsePath(name)}
	if n < 0 {
		f.Kind = key.Descending
	}
	s.pattern.Fields = append(s.pattern.Fields, f)
	s.fields = append(s.fields, Field{name, n < 0})
	return nil
}

func direction(name string, v bson.RawValue) (int, error) {
	if !value.IsNumber(v.Type) {
		return 0, codeIllegalKey.Errorf("illegal key in $sort specification: %s: %s", name, value.Brief(v, 200))
	}
	switch n := value.TruncateInt64(v); n {
	case 1, -1:
		return int(n), nil
	}
	return 0, mongoerr.LocationSortOrder.Errorf("$sort key ordering must be 1 (for ascending) or -1 (for descending), not %s at '%s'",
		value.Brief(v, 200), name)
}

func checkPath(name string) error {
	if name == "" {
		return mongoerr.LocationFieldPathEmpty.Errorf("FieldPath cannot be constructed with empty string")
	}
	if strings.HasSuffix(name, ".") {
		return mongoerr.LocationFieldPathTrailingDot.Errorf("FieldPath must not end with a '.' ('%s')", name)
	}
	i := 0
	for part := range strings.SplitSeq(name, ".") {
		switch {
		case part == "":
			return mongoerr.LocationFieldNameEmpty.Errorf("FieldPath field names may not be empty strings ('%s')", name)
		case part[0] == '$' && (i == 0 || part != "$id" && part != "$ref" && part != "$db"):
			return mongoerr.LocationFieldPathDollar.Errorf("FieldPath field names may not start with '$' ('%s')", name)
		}
		i++
	}
	return nil
}

// Fields are the fields in their order, none if the sort is {$natural: ±1}. They are not to be changed.
func (s *Spec) Fields() []Field { return s.fields }

// Natural is 1 or -1 for {$natural: ±1}, the order of the records, and else 0.
func (s *Spec) Natural() int { return s.natural }

// Extractor makes keys. It has memory of its own and belongs to one goroutine.
type Extractor struct {
	spec   *Spec
	set    key.Set
	names  []string // of the fields, if each is one of the document itself
	values []bson.RawValue
}

// Extractor is a new Extractor for s.
func (s *Spec) Extractor() *Extractor {
	x := &Extractor{spec: s, values: make([]bson.RawValue, len(s.fields))}
	for _, f := range s.fields {
		if strings.IndexByte(f.Path, '.') >= 0 {
			x.names = nil
			break
		}
		x.names = append(x.names, f.Path)
	}
	return x
}

// Append appends doc's key. An error is a client's: BadValue for parallel arrays, 16746 for a path of two meanings.
func (x *Extractor) Append(dst []byte, doc bson.Raw) ([]byte, error) {
	if x.names != nil {
		var ok bool
		if dst, ok = x.plain(dst, doc); ok {
			return dst, nil
		}
	}
	return x.spec.pattern.SortKey(dst, &x.set, doc)
}

// plain is the key of a document whose fields are no arrays, in one walk over it.
func (x *Extractor) plain(dst []byte, doc bson.Raw) ([]byte, bool) {
	value.LookupAll(doc, x.names, x.values)
	at := len(dst)
	for i, v := range x.values {
		if v.Type == bson.TypeArray {
			return dst[:at], false
		}
		dst = x.spec.pattern.AppendField(dst, i, v)
	}
	return dst, true
}
