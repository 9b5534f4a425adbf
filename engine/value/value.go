// Package value gives BSON values their meaning: one order over all of them, equality and hashing that agree with it, numbers
// of four types on one line, dotted paths into documents, and the checks that a document passes once when it enters.
//
// A value is a bson.RawValue, a view of bytes that somebody else owns; nothing here copies or decodes what it is not asked for.
// The zero RawValue (type 0) is Missing: what a path that leads nowhere reaches.
//
// Documents are checked by Validate where they come in. Behind that door every function here may be given any of their parts
// without an error return; on bytes that were never validated the functions still do not panic or read out of bounds: an
// iterator over a malformed document simply ends early, and says so by Iter.Bad.
//
// # Order
//
// Compare orders by rank of the type first, as MongoDB does:
//
//	MinKey < Missing, Undefined < Null < numbers < String, Symbol < Object < Array < BinData < ObjectID < Bool < Date
//	< Timestamp < Regex < DBPointer < Code < CodeWithScope < MaxKey
//
// Within a rank:
//
//   - Numbers are compared by their exact mathematical values, whatever their types: no conversion rounds. NaN equals itself
//     and is below all other numbers, -0 equals 0.
//   - Strings, symbols and code by bytes. Binary by length, then subtype, then bytes. Regular expressions by pattern, then options.
//   - Documents field by field: by the rank of the type, then by name, then by value; the shorter is less if it is a
//     prefix of the other. Arrays the same without names.
package value

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Missing is the absence of a value.
var Missing bson.RawValue

// Null is the null value.
var Null = bson.RawValue{Type: bson.TypeNull}

// IsMissing says whether v is the absence of a value.
func IsMissing(v bson.RawValue) bool { return v.Type == 0 }

// IsNullish says whether v is missing, null or undefined.
func IsNullish(v bson.RawValue) bool {
	return v.Type == 0 || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
}

// IsNumber says whether t is one of the four number types.
func IsNumber(t bson.Type) bool {
	return t == bson.TypeInt32 || t == bson.TypeDouble || t == bson.TypeInt64 || t == bson.TypeDecimal128
}

// Values from Go values. Each allocates its bytes.

func Int32(i int32) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt32, Value: binary.LittleEndian.AppendUint32(nil, uint32(i))}
}

func Int64(i int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt64, Value: binary.LittleEndian.AppendUint64(nil, uint64(i))}
}

func Double(f float64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDouble, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

func Decimal128(d bson.Decimal128) bson.RawValue {
	h, l := d.GetBytes()
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), l)
	return bson.RawValue{Type: bson.TypeDecimal128, Value: binary.LittleEndian.AppendUint64(b, h)}
}

func String(s string) bson.RawValue {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, len(s)+5), uint32(len(s)+1))
	return bson.RawValue{Type: bson.TypeString, Value: append(append(b, s...), 0)}
}

func Bool(t bool) bson.RawValue {
	if t {
		return bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}
	}
	return bson.RawValue{Type: bson.TypeBoolean, Value: []byte{0}}
}

func ObjectID(id bson.ObjectID) bson.RawValue {
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}

// Date is a date of ms milliseconds since 1970.
func Date(ms int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDateTime, Value: binary.LittleEndian.AppendUint64(nil, uint64(ms))}
}

func Timestamp(seconds, ordinal uint32) bson.RawValue {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 8), ordinal)
	return bson.RawValue{Type: bson.TypeTimestamp, Value: binary.LittleEndian.AppendUint32(b, seconds)}
}

// Document is doc as a value; the bytes are shared.
func Document(doc bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
}

// Array is the array that doc's bytes are, as a value; the bytes are shared.
func Array(doc []byte) bson.RawValue { return bson.RawValue{Type: bson.TypeArray, Value: doc} }

// StringBytes is the text of a String, Symbol or Code, shared with v; nil for any other type.
func StringBytes(v bson.RawValue) []byte {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return text(v.Value)
	}
	return nil
}

// text is the content of a length-prefixed string, without its NUL. The length was checked by valueSize.
func text(b []byte) []byte {
	if len(b) < 5 {
		return nil
	}
	return b[4 : len(b)-1]
}

// Truth is how a condition reads v: everything is true but false, numbers that are zero, null, undefined and missing.
func Truth(v bson.RawValue) bool {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return false
	case bson.TypeBoolean:
		return v.Value[0] != 0
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return ExactOf(v).Kind != ExactZero
	}
	return true
}
