package match

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseIn(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	return p.in("$in", path, arg)
}

func (p *parser) in(name, path string, arg bson.RawValue) (Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, mongoerr.BadValue.Errorf("%s at '%s' needs an array", name, path)
	}
	n := &In{Path: path}
	for it := value.Elements(arg.Value); it.Next(); {
		switch v := it.Value(); {
		case isOperators(v, false):
			return nil, mongoerr.BadValue.Errorf("cannot nest $ under %s at '%s'", name, path)
		case v.Type == bson.TypeUndefined:
			return nil, mongoerr.BadValue.Errorf("cannot compare to undefined (%s at '%s')", name, path)
		case v.Type == bson.TypeRegex:
			re, err := p.regexValue(path, v)
			if err != nil {
				return nil, err
			}
			n.Regexes = append(n.Regexes, re.(*Regex))
		default:
			n.Values = append(n.Values, v)
		}
	}
	if n.Values == nil && n.Regexes == nil {
		return &Always{false}, nil
	}
	n.set = newSet(&n.Values, p.opts.Collation)
	n.path = p.pathOf(path, false)
	return n, nil
}

// set is what In searches: the values in canonical order.
type set struct {
	values []bson.RawValue
	coll   Collation
	null   bool // null is among them, so missing is as good as in
	ranks  [2]uint64
}

// newSet puts values in order, without duplicates.
func newSet(values *[]bson.RawValue, coll Collation) set {
	compare := func(a, b bson.RawValue) int { return Compare(coll, a, b) }
	slices.SortStableFunc(*values, compare)
	*values = slices.CompactFunc(*values, func(a, b bson.RawValue) bool { return compare(a, b) == 0 })
	s := set{values: *values, coll: coll}
	for _, v := range *values {
		r := value.RankOf(v.Type)
		s.ranks[r>>6] |= 1 << (r & 63)
		s.null = s.null || r == value.RankNull
	}
	return s
}

func (s *set) has(v bson.RawValue) bool {
	if v.Type == 0 || v.Type == bson.TypeUndefined {
		return s.null && v.Type == 0
	}
	if r := value.RankOf(v.Type); s.ranks[r>>6]>>(r&63)&1 == 0 {
		return false
	}
	lo, hi := 0, len(s.values)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch d := Compare(s.coll, s.values[mid], v); {
		case d == 0:
			return true
		case d < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return false
}

func (e *eval) in(n *In, v bson.RawValue) bool {
	if n.set.has(v) {
		return true
	}
	for _, re := range n.Regexes {
		if e.regex(re, v) {
			return true
		}
	}
	return false
}
