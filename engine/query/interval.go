package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/value"
)

// set is a set of values of one key field: disjoint intervals in ascending order that do not touch.
type set []key.Interval

var (
	setAll       = set{key.All()}
	numberSet    = bracket(bson.TypeDouble)
	bitsSet      = numberSet.union(bracket(bson.TypeBinary))
	undefinedSet = bracket(bson.TypeUndefined)
	nullSet      = undefinedSet.union(bracket(bson.TypeNull)) // the entries of null, of missing, and of undefined
	nan          = value.MustParse("NaN")
	afterNaN     = key.After(nan)
)

// bracket is all values that compare with those of type t as their own kind.
func bracket(t bson.Type) set { return set{{From: key.BeforeType(t), To: key.AfterType(t)}} }

func isFirst(c key.Cut) bool { return c.Compare(key.Start()) == 0 }
func isLast(c key.Cut) bool  { return c.Compare(key.End()) == 0 }

func (s set) all() bool { return len(s) == 1 && isFirst(s[0].From) && isLast(s[0].To) }

// point says whether s is one value.
func (s set) point() bool { return len(s) == 1 && s[0].IsPoint() }

// normal sorts intervals, in place, and joins those that overlap or touch.
func normal(s set) set {
	byFrom := func(a, b key.Interval) int { return a.From.Compare(b.From) }
	if !slices.IsSortedFunc(s, byFrom) {
		slices.SortFunc(s, byFrom)
	}
	out := s[:0]
	for _, v := range s {
		if v.Empty() {
			continue
		}
		if n := len(out); n > 0 && v.From.Compare(out[n-1].To) <= 0 {
			if v.To.Compare(out[n-1].To) > 0 {
				out[n-1].To = v.To
			}
			continue
		}
		out = append(out, v)
	}
	return out
}

func (s set) union(t set) set { return normal(slices.Concat(s, t)) }

func (s set) intersect(t set) set {
	var out set
	for i, j := 0, 0; i < len(s) && j < len(t); {
		v := s[i]
		if t[j].From.Compare(v.From) > 0 {
			v.From = t[j].From
		}
		last := s[i].To.Compare(t[j].To)
		if last > 0 {
			v.To = t[j].To
		}
		if !v.Empty() {
			out = append(out, v)
		}
		if last <= 0 {
			i++
		} else {
			j++
		}
	}
	return out
}

// complement is all that is not in s.
func (s set) complement() set {
	var out set
	from := key.Start()
	for _, v := range s {
		if gap := (key.Interval{From: from, To: v.From}); !gap.Empty() {
			out = append(out, gap)
		}
		from = v.To
	}
	if gap := (key.Interval{From: from, To: key.End()}); !gap.Empty() {
		out = append(out, gap)
	}
	return out
}

// within says whether all of s is in t.
func (s set) within(t set) bool {
	j := 0
	for _, v := range s {
		for j < len(t) && t[j].To.Compare(v.To) < 0 {
			j++
		}
		if j == len(t) || t[j].From.Compare(v.From) > 0 {
			return false
		}
	}
	return true
}

// narrower is a guess at which of two sets holds fewer entries: points before intervals, intervals closed on both sides
// before open ones.
func (s set) narrower(t set) bool { return s.width() < t.width() }

func (s set) width() int {
	w := 0
	for _, v := range s {
		switch {
		case v.IsPoint():
			w++
		case isFirst(v.From) || isLast(v.To):
			w += 1 << 20
		default:
			w += 1 << 10
		}
	}
	return w
}

// hashed is the set of the hashes of s's values; all, if s is not a few single values.
func (s set) hashed() set {
	var out set
	for _, v := range s {
		if v.From.Compare(nullSet[0].From) == 0 && v.To.Compare(nullSet[0].To) == 0 {
			for _, null := range []bson.RawValue{value.Null, {Type: bson.TypeUndefined}} {
				h, _ := key.Point(null).Hashed()
				out = append(out, h)
			}
			continue
		}
		h, ok := v.Hashed()
		if !ok {
			return setAll
		}
		out = append(out, h)
	}
	return normal(out)
}

// span is an interval in the bytes of a key field as the index has it: from lo (included) to hi (excluded; "" is the end
// of everything). A point holds one value, whose bytes are lo.
type span struct {
	lo, hi string
	point  bool
}

// spans are the bytes of s in an index field of that kind, in ascending order of bytes.
func (s set) spans(kind key.Kind) []span {
	p := key.Pattern{Fields: []key.Field{{Kind: kind}}}
	out := make([]span, len(s))
	for i, v := range s {
		r := p.Range(v)
		at := i
		if kind == key.Descending {
			at = len(s) - 1 - i
		}
		out[at] = span{string(r.Low), string(r.High), v.IsPoint()}
	}
	return out
}
