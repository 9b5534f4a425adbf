package expr

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// builder writes a document or an array.
type builder struct {
	b     []byte
	n     int
	array bool
	large bool // beyond sizeMax: nothing is added any more
}

func newArray() builder    { return builder{b: make([]byte, 4, 64), array: true} }
func newDocument() builder { return builder{b: make([]byte, 4, 64)} }

// add adds an element to an array; a missing one is null.
func (b *builder) add(v bson.RawValue) {
	if b.large {
		return
	}
	t := v.Type
	if t == 0 {
		t = bson.TypeNull
	}
	b.b = append(strconv.AppendInt(append(b.b, byte(t)), int64(b.n), 10), 0)
	b.b = append(b.b, v.Value...)
	b.n++
	b.large = len(b.b) > sizeMax
}

// field adds a field to a document; a missing one is left out.
func (b *builder) field(name string, v bson.RawValue) {
	if v.Type == 0 || b.large {
		return
	}
	b.b = append(append(append(b.b, byte(v.Type)), name...), 0)
	b.b = append(b.b, v.Value...)
	b.n++
	b.large = len(b.b) > sizeMax
}

// done is what was written.
func (b *builder) done() (bson.RawValue, error) {
	if b.large {
		return value.Missing, errTooLarge()
	}
	b.b = append(b.b, 0)
	b.b = bsoncore.UpdateLength(b.b, 0, int32(len(b.b)))
	if b.array {
		return value.Array(b.b), nil
	}
	return value.Document(b.b), nil
}

func errTooLarge() error {
	return mongoerr.ExceededMemoryLimit.Errorf("an expression makes a value of more than %d bytes", sizeMax)
}

// elements are the elements of an array.
func elements(v bson.RawValue) []bson.RawValue {
	var list []bson.RawValue
	for it := value.Elements(v.Value); it.Next(); {
		list = append(list, it.Value())
	}
	return list
}

// arrayOf is an array of values.
func arrayOf(list []bson.RawValue) (bson.RawValue, error) {
	b := newArray()
	for _, v := range list {
		b.add(v)
	}
	return b.done()
}

func typeName(v bson.RawValue) string { return value.TypeName(v.Type) }

func isArray(v bson.RawValue) bool { return v.Type == bson.TypeArray }

func isDocument(v bson.RawValue) bool { return v.Type == bson.TypeEmbeddedDocument }

func isString(v bson.RawValue) bool { return v.Type == bson.TypeString }

func isNumber(v bson.RawValue) bool { return value.IsNumber(v.Type) }

// nullish says whether one of the values is null or missing.
func nullish(values ...bson.RawValue) bool {
	for _, v := range values {
		if value.IsNullish(v) {
			return true
		}
	}
	return false
}

func text(v bson.RawValue) string { return string(value.StringBytes(v)) }

// asInt32 is a whole number that fits 32 bits.
func asInt32(v bson.RawValue) (int, bool) {
	if !isNumber(v) {
		return 0, false
	}
	n, ok := value.AsInt64(v)
	return int(n), ok && n == int64(int32(n))
}
