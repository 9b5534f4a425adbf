package pipeline

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Values in records that leave the memory: the type's byte, the length as a uvarint, the bytes.

func appendValue(dst []byte, v bson.RawValue) []byte {
	dst = binary.AppendUvarint(append(dst, byte(v.Type)), uint64(len(v.Value)))
	return append(dst, v.Value...)
}

func appendValues(dst []byte, list []bson.RawValue) []byte {
	for _, v := range list {
		dst = appendValue(dst, v)
	}
	return dst
}

// cutValue takes the first value off b, as a view of it.
func cutValue(b []byte) (v bson.RawValue, rest []byte) {
	n, size := binary.Uvarint(b[1:])
	end := 1 + size + int(n)
	return bson.RawValue{Type: bson.Type(b[0]), Value: b[1+size : end : end]}, b[end:]
}
