package command

import (
	"encoding/binary"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// field is one field of a command, or of one of its statements. It aliases the request.
type field struct {
	parent string // "find", "update.updates"
	name   string
	v      bson.RawValue
	seq    *Sequence // the field came as a sequence; v is not set
}

// fields calls f with each of the command's own fields: not the first, not the generic ones. f says whether the field is one that the
// command has. A field that is null is as good as absent, and f is only asked whether it knows it if it must be.
func (c *call) fields(f func(f field) (known bool, err error)) error {
	var seen seen
	it := value.Elements(c.req.Body)
	it.Next()
	for it.Next() {
		if isGeneric(it.Name()) {
			continue
		}
		if err := seen.visit(field{parent: c.command.name, name: c.client.name(it.Name()), v: it.Value()}, f); err != nil {
			return err
		}
	}
	for i := range c.req.Sequences {
		s := &c.req.Sequences[i]
		if err := seen.visit(field{parent: c.command.name, name: s.Name, seq: s}, f); err != nil {
			return err
		}
	}
	return nil
}

// noFields is fields for a command that has none of its own.
func (c *call) noFields() error {
	return c.fields(func(field) (bool, error) { return false, nil })
}

// fieldsOf is fields for a document inside the command.
func fieldsOf(parent string, doc bson.Raw, f func(f field) (known bool, err error)) error {
	var seen seen
	for it := value.Elements(doc); it.Next(); {
		if err := seen.visit(field{parent: parent, name: string(it.Name()), v: it.Value()}, f); err != nil {
			return err
		}
	}
	return nil
}

// seen are the names that were known. There are only as many as the command has fields: a second one is an error at once.
type seen struct {
	names [8]string // the first of them
	count int
	more  []string
}

func (s *seen) visit(f field, visit func(f field) (bool, error)) error {
	known, err := visit(f)
	if !known {
		return unknown(f.parent, f.name)
	}
	if slices.Contains(s.names[:min(s.count, len(s.names))], f.name) || slices.Contains(s.more, f.name) {
		return mongoerr.LocationCommandFieldTwice.Errorf("BSON field '%s.%s' is a duplicate field", f.parent, f.name)
	}
	if s.count < len(s.names) {
		s.names[s.count] = f.name
	} else {
		s.more = append(s.more, f.name)
	}
	s.count++
	return err
}

func unknown(parent, name string) error {
	return mongoerr.LocationCommandFieldUnknown.Errorf("BSON field '%s.%s' is an unknown field.", parent, name)
}

func missing(parent, name string) error {
	return mongoerr.LocationCommandFieldMissing.Errorf("BSON field '%s.%s' is missing but a required field", parent, name)
}

func typeName(t bson.Type) string {
	if t == 0 {
		return "missing"
	}
	return value.TypeName(t)
}

// wrongType is the error of a field that should have been of another type.
func (f field) wrongType(want string) error {
	got := "array"
	if f.seq == nil {
		got = typeName(f.v.Type)
	}
	return mongoerr.TypeMismatch.Errorf("BSON field '%s.%s' is the wrong type '%s', expected type '%s'", f.parent, f.name, got, want)
}

// null: the field might as well not be there.
func (f field) null() bool {
	return f.seq == nil && (f.v.Type == bson.TypeNull || f.v.Type == bson.TypeUndefined)
}

// Each of the following sets *dst to the field's value, and leaves it as it is if the field is null.

func (f field) bool(dst *bool) error {
	switch {
	case f.null():
	case f.v.Type == bson.TypeBoolean:
		*dst = f.v.Value[0] != 0
	case value.IsNumber(f.v.Type):
		*dst = value.Truth(f.v)
	default:
		return f.wrongType("bool")
	}
	return nil
}

// int64 takes any number, cut off to its whole part and to the range.
func (f field) int64(dst *int64) error {
	if f.null() {
		return nil
	}
	if !value.IsNumber(f.v.Type) {
		return f.wrongType("long")
	}
	*dst = whole(f.v)
	return nil
}

// whole is a number's whole part; 0 for NaN.
func whole(v bson.RawValue) int64 {
	x := value.ExactOf(v)
	switch {
	case x.Kind == value.ExactWhole && x.Neg:
		return -int64(x.Whole)
	case x.Kind == value.ExactWhole:
		return int64(x.Whole)
	case (x.Kind == value.ExactLarge || x.Kind == value.ExactInf) && x.Neg:
		return math.MinInt64
	case x.Kind == value.ExactLarge || x.Kind == value.ExactInf:
		return math.MaxInt64
	}
	return 0
}

// natural is int64 for a field that must not be negative.
func (f field) natural(dst *int64) error {
	var n int64
	if err := f.int64(&n); err != nil {
		return err
	}
	if n < 0 {
		return mongoerr.LocationValueNegative.Errorf("BSON field '%s' value must be >= 0, actual value '%d'", f.name, n)
	}
	if !f.null() {
		*dst = n
	}
	return nil
}

func (f field) string(dst *string) error {
	switch {
	case f.null():
	case f.v.Type == bson.TypeString:
		*dst = string(value.StringBytes(f.v))
	default:
		return f.wrongType("string")
	}
	return nil
}

func (f field) document(dst *bson.Raw) error {
	switch {
	case f.null():
	case f.v.Type == bson.TypeEmbeddedDocument:
		*dst = bson.Raw(f.v.Value)
	default:
		return f.wrongType("object")
	}
	return nil
}

// documents takes an array of documents, or a sequence.
func (f field) documents(dst *[]bson.Raw) error {
	if f.null() {
		return nil
	}
	docs := (*dst)[:0]
	switch {
	case f.seq != nil:
		for rest := f.seq.Docs; len(rest) > 0; {
			n := binary.LittleEndian.Uint32(rest)
			docs = append(docs, bson.Raw(rest[:n:n]))
			rest = rest[n:]
		}
	case f.v.Type == bson.TypeArray:
		for it := value.Elements(f.v.Value); it.Next(); {
			e := field{parent: f.parent + "." + f.name, name: string(it.Name()), v: it.Value()}
			if e.v.Type != bson.TypeEmbeddedDocument {
				return e.wrongType("object")
			}
			docs = append(docs, bson.Raw(e.v.Value))
		}
	default:
		return f.wrongType("array")
	}
	*dst = docs
	return nil
}

// hint takes an index's name or its key pattern.
func (f field) hint(dst *bson.RawValue) error {
	switch {
	case f.null():
	case f.v.Type == bson.TypeString, f.v.Type == bson.TypeEmbeddedDocument:
		*dst = f.v
		if f.v.Type == bson.TypeEmbeddedDocument && value.Count(f.v.Value) == 0 {
			*dst = bson.RawValue{}
		}
	default:
		return mongoerr.FailedToParse.Errorf("Hint must be a string or an object")
	}
	return nil
}

// ignored takes a field that changes nothing here, and still wants it to be of its type.
func (f field) ignored(types ...bson.Type) error {
	if f.null() {
		return nil
	}
	for _, t := range types {
		if f.v.Type == t && f.seq == nil || t == bson.TypeBoolean && value.IsNumber(f.v.Type) {
			return nil
		}
	}
	return f.wrongType(typeName(types[0]))
}

// unsupported refuses a field whose meaning we do not have yet, unless it says nothing: null, false, or empty.
func (f field) unsupported() error {
	switch {
	case f.null(),
		f.v.Type == bson.TypeBoolean && f.v.Value[0] == 0,
		(f.v.Type == bson.TypeEmbeddedDocument || f.v.Type == bson.TypeArray) && value.Count(f.v.Value) == 0:
		return nil
	}
	return mongoerr.NotImplemented.Errorf("The field '%s.%s' is not implemented yet", f.parent, f.name)
}
