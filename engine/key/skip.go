package key

import (
	"bytes"
	"encoding/binary"
)

// nestMax bounds how deep FieldLen follows documents and arrays; Validate lets none in that are deeper.
const nestMax = 256

// FieldLen is the length of the first field in k, a key or what is left of one, in bytes; descending says that its bytes
// are inverted. It is 0 if k is cut short or is no key.
func FieldLen(k []byte, descending bool) int {
	s := skipper{k: k}
	if descending {
		s.flip = 0xff
	}
	return max(s.value(0, 0), 0)
}

// skipper walks over a key. Its methods take a position and give the one behind, or -1, which they also take.
type skipper struct {
	k    []byte
	flip byte
}

func (s *skipper) at(i int) byte { return s.k[i] ^ s.flip }

func (s *skipper) bytes(i, n int) int {
	if i < 0 || n > len(s.k)-i {
		return -1
	}
	return i + n
}

// text goes behind the next 00.
func (s *skipper) text(i int) int {
	if i < 0 {
		return -1
	}
	n := bytes.IndexByte(s.k[i:], s.flip)
	if n < 0 {
		return -1
	}
	return i + n + 1
}

func (s *skipper) value(i, depth int) int {
	if i < 0 || i >= len(s.k) || depth > nestMax {
		return -1
	}
	tag := s.at(i)
	i++
	switch {
	case tag == tagNaN, tag == tagNegate-tagInf, tag == tagZero, tag == tagInf:
		return i
	case tag > tagZero && tag < tagInf:
		return s.number(i, tag, 0)
	case tag > tagNegate-tagInf && tag < tagZero:
		return s.number(i, tagNegate-tag, 0xff)
	}
	switch tag {
	case tagMinKey, tagUndefined, tagNull, tagFalse, tagTrue, tagMaxKey:
		return i
	case tagString, tagCode:
		return s.text(i)
	case tagObject:
		return s.document(i, depth)
	case tagArray:
		for {
			if i < 0 || i >= len(s.k) {
				return -1
			}
			if s.at(i) == tagEnd {
				return i + 1
			}
			i = s.value(i, depth+1)
		}
	case tagBinary:
		return s.binary(i)
	case tagObjectID:
		return s.bytes(i, 12)
	case tagDate, tagTimestamp:
		return s.bytes(i, 8)
	case tagRegex:
		return s.text(s.text(i))
	case tagDBPointer:
		n, i := s.uint32(i)
		return s.bytes(i, int(n)+12)
	case tagCodeScope:
		return s.document(s.text(i), depth)
	}
	return -1
}

// number goes over what follows the tag of a number; sign turns the bytes of a negative one over.
func (s *skipper) number(i int, tag, sign byte) int {
	more := func(n int) bool { // whether what lies before n says that something follows
		return n > 0 && (s.at(n-1)^sign)&1 != 0
	}
	if tag == tagSmall || tag == tagLarge {
		i = s.bytes(i, 8)
	} else {
		i = s.bytes(i, int(tag-tagWhole))
		if !more(i) {
			return i
		}
		i = s.bytes(i, 7)
	}
	if more(i) {
		i = s.bytes(i, 2+15)
	}
	return i
}

func (s *skipper) document(i, depth int) int {
	for {
		if i < 0 || i >= len(s.k) {
			return -1
		}
		if s.at(i) == tagEnd {
			return i + 1
		}
		i = s.value(s.text(i+1), depth+1)
	}
}

func (s *skipper) binary(i int) int {
	if i >= len(s.k) {
		return -1
	}
	n := uint32(s.at(i))
	if i++; n == binaryLong {
		n, i = s.uint32(i)
	}
	return s.bytes(i, 1+int(n))
}

func (s *skipper) uint32(i int) (uint32, int) {
	end := s.bytes(i, 4)
	if end < 0 {
		return 0, -1
	}
	n := binary.BigEndian.Uint32(s.k[i:])
	if s.flip != 0 {
		n = ^n
	}
	return n & 0x7fffffff, end
}
