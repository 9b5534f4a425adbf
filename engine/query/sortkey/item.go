package sortkey

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// An item as bytes, for a Spill that writes to a file, little endian:
//
//	0      4      8     16       16+keySize
//	┌──────┬──────┬─────┬────────┬──────────┐
//	│ key  │ doc  │ id  │ key    │ document │
//	│ Size │ Size │     │        │          │
//	└──────┴──────┴─────┴────────┴──────────┘
//
// It is whole if and only if the two sizes fit what follows them.
const itemHeader = 16

var errItem = errors.New("sortkey: a spilled item is cut off")

// AppendItem appends an item's bytes.
func AppendItem(dst []byte, i Item) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(i.Key)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(i.Doc)))
	dst = binary.LittleEndian.AppendUint64(dst, i.ID)
	return append(append(dst, i.Key...), i.Doc...)
}

// ItemSize is the size of the item that b begins with, if b has its header.
func ItemSize(b []byte) (int, bool) {
	if len(b) < itemHeader {
		return 0, false
	}
	return itemHeader + int(binary.LittleEndian.Uint32(b)) + int(binary.LittleEndian.Uint32(b[4:])), true
}

// CutItem takes the first item off b. Its key and document are views of b.
func CutItem(b []byte) (i Item, rest []byte, err error) {
	n, ok := ItemSize(b)
	if !ok || n > len(b) {
		return Item{}, b, errItem
	}
	k := itemHeader + int(binary.LittleEndian.Uint32(b))
	return Item{Key: b[itemHeader:k:k], ID: binary.LittleEndian.Uint64(b[8:]), Doc: bson.Raw(b[k:n:n])}, b[n:], nil
}
