package pipeline

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// builder writes a document or an array; its memory can be used again.
type builder struct {
	b []byte
	n int
}

func newDocument() *builder { return &builder{b: make([]byte, 4, 128)} }

func (b *builder) reset() { b.b, b.n = append(b.b[:0], 0, 0, 0, 0), 0 }

// field adds a field; a missing one is left out.
func (b *builder) field(name string, v bson.RawValue) {
	if v.Type == 0 {
		return
	}
	b.b = append(append(append(b.b, byte(v.Type)), name...), 0)
	b.b = append(b.b, v.Value...)
}

// add adds an element to an array; a missing one is null.
func (b *builder) add(v bson.RawValue) {
	t := v.Type
	if t == 0 {
		t = bson.TypeNull
	}
	b.b = append(strconv.AppendInt(append(b.b, byte(t)), int64(b.n), 10), 0)
	b.b = append(b.b, v.Value...)
	b.n++
}

// raw ends the document; its bytes are the builder's.
func (b *builder) raw() bson.Raw {
	b.b = append(b.b, 0)
	return bson.Raw(bsoncore.UpdateLength(b.b, 0, int32(len(b.b))))
}

func arrayOf(list []bson.RawValue) bson.RawValue {
	b := newDocument()
	for _, v := range list {
		b.add(v)
	}
	return value.Array(b.raw())
}

// setPath appends doc to dst with the value at a path replaced by v, or removed if v is missing. Documents on the way that are not
// there are made; what is there and is no document is replaced by one.
func setPath(dst []byte, doc []byte, names []string, v bson.RawValue) []byte {
	at, dst := bsoncore.ReserveLength(dst)
	found := false
	for it := value.Elements(doc); it.Next(); {
		if found || string(it.Name()) != names[0] {
			dst = append(append(append(dst, byte(it.Value().Type)), it.Name()...), 0)
			dst = append(dst, it.Value().Value...)
			continue
		}
		found = true
		dst = setField(dst, it.Value(), names, v)
	}
	if !found {
		dst = setField(dst, value.Missing, names, v)
	}
	dst = append(dst, 0)
	return bsoncore.UpdateLength(dst, at, int32(len(dst))-at)
}

func setField(dst []byte, old bson.RawValue, names []string, v bson.RawValue) []byte {
	if len(names) == 1 {
		if v.Type == 0 {
			return dst
		}
		dst = append(append(append(dst, byte(v.Type)), names[0]...), 0)
		return append(dst, v.Value...)
	}
	if old.Type != bson.TypeEmbeddedDocument {
		if v.Type == 0 {
			if old.Type != 0 {
				dst = append(append(append(dst, byte(old.Type)), names[0]...), 0)
				dst = append(dst, old.Value...)
			}
			return dst
		}
		old.Value = []byte{5, 0, 0, 0, 0}
	}
	dst = append(append(append(dst, byte(bson.TypeEmbeddedDocument)), names[0]...), 0)
	return setPath(dst, old.Value, names[1:], v)
}

// getPath is the value at a path through documents only.
func getPath(doc []byte, names []string) bson.RawValue {
	v := value.Document(doc)
	for _, name := range names {
		if v.Type != bson.TypeEmbeddedDocument {
			return value.Missing
		}
		v = value.Lookup(v.Value, name)
	}
	return v
}

// checkSize bounds a document that a stage makes.
func checkSize(who string, n int) error {
	if n > value.SizeMax {
		return mongoerr.BSONObjectTooLarge.Errorf("%s makes a document of %d bytes, and %d are allowed", who, n, value.SizeMax)
	}
	return nil
}
