package value

import (
	"crypto/md5"
	"encoding/binary"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Hash digests v so that values which are Equal have equal hashes. It depends on nothing but v and seed. It is for tables in
// memory, which should draw their seed, since values come from clients that may want them to collide.
func Hash(seed uint64, v bson.RawValue) uint64 {
	h := hasher{seed ^ 0x9e3779b97f4a7c15}
	h.value(v.Type, v.Value)
	return h.mix(0)
}

type hasher struct{ state uint64 }

func (h *hasher) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(h.state^x^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	h.state = hi ^ lo
	return h.state
}

func (h *hasher) bytes(b []byte) {
	h.mix(uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		h.mix(binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		h.mix(binary.LittleEndian.Uint64(last[:]))
	}
}

func (h *hasher) value(t bson.Type, b []byte) {
	r := ranks[t]
	h.mix(uint64(r))
	switch r {
	case RankNumber:
		x := ExactOf(bson.RawValue{Type: t, Value: b})
		k := uint64(x.Kind)
		if x.Neg {
			k |= 1 << 8
		}
		h.mix(k)
		h.mix(x.Whole ^ x.Bits)
		if x.Frac != 0 || x.Rest {
			h.mix(x.Frac)
			h.mix(uint64(uint32(x.Adjust)))
			h.mix(x.High)
			h.mix(x.Low)
		}
	case RankString, RankCode:
		h.bytes(text(b))
	case RankObject, RankArray:
		h.elements(b, r == RankObject)
	case RankCodeWithScope:
		code, scope := codeWithScope(b)
		h.bytes(code)
		h.elements(scope, true)
	default:
		h.bytes(b)
	}
}

func (h *hasher) elements(doc []byte, names bool) {
	for it := Elements(doc); it.Next(); {
		if names {
			h.bytes(it.name)
		}
		h.value(it.val.Type, it.val.Value)
	}
	h.mix(0xff)
}

// IndexHash is the digest that hashed indexes hold, MongoDB's own: the first eight bytes of an MD5 over the seed 0, the rank and
// the content. Numbers are cut to an int64 first, so 2.2 and 2 collide, as the manual warns.
func IndexHash(v bson.RawValue) int64 {
	w := md5Writer{buf: make([]byte, 4, 64)}
	w.value(v.Type, nil, v.Value)
	sum := md5.Sum(w.buf)
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

type md5Writer struct{ buf []byte }

func (w *md5Writer) rank(t bson.Type) {
	var n int32
	switch r := ranks[t]; r {
	case RankMinKey:
		n = -1
	case RankUndefined:
	default:
		n = int32(r)
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(n))
}

// value digests one element; name is nil outside of documents, else it ends in NUL.
func (w *md5Writer) value(t bson.Type, name, b []byte) {
	w.rank(t)
	w.buf = append(w.buf, name...)
	switch ranks[t] {
	case RankNumber:
		n := TruncateInt64(bson.RawValue{Type: t, Value: b})
		w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(n))
	case RankObject, RankArray:
		w.elements(b)
	case RankCodeWithScope:
		code, scope := codeWithScope(b)
		w.buf = append(append(w.buf, code...), 0)
		w.elements(scope)
	default:
		w.buf = append(w.buf, b...)
	}
}

func (w *md5Writer) elements(doc []byte) {
	for it := Elements(doc); it.Next(); {
		n := len(it.name)
		w.value(it.val.Type, it.name[:n+1], it.val.Value)
	}
	w.value(0, []byte{0}, nil)
}
