package match

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// intOf is the number in an int32 or int64.
func intOf(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		return int64(int32(binary.LittleEndian.Uint32(v.Value))), true
	case bson.TypeInt64:
		return int64(binary.LittleEndian.Uint64(v.Value)), true
	}
	return 0, false
}

// wholeOf is v if it is a number, whole, and in the range of int64.
func wholeOf(v bson.RawValue) (int64, bool) {
	if !value.IsNumber(v.Type) {
		return 0, false
	}
	return value.AsInt64(v)
}

// truncated is v without its fraction, if v is a number in the range of int64.
func truncated(v bson.RawValue) (int64, bool) {
	if i, ok := intOf(v); ok {
		return i, true
	}
	if !value.IsNumber(v.Type) {
		return 0, false
	}
	switch x := value.ExactOf(v); x.Kind {
	case value.ExactInf, value.ExactNaN:
		return 0, false
	case value.ExactLarge:
		return math.MinInt64, x.Neg && x.Bits == math.Float64bits(1<<63)
	}
	return value.TruncateInt64(v), true
}

func isNaN(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(v.Value))
		return f != f
	case bson.TypeDecimal128:
		return v.Value[15]&0x7c == 0x7c
	}
	return false
}

// show is v for an error message, short.
func show(v bson.RawValue) string { return value.Brief(v, 200) }
