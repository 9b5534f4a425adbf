package key

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Cut is a place between values: everything is before it or after it. It is made from a value's ascending key, so cuts of all
// types and both inclusions compare as bytes do. The zero Cut is before everything.
type Cut struct {
	prefix   []byte // before the first key with this prefix, or after the last
	after    bool
	collated bool // prefix may hold a collation's keys
}

// Before is the place just before v and all that equals it; After is just after it. Missing is null.
func Before(v bson.RawValue) Cut { return BeforeBy(nil, v) }

func After(v bson.RawValue) Cut { return AfterBy(nil, v) }

// BeforeBy and AfterBy are Before and After under a collation, which may be nil. Cuts of different collations do not compare.
func BeforeBy(c Collation, v bson.RawValue) Cut {
	return Cut{prefix: Pattern{Fields: ascending, Collation: c}.AppendField(nil, 0, v), collated: c != nil && HoldsText(v)}
}

func AfterBy(c Collation, v bson.RawValue) Cut {
	cut := BeforeBy(c, v)
	cut.after = true
	return cut
}

// HoldsText says whether the place of v in the order may depend on the collation.
func HoldsText(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeEmbeddedDocument, bson.TypeArray:
		return true
	}
	return false
}

var ascending = []Field{{Kind: Ascending}}

// BeforeType and AfterType enclose all values that compare with values of type t as their own kind: type bracketing. Numbers begin
// with NaN.
func BeforeType(t bson.Type) Cut { return Cut{prefix: []byte{tags[t]}} }

func AfterType(t bson.Type) Cut { return Cut{prefix: []byte{lastTag(t)}, after: true} }

// Start and End enclose everything.
func Start() Cut { return Cut{} }

func End() Cut { return Cut{after: true} }

// Compare orders two cuts.
func (c Cut) Compare(d Cut) int {
	n := min(len(c.prefix), len(d.prefix))
	if x := bytes.Compare(c.prefix[:n], d.prefix[:n]); x != 0 {
		return x
	}
	// One prefix is the other's beginning: the shorter lies at its edge, outside of all that the longer encloses.
	switch {
	case len(c.prefix) < len(d.prefix):
		return edge(c.after)
	case len(c.prefix) > len(d.prefix):
		return -edge(d.after)
	case c.after == d.after:
		return 0
	}
	return edge(c.after)
}

func edge(after bool) int {
	if after {
		return 1
	}
	return -1
}

// Interval is what lies between two cuts: Interval{Before(v), After(v)} is v, {After(v), AfterType(v.Type)} is $gt. It is empty
// if From is not before To.
type Interval struct{ From, To Cut }

// Point is the interval of v alone.
func Point(v bson.RawValue) Interval { return PointBy(nil, v) }

// PointBy is Point under a collation.
func PointBy(c Collation, v bson.RawValue) Interval { return Interval{BeforeBy(c, v), AfterBy(c, v)} }

// All is everything.
func All() Interval { return Interval{Start(), End()} }

// Empty says whether nothing lies between the cuts.
func (i Interval) Empty() bool { return i.From.Compare(i.To) >= 0 }

// IsPoint says whether i is one value with its equals, so that the next field of an index is sorted within it.
func (i Interval) IsPoint() bool {
	return !i.From.after && i.To.after && len(i.From.prefix) > 0 && bytes.Equal(i.From.prefix, i.To.prefix) && !isTypeTag(i.From.prefix)
}

// isTypeTag tells a bracket of a whole type from the value of a type that has no more than its tag.
func isTypeTag(prefix []byte) bool {
	if len(prefix) != 1 {
		return false
	}
	switch prefix[0] {
	case tagMinKey, tagUndefined, tagNull, tagNaN, tagZero, tagInf, tagNegate - tagInf, tagFalse, tagTrue, tagMaxKey:
		return false
	}
	return true
}

// Hashed is the place of a point's values in a hashed field; false if i is no point.
func (i Interval) Hashed() (Interval, bool) {
	if !i.IsPoint() {
		return Interval{}, false
	}
	d := decoder{in: i.From.prefix}
	t, b := d.value(nil, 0)
	return Point(value.Int64(value.IndexHash(bson.RawValue{Type: t, Value: b}))), !d.bad
}

// Range is the entries e with Low <= e < High; a nil High is beyond all entries.
type Range struct{ Low, High []byte }

// Range is the entries whose first fields lie in these intervals, all but the last of which are points. With no interval it is
// the whole index. The intervals are in values' order, also for descending fields; those of hashed fields are of hashes.
func (p Pattern) Range(intervals ...Interval) Range {
	var prefix []byte
	for i, in := range intervals {
		from, to := in.From, in.To
		descending := p.Fields[i].Kind == Descending
		if descending {
			from, to = to.inverted(), from.inverted()
		}
		if i < len(intervals)-1 {
			prefix = append(prefix, from.prefix...)
			continue
		}
		return Range{Low: from.at(prefix), High: to.at(prefix)}
	}
	return Range{Low: []byte{}}
}

func (c Cut) inverted() Cut {
	c.prefix = bytes.Clone(c.prefix)
	invert(c.prefix)
	c.after = !c.after
	return c
}

// at is the first entry after the cut among those that begin with prefix, as bytes; nil is beyond all.
func (c Cut) at(prefix []byte) []byte {
	b := append(bytes.Clone(prefix), c.prefix...)
	if c.after {
		return Successor(b)
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

// Successor is the least byte string above all that begin with prefix, in place; nil if there is none.
func Successor(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] != 0xff {
			prefix[n-1]++
			return prefix[:n]
		}
	}
	return nil
}
