package query

import (
	"bytes"
	"sort"

	"github.com/multiforadb/multiforadb/engine/key"
)

// Bounds are the parts of an index that a scan visits: for each of the first fields of the key, spans that the field's
// bytes must be in. Fields after those are free.
//
// A scan walks the entries and jumps: whenever a field is outside its spans it seeks to the next key that can be inside. So
// thousands of $in values cost a seek each, and a range on a later field is used under every value of the earlier ones.
type Bounds struct {
	fields []fieldBounds
	// low and high are whole keys that min and max give, the second excluded; nil is none.
	low, high []byte
}

type fieldBounds struct {
	spans      []span
	descending bool
}

// verdict is what Bounds say of a key.
type verdict int

const (
	inside  verdict = iota
	outside         // go to the key that is given: with Seek forward, with SeekBefore in reverse
	beyond          // no later key is inside
)

// start gives the key to seek first; false if it is the end that the direction starts from.
func (b *Bounds) start(dst []byte, reverse bool) ([]byte, bool) {
	if len(b.fields) == 0 {
		edge := b.low
		if reverse {
			edge = b.high
		}
		return append(dst, edge...), edge != nil
	}
	if !reverse {
		dst = b.appendLow(dst, 0)
		return dst, len(dst) > 0
	}
	s := b.fields[0].spans
	hi := s[len(s)-1].hi
	return append(dst, hi...), hi != ""
}

// contiguous says that the entries inside stand together.
func (b *Bounds) contiguous() bool {
	for i, f := range b.fields {
		if len(f.spans) != 1 || !f.spans[0].point && i < len(b.fields)-1 {
			return false
		}
	}
	return true
}

// empty says that no key is inside.
func (b *Bounds) empty() bool {
	for _, f := range b.fields {
		if len(f.spans) == 0 {
			return true
		}
	}
	return false
}

// appendLow appends the lowest bytes of the fields from i on, as far as they can be known.
func (b *Bounds) appendLow(dst []byte, i int) []byte {
	for ; i < len(b.fields); i++ {
		s := b.fields[i].spans[0]
		dst = append(dst, s.lo...)
		if !s.point {
			break
		}
	}
	return dst
}

// forward judges k, which a scan in ascending order has met. dst is used for the key to seek. A key that is cut short is
// damage, and beyond.
func (b *Bounds) forward(k, dst []byte) (verdict, []byte) {
	if b.high != nil && bytes.Compare(k, b.high) >= 0 {
		return beyond, nil
	}
	pos := 0
	for i, f := range b.fields {
		n := key.FieldLen(k[pos:], f.descending)
		if n <= 0 {
			return beyond, nil
		}
		field := k[pos : pos+n]
		j := sort.Search(len(f.spans), func(j int) bool { return f.spans[j].hi == "" || f.spans[j].hi > string(field) })
		switch {
		case j == len(f.spans):
			next := key.Successor(append(dst, k[:pos]...))
			if next == nil {
				return beyond, nil
			}
			return outside, next
		case string(field) < f.spans[j].lo:
			dst = append(append(dst, k[:pos]...), f.spans[j].lo...)
			if f.spans[j].point {
				dst = b.appendLow(dst, i+1)
			}
			return outside, dst
		}
		pos += n
	}
	return inside, nil
}

// backward judges k for a scan in descending order.
func (b *Bounds) backward(k, dst []byte) (verdict, []byte) {
	if b.low != nil && bytes.Compare(k, b.low) < 0 {
		return beyond, nil
	}
	pos := 0
	for _, f := range b.fields {
		n := key.FieldLen(k[pos:], f.descending)
		if n <= 0 {
			return beyond, nil
		}
		field := k[pos : pos+n]
		j := sort.Search(len(f.spans), func(j int) bool { return f.spans[j].lo > string(field) }) - 1
		switch {
		case j < 0:
			if pos == 0 {
				return beyond, nil
			}
			return outside, append(dst, k[:pos]...)
		case f.spans[j].hi != "" && string(field) >= f.spans[j].hi:
			return outside, append(append(dst, k[:pos]...), f.spans[j].hi...)
		}
		pos += n
	}
	return inside, nil
}
