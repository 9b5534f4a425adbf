package match

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// A scan of a collection spends its time in stepping over elements that the filter does not name. So this is value.Iter once more,
// without what the filter can do without: names are looked at eight bytes at a time, and a value is cut out only when
// it is wanted.

// element is where the element at pos has its name's end (the NUL) and its own; end is 0 if it is malformed. The element must
// end before the last byte of doc.
func element(doc []byte, pos int) (name, end int) {
	name = -1
	if pos+9 < len(doc) {
		if z := zeros(binary.LittleEndian.Uint64(doc[pos+1:])); z != 0 {
			name = pos + 1 + bits.TrailingZeros64(z)>>3
		}
	}
	if name < 0 {
		n := bytes.IndexByte(doc[pos+1:], 0)
		if n < 0 {
			return 0, 0
		}
		name = pos + 1 + n
	}
	rest := len(doc) - 1 - (name + 1)
	if rest < 0 {
		return 0, 0
	}
	size := int(fixed[doc[pos]])
	if size <= 0 {
		if size == prefixed && rest >= 5 {
			size = int(int32(binary.LittleEndian.Uint32(doc[name+1:])))
			if size < 1 {
				return 0, 0
			}
			size += int(beside[doc[pos]])
			if size < 5 {
				return 0, 0
			}
		} else if size = value.Size(bson.Type(doc[pos]), doc[name+1:len(doc)-1]); size < 0 {
			return 0, 0
		}
	}
	if size > rest {
		return 0, 0
	}
	return name, name + 1 + size
}

// fields are the names that one pass over a document looks for.
type fields struct {
	names []string
	heads [slotMax]uint64 // see head
}

// head is a name of up to 7 bytes as element sees it. Longer names have a head that no name has.
func head(name string) uint64 {
	if len(name) > 7 {
		return math.MaxUint64
	}
	var b [8]byte
	copy(b[:], name)
	return binary.LittleEndian.Uint64(b[:])
}

func (f *fields) add(name string) {
	f.heads[len(f.names)] = head(name)
	f.names = append(f.names, name)
}

// slot is the slot of the name from pos+1 to end, or -1.
func (f *fields) slot(doc []byte, pos, end int) int {
	if n := end - pos - 1; n < 8 && pos+9 < len(doc) {
		h := binary.LittleEndian.Uint64(doc[pos+1:]) & (1<<(8*n) - 1)
		for i := range f.names {
			if f.heads[i&(slotMax-1)] == h {
				return i
			}
		}
		return -1
	}
	for i, name := range f.names {
		if string(doc[pos+1:end]) == name {
			return i
		}
	}
	return -1
}

// extent is where a value lies in a document. It is smaller than the value, since a match clears as many as there are slots.
type extent struct {
	typ        bson.Type
	start, end uint32
}

func (x extent) value(doc []byte) bson.RawValue {
	return bson.RawValue{Type: x.typ, Value: doc[x.start:x.end:x.end]}
}

// root is the document's field in a slot.
func (e *eval) root(slot int) bson.RawValue {
	if e.seen>>slot&1 != 0 {
		return e.found[slot].value(e.doc)
	}
	doc, f, pos := e.doc, e.fields, e.pos
	heads := f.heads[:len(f.names)&(2*slotMax-1)]
	if pos == 4 && !sound(doc) {
		return value.Missing
	}
	last := len(doc) - 1
	for pos < last {
		var head uint64
		start, end := 0, 0
		if pos+12 <= last {
			// Nearly all elements pass here: a name of up to 7 bytes, a common type.
			x := binary.LittleEndian.Uint64(doc[pos+1:])
			if z := zeros(x); z != 0 {
				n := bits.TrailingZeros64(z) &^ 7 // bits of the name
				start = pos + n>>3 + 2
				head = x & (1<<n - 1)
				t := doc[pos]
				if size := int(fixed[t]); size > 0 {
					end = start + size
				} else if size == prefixed && start+4 <= last {
					if size = int(int32(binary.LittleEndian.Uint32(doc[start:]))); size > 0 {
						end = start + size + int(beside[t])
					}
				}
			}
		}
		i := -1
		if end != 0 {
			if end > last {
				pos = last
				break
			}
			for k, h := range heads {
				if h == head {
					i = k
					break
				}
			}
		} else {
			name := 0
			if name, end = element(doc, pos); end == 0 {
				pos = last
				break
			}
			start = name + 1
			i = f.slot(doc, pos, name)
		}
		if i >= 0 && e.seen>>i&1 == 0 {
			e.seen |= 1 << i
			e.found[i] = extent{bson.Type(doc[pos]), uint32(start), uint32(end)}
			if i == slot {
				e.pos = end
				return e.found[i].value(doc)
			}
		}
		pos = end
	}
	e.pos = pos
	return value.Missing
}

// prefixed marks the types whose length stands before them; 0 marks those that value.Size sees to.
const prefixed = -1

var fixed = [256]int8{
	bson.TypeDouble: 8, bson.TypeDateTime: 8, bson.TypeTimestamp: 8, bson.TypeInt64: 8, bson.TypeInt32: 4, bson.TypeBoolean: 1,
	bson.TypeObjectID: 12, bson.TypeDecimal128: 16,
	bson.TypeString: prefixed, bson.TypeEmbeddedDocument: prefixed, bson.TypeArray: prefixed,
}

// beside is what a length does not count, by type.
var beside = [256]int8{bson.TypeString: 4}

// zeros has the highest bit of a byte set for the first byte of x that is 0, and maybe for some behind it.
func zeros(x uint64) uint64 {
	const low, high = 0x0101010101010101, 0x8080808080808080
	return (x - low) &^ x & high
}

// sound says whether doc's own length is right.
func sound(doc []byte) bool {
	n := len(doc)
	return n >= 5 && uint64(binary.LittleEndian.Uint32(doc)) == uint64(n)
}

// valueAt cuts the value out of the element at pos.
func valueAt(doc []byte, pos, name, end int) bson.RawValue {
	return bson.RawValue{Type: bson.Type(doc[pos]), Value: doc[name+1 : end : end]}
}

// lookup is the first field of doc with this name, or Missing.
func lookup(doc []byte, field string) bson.RawValue {
	if !sound(doc) {
		return value.Missing
	}
	for pos := 4; pos < len(doc)-1; {
		name, end := element(doc, pos)
		if end == 0 {
			break
		}
		if name-pos-1 == len(field) && string(doc[pos+1:name]) == field {
			return valueAt(doc, pos, name, end)
		}
		pos = end
	}
	return value.Missing
}
