package query

import (
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// limit is what one test says of the entries that an index has for a document that passes: at least one of them has, in
// the field for the test's path, a value in set.
type limit struct {
	set set
	// exact says that the converse holds, too: a value in set passes.
	exact bool
	// nulls says that a document in which the path leads nowhere may pass.
	nulls bool
	// text says that set is one under the filter's collation, and means nothing in an index with another.
	text bool
	// node is the test, if it is one of the conjunction itself.
	node match.Node
	// within are the $elemMatch around the test, from outside: what holds under one of them holds for one and the same element.
	within []scope
}

// scope is an $elemMatch and the number of parts of its path, from the document on.
type scope struct {
	node  *match.ElemMatchObject
	depth int
}

// limits gives the limits that the conjunction of nodes sets on path. Each of them alone bounds a scan. They may be
// intersected if no document has an array on the path.
func limits(nodes []match.Node, path string) []limit { return appendLimits(nil, nodes, path, nil) }

func appendLimits(out []limit, nodes []match.Node, path string, within []scope) []limit {
	for _, n := range nodes {
		if e, ok := n.(*match.ElemMatchObject); ok {
			rest, ok := strings.CutPrefix(path, e.Path)
			if !ok || len(rest) < 2 || rest[0] != '.' {
				continue
			}
			depth := 1 + strings.Count(e.Path, ".")
			if len(within) > 0 {
				depth += within[len(within)-1].depth
			}
			out = appendLimits(out, conjunction(e.Node), rest[1:], append(within[:len(within):len(within)], scope{e, depth}))
			continue
		}
		if l, ok := limitOf(n, path); ok {
			if l.nulls && numbered(path) {
				l = limit{set: setAll, nulls: true}
			}
			if l.within = within; len(within) == 0 {
				l.node = n
			}
			out = append(out, l)
		}
	}
	return out
}

// settles says whether a document that has an entry in the limit's set passes the test that set it, so that the test need not be made
// again. A negation is never settled: of an array that came after the plan was made, one entry says nothing of the
// others. Nor is null: its set holds undefined, too.
func (l *limit) settles(path string) bool {
	switch l.node.(type) {
	case *match.Comparison, *match.In:
		return l.exact && !l.nulls && !numbered(path)
	}
	return false
}

// conjunction gives the nodes that all must match.
func conjunction(n match.Node) []match.Node {
	if and, ok := n.(*match.And); ok {
		return and.Nodes
	}
	return []match.Node{n}
}

// limitOf gives the limit that a test sets on path, if there is any to speak of.
func limitOf(n match.Node, path string) (limit, bool) {
	switch n := n.(type) {
	case *match.Comparison:
		if n.Path == path {
			return comparisonLimit(n), true
		}
	case *match.In:
		if n.Path == path {
			return inLimit(n), true
		}
	case *match.Regex:
		if n.Path == path {
			return regexLimit(n), true
		}
	case *match.Exists:
		return limit{set: setAll}, n.Path == path
	case *match.Size:
		return limit{set: setAll}, n.Path == path
	case *match.Mod:
		return limit{set: numberSet}, n.Path == path
	case *match.Bits:
		return limit{set: bitsSet}, n.Path == path
	case *match.Type:
		if n.Path == path {
			return typeLimit(n), true
		}
	case *match.ElemMatchValue:
		if n.Path == path {
			l := limit{set: setAll}
			for _, inner := range n.Nodes {
				if _, deeper := inner.(*match.ElemMatchValue); deeper {
					continue // it tests the elements of the element, which has an entry as a whole
				}
				if m, ok := limitOf(inner, ""); ok {
					l.set, l.text = l.set.intersect(m.set), l.text || m.text
				}
			}
			return l, true
		}
	case *match.Not:
		return notLimit(n, path)
	case *match.Or:
		return orLimit(n, path)
	}
	return limit{}, false
}

func comparisonLimit(n *match.Comparison) limit {
	v, c := n.Value, n.Collation()
	l := limit{text: key.HoldsText(v)}
	rank := value.RankOf(v.Type)
	switch {
	case value.IsNullish(v):
		if n.Op == match.Lt || n.Op == match.Gt {
			l.exact = true
			return l
		}
		l.set, l.exact, l.nulls = nullSet, true, true
	case rank == value.RankArray:
		if n.Op == match.Eq {
			l.set = arraySet(v, c)
		} else {
			l.set, l.text = setAll, false
		}
	case n.Op == match.Eq:
		l.set, l.exact = set{key.PointBy(c, v)}, true
	case rank == value.RankMinKey || rank == value.RankMaxKey:
		l.set, l.nulls = setAll, true
	case value.Equal(v, nan):
		l.exact = true
		if n.Op == match.Lte || n.Op == match.Gte {
			l.set = set{key.Point(v)}
		}
	default:
		from, to := key.BeforeType(v.Type), key.AfterType(v.Type)
		if rank == value.RankNumber {
			from = afterNaN
		}
		l.exact = true
		switch n.Op {
		case match.Lt:
			l.set = set{{From: from, To: key.BeforeBy(c, v)}}
		case match.Lte:
			l.set = set{{From: from, To: key.AfterBy(c, v)}}
		case match.Gt:
			l.set = set{{From: key.AfterBy(c, v), To: to}}
		case match.Gte:
			l.set = set{{From: key.BeforeBy(c, v), To: to}}
		}
		l.set = normal(l.set)
	}
	return l
}

func inLimit(n *match.In) limit {
	l := limit{exact: len(n.Regexes) == 0}
	c := n.Collation()
	s := make(set, 0, len(n.Values))
	for _, v := range n.Values {
		l.text = l.text || key.HoldsText(v)
		switch {
		case value.IsNullish(v):
			s = append(s, nullSet...)
			l.nulls = true
		case v.Type == bson.TypeArray:
			s = append(s, arraySet(v, c)...)
			l.exact = false
		default:
			s = append(s, key.PointBy(c, v))
		}
	}
	for _, re := range n.Regexes {
		m := regexLimit(re)
		s = append(s, m.set...)
		l.text = l.text || m.text
	}
	l.set = normal(s)
	return l
}

// arraySet holds an entry of every array that equals v or has it as an element. The entries of an array are its elements.
func arraySet(v bson.RawValue, c match.Collation) set {
	s := set{key.PointBy(c, v)}
	if first := value.At(v.Value, 0); !value.IsMissing(first) {
		return normal(append(s, key.PointBy(c, first)))
	}
	return normal(append(s, undefinedSet...))
}

// regexLimit bounds strings by the literal text that an anchored pattern begins with, unless a collation orders them in another way. A
// regular expression also matches itself as a value.
func regexLimit(n *match.Regex) limit {
	l := limit{set: bracket(bson.TypeString)}
	if prefix := literalPrefix(n.Pattern, n.Options); prefix != "" && !n.Collated() {
		l.set, l.text = set{beginning(prefix)}, true
	}
	l.set = l.set.union(bracket(bson.TypeRegex))
	return l
}

// beginning is all strings that begin with prefix.
func beginning(prefix string) key.Interval {
	in := key.Interval{From: key.Before(value.String(prefix)), To: key.AfterType(bson.TypeString)}
	if end := key.Successor([]byte(prefix)); end != nil {
		in.To = key.Before(value.String(string(end)))
	}
	return in
}

// literalPrefix is the text that every match begins with, as far as it is plain to see; "" if there is none.
func literalPrefix(pattern, options string) string {
	if options != "" || len(pattern) == 0 || pattern[0] != '^' {
		return ""
	}
	rest := pattern[1:]
	n := 0
	for n < len(rest) && isLiteral(rest[n]) {
		n++
	}
	for i := n; i < len(rest); i++ {
		if rest[i] == '|' { // the anchor may bind one alternative only
			return ""
		}
	}
	if n < len(rest) && n > 0 {
		switch rest[n] {
		case '*', '?', '{':
			_, size := utf8.DecodeLastRuneInString(rest[:n])
			n -= size // the last character may be missing
		}
	}
	return rest[:n]
}

func isLiteral(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 ||
		c == ' ' || c == '_' || c == '-' || c == ':' || c == '/' || c == ',' || c == '@' || c == '=' || c == '%' || c == '~'
}

func typeLimit(n *match.Type) limit {
	l := limit{}
	if n.Types.Has(bson.TypeArray) {
		l.set = setAll
		return l
	}
	n.Types.Each(func(t bson.Type) { l.set = append(l.set, bracket(t)...) })
	l.set = normal(l.set)
	return l
}

// notLimit turns an exact limit over. A document with a null entry because its path reaches nothing (a.b in {a: [1]}) has
// neither null there nor anything else, so it passes every negation: for a path of several parts the negation of null says
// nothing. Undefined, which is also the entry of an empty array, stays in.
func notLimit(n *match.Not, path string) (limit, bool) {
	if e, ok := n.Node.(*match.Exists); ok {
		return limit{set: nullSet, nulls: true}, e.Path == path
	}
	l, ok := limitOf(n.Node, path)
	switch {
	case !ok:
		return limit{}, false
	case !l.exact:
		return limit{set: setAll, nulls: true}, true
	case !l.nulls:
		return limit{set: l.set.complement(), exact: true, nulls: true, text: l.text}, true
	case dotted(path):
		return limit{set: setAll, nulls: true}, true
	}
	return limit{set: l.set.complement().union(undefinedSet), text: l.text}, true
}

// orLimit is the union, if all alternatives limit the path.
func orLimit(n *match.Or, path string) (limit, bool) {
	l := limit{exact: true}
	for _, alternative := range n.Nodes {
		m, ok := narrowest(conjunction(alternative), path)
		if !ok {
			return limit{}, false
		}
		l.set, l.exact, l.nulls, l.text = append(l.set, m.set...), l.exact && m.exact, l.nulls || m.nulls, l.text || m.text
	}
	l.set = normal(l.set)
	return l, true
}

// narrowest is the narrowest of the limits that a conjunction sets on path, not their intersection: they may be satisfied
// by different elements of an array.
func narrowest(nodes []match.Node, path string) (limit, bool) {
	var best limit
	found := false
	for _, n := range nodes {
		if l, ok := limitOf(n, path); ok && (!found || l.set.narrower(best.set)) {
			best, found = l, true
		}
	}
	best.exact = best.exact && len(nodes) == 1
	return best, found
}

// dotted says whether path has several parts.
func dotted(path string) bool { return strings.IndexByte(path, '.') >= 0 }

// numbered says whether a part of path may name an element of an array. The entries of such a path say of null and of whole
// arrays something else than filters do, so no negation bounds it, and no test of null.
func numbered(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if value.ArrayIndex(part) >= 0 {
			return true
		}
	}
	return false
}
