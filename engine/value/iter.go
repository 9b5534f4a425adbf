package value

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Iter walks the elements of a document or an array in place:
//
//	for it := value.Elements(doc); it.Next(); {
//		if string(it.Name()) == "_id" { … it.Value() … }
//	}
//
// Names and values are views of the document's bytes. Invariant: a value that Next accepted has exactly the length that its
// type and prefix say, so reading its fixed parts cannot fail.
type Iter struct {
	rest []byte // from the next element's type byte on, without the closing NUL
	name []byte
	val  bson.RawValue
	bad  bool
}

// Elements starts before the first element of a document or of an array's bytes.
func Elements(doc []byte) Iter {
	n := len(doc)
	if n < 5 || uint64(binary.LittleEndian.Uint32(doc)) != uint64(n) || doc[n-1] != 0 {
		return Iter{bad: true}
	}
	return Iter{rest: doc[4 : n-1]}
}

// Next moves to the next element. It is false at the end, and at the first malformed element.
func (it *Iter) Next() bool {
	b := it.rest
	if len(b) == 0 {
		return false
	}
	t := bson.Type(b[0])
	n := bytes.IndexByte(b[1:], 0)
	if n < 0 {
		return it.fail()
	}
	data := b[n+2:]
	size := valueSize(t, data)
	if size < 0 || size > len(data) {
		return it.fail()
	}
	it.name = b[1 : n+1]
	it.val = bson.RawValue{Type: t, Value: data[:size:size]}
	it.rest = data[size:]
	return true
}

func (it *Iter) fail() bool {
	it.rest, it.bad = nil, true
	return false
}

// Name is the current element's name; for arrays its position in decimal, as it stands there.
func (it *Iter) Name() []byte { return it.name }

// Value is the current element's value.
func (it *Iter) Value() bson.RawValue { return it.val }

// Bad says that the iteration ended because of malformed bytes.
func (it *Iter) Bad() bool { return it.bad }

// Lookup is the first field of doc with this name, or Missing.
func Lookup(doc []byte, name string) bson.RawValue {
	n := len(doc)
	if n < 5 || uint64(binary.LittleEndian.Uint32(doc)) != uint64(n) {
		return Missing
	}
	b := doc[4 : n-1]
	for len(b) > 0 {
		t := bson.Type(b[0])
		n := bytes.IndexByte(b[1:], 0)
		if n < 0 {
			return Missing
		}
		data := b[n+2:]
		size := valueSize(t, data)
		if size < 0 || size > len(data) {
			return Missing
		}
		if n == len(name) && string(b[1:n+1]) == name {
			return bson.RawValue{Type: t, Value: data[:size:size]}
		}
		b = data[size:]
	}
	return Missing
}

// LookupAll puts into out the first fields of doc with these names, as Lookup finds them one by one.
func LookupAll(doc []byte, names []string, out []bson.RawValue) {
	clear(out)
	left := len(names)
	n := len(doc)
	if n < 5 || uint64(binary.LittleEndian.Uint32(doc)) != uint64(n) {
		return
	}
	for b := doc[4 : n-1]; len(b) > 0 && left > 0; {
		t := bson.Type(b[0])
		n := bytes.IndexByte(b[1:], 0)
		if n < 0 {
			return
		}
		data := b[n+2:]
		size := valueSize(t, data)
		if size < 0 || size > len(data) {
			return
		}
		for i, name := range names {
			if n == len(name) && string(b[1:n+1]) == name && out[i].Type == 0 {
				out[i] = bson.RawValue{Type: t, Value: data[:size:size]}
				left--
			}
		}
		b = data[size:]
	}
}

// At is element i of an array's bytes, or Missing.
func At(array []byte, i int) bson.RawValue {
	if i < 0 {
		return Missing
	}
	for it := Elements(array); it.Next(); i-- {
		if i == 0 {
			return it.val
		}
	}
	return Missing
}

// Count is how many elements a document or an array has.
func Count(doc []byte) int {
	n := 0
	for it := Elements(doc); it.Next(); n++ {
	}
	return n
}

const (
	sizeVaries  = -1
	sizeUnknown = -2
)

var sizes = func() (s [256]int8) {
	for i := range s {
		s[i] = sizeUnknown
	}
	for _, t := range types {
		s[t.typ] = sizeVaries
	}
	// order: each sets its own place
	for t, n := range map[bson.Type]int8{
		bson.TypeDouble: 8, bson.TypeDateTime: 8, bson.TypeTimestamp: 8, bson.TypeInt64: 8, bson.TypeInt32: 4, bson.TypeBoolean: 1,
		bson.TypeObjectID: 12, bson.TypeDecimal128: 16,
		bson.TypeNull: 0, bson.TypeUndefined: 0, bson.TypeMinKey: 0, bson.TypeMaxKey: 0,
	} {
		s[t] = n
	}
	return s
}()

// valueSize is the length of the value of type t at the start of b, which the caller compares with len(b); -1 if its own
// bytes contradict themselves. A length it returns leaves room for all parts that the type has.
func valueSize(t bson.Type, b []byte) int {
	if n := sizes[t]; n >= 0 {
		return int(n)
	} else if n == sizeUnknown {
		return -1
	}
	if t == bson.TypeRegex {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return -1
		}
		j := bytes.IndexByte(b[i+1:], 0)
		if j < 0 {
			return -1
		}
		return i + j + 2
	}
	if len(b) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 0 {
		return -1
	}
	switch t {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		if n < 1 {
			return -1
		}
		return n + 4
	case bson.TypeBinary:
		return n + 5
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		if n < 5 {
			return -1
		}
		return n
	case bson.TypeDBPointer:
		if n < 1 {
			return -1
		}
		return n + 16
	case bson.TypeCodeWithScope:
		if n < 14 || len(b) < 8 {
			return -1
		}
		if s := int(int32(binary.LittleEndian.Uint32(b[4:]))); s < 1 || s > n-13 {
			return -1
		}
		return n
	}
	return -1
}

// codeWithScope cuts a CodeWithScope into its code and its scope.
func codeWithScope(b []byte) (code, scope []byte) {
	n := int(binary.LittleEndian.Uint32(b[4:]))
	return b[8 : 8+n-1], b[8+n:]
}

// regex cuts a Regex into its pattern and its options.
func regex(b []byte) (pattern, options []byte) {
	i := bytes.IndexByte(b, 0)
	return b[:i], b[i+1 : len(b)-1]
}
