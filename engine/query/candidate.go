package query

import (
	"slices"
	"strings"

	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/match"
)

// candidate is a scan with what speaks for it.
type candidate struct {
	scan
	limited bool // the filter limits the first field
	sorted  bool // no sort is needed
	unique  bool // one document at most
}

// limits are the filter's limits on path that mean something in x: where the collations differ, those that are not about text.
func (pl *planner) limits(x *Index, path string) []limit {
	l, ok := pl.memo[path]
	if !ok {
		l = limits(pl.nodes, path)
		pl.memo[path] = l
	}
	if pl.ordersAs(x) {
		return l
	}
	return slices.DeleteFunc(slices.Clone(l), func(l limit) bool { return l.text })
}

// ordersAs says whether x orders text as the query does.
func (pl *planner) ordersAs(x *Index) bool { return collation.Same(x.Collation, pl.q.Collation) }

// usable says whether every document that can match is in x.
func (pl *planner) usable(x *Index) bool {
	if x.path != "" {
		s, _ := pl.valueSet(x, 1, nil)
		if _, _, ok := x.wildSets(s); !ok {
			return false
		}
	}
	if x.Partial != nil && !pl.implies(x, x.Partial.Root()) {
		return false
	}
	if !x.Sparse {
		return true
	}
	for _, f := range x.Fields {
		for _, l := range pl.limits(x, f.Path) {
			if !l.nulls {
				return true
			}
		}
	}
	return false
}

// implies says whether what matches the query matches n, which is of x's filter; it errs on the side of no.
func (pl *planner) implies(x *Index, n match.Node) bool {
	switch n := n.(type) {
	case *match.Always:
		return n.Value
	case *match.And:
		for _, inner := range n.Nodes {
			if !pl.implies(x, inner) {
				return false
			}
		}
		return true
	case *match.Or:
		for _, inner := range n.Nodes {
			if pl.implies(x, inner) {
				return true
			}
		}
		return false
	case *match.Exists:
		for _, l := range pl.limits(x, n.Path) {
			if !l.nulls {
				return true
			}
		}
		return false
	}
	path, ok := pathOf(n)
	if !ok {
		return false
	}
	want, ok := limitOf(n, path)
	if !ok || !want.exact || want.text && !pl.ordersAs(x) {
		return false
	}
	for _, l := range pl.limits(x, path) {
		if l.set.within(want.set) && (want.nulls || !l.nulls) {
			return true
		}
	}
	return false
}

// pathOf is the path of a test whose limit can be exact.
func pathOf(n match.Node) (string, bool) {
	switch n := n.(type) {
	case *match.Comparison:
		return n.Path, true
	case *match.In:
		return n.Path, true
	}
	return "", false
}

// candidate bounds a scan of x by the filter, and looks whether it gives the order.
func (pl *planner) candidate(x *Index) candidate {
	c := candidate{scan: scan{kind: scanIndex, index: x, sets: make([]set, len(x.Fields))}}
	chosen := make([][]limit, len(x.Fields))
	for i := range x.Fields {
		c.sets[i], chosen[i] = pl.fieldSet(x, i, chosen)
	}
	c.bounds = boundsOf(x, c.sets)
	for i := range c.bounds.fields {
		for k := range chosen[i] {
			if l := &chosen[i][k]; l.settles(x.Fields[i].Path) {
				c.settled = append(c.settled, l.node)
			}
		}
	}
	c.limited = !c.sets[0].all()
	for c.points < len(c.sets) && c.sets[c.points].point() {
		c.points++
	}
	c.unique = x.Unique && c.points == len(x.Fields)
	c.sorted, c.reverse = pl.order(x, c.sets)
	return c
}

// fieldSet is what bounds field i of x, and the limits that it comes from.
func (pl *planner) fieldSet(x *Index, i int, chosen [][]limit) (set, []limit) {
	switch {
	case x.path != "":
		s, list := pl.valueSet(x, 1, chosen)
		paths, values, _ := x.wildSets(s)
		if i == 0 {
			return paths, nil
		}
		if values.all() {
			list = nil
		}
		return values, list
	case x.Fields[i].Kind == key.Hashed:
		s, _ := pl.valueSet(x, i, chosen)
		return s.hashed(), nil // what has the same hash need not be the same
	}
	return pl.valueSet(x, i, chosen)
}

// valueSet is the set that the filter sets on the path of field i: all that it says if no array was met there, else a limit that
// goes together with those chosen for the fields before.
func (pl *planner) valueSet(x *Index, i int, chosen [][]limit) (set, []limit) {
	list := pl.limits(x, x.Fields[i].Path)
	if len(list) == 0 {
		return setAll, nil
	}
	if x.Multikey>>i&1 == 0 {
		s := list[0].set
		for _, l := range list[1:] {
			s = s.intersect(l.set)
		}
		return s, list
	}
	best := -1
	for k := range list {
		if x.Sparse && list[k].nulls {
			continue // the element by which the test passes may have no entry
		}
		if (best < 0 || list[k].set.narrower(list[best].set)) && compatible(x, i, &list[k], chosen) {
			best = k
		}
	}
	if best < 0 {
		return setAll, nil
	}
	return list[best].set, list[best : best+1]
}

// compatible says whether l may bound field i beside the limits chosen for the fields before it. If an array is met on
// what two paths have in common, then the fields of one entry come from one element, while two tests may be satisfied by two; so
// both must be under one $elemMatch that is at least as deep as the paths go together.
func compatible(x *Index, i int, l *limit, chosen [][]limit) bool {
	for j := range i {
		if x.Multikey>>j&1 == 0 || len(chosen[j]) == 0 || chosen[j][0].set.all() {
			continue
		}
		common := commonParts(x.Fields[i].Path, x.Fields[j].Path)
		if common > 0 && !shareScope(l.within, chosen[j][0].within, common) {
			return false
		}
	}
	return true
}

func shareScope(a, b []scope, depth int) bool {
	for _, s := range a {
		for _, t := range b {
			if s.node == t.node && s.depth >= depth {
				return true
			}
		}
	}
	return false
}

// commonParts is how many parts two paths begin with together.
func commonParts(a, b string) int {
	n := 0
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		if x != y {
			return n
		}
		n++
		if !moreA || !moreB {
			return n
		}
		a, b = restA, restB
	}
}

// boundsOf leaves off the last fields if they are free.
func boundsOf(x *Index, sets []set) Bounds {
	n := len(sets)
	for n > 0 && sets[n-1].all() {
		n--
	}
	b := Bounds{fields: make([]fieldBounds, n)}
	for i := range n {
		kind := x.Fields[i].Kind
		b.fields[i] = fieldBounds{sets[i].spans(kind), kind == key.Descending}
	}
	return b
}

// order says whether a scan of x gives the order that the query asks for, and in which direction. Fields held to one value
// have no say. A document with an array on the path is met at the first of its entries inside the bounds, which is the
// one that its place in the order goes by only if the bounds leave none out.
func (pl *planner) order(x *Index, sets []set) (sorted, reverse bool) {
	return pl.orderFrom(x, sets, 0)
}

// orderFrom is order among entries that are the same in the fields before at.
func (pl *planner) orderFrom(x *Index, sets []set, at int) (sorted, reverse bool) {
	if pl.q.Sort == nil {
		return true, false
	}
	if !pl.ordersAs(x) {
		return false, false
	}
	if x.Sparse && x.Multikey != 0 {
		return false, false // an element that has none of the fields has no entry, and counts in a sort
	}
	fixed := func(i int) bool { return x.Multikey>>i&1 == 0 && sets[i].point() }
	directed := false
	for _, f := range pl.q.Sort.Fields() {
		if held(x, f.Path, fixed) {
			continue
		}
		for at < len(x.Fields) && x.Fields[at].Path != f.Path && fixed(at) {
			at++
		}
		if at == len(x.Fields) || x.Fields[at].Path != f.Path {
			return false, false
		}
		if x.Fields[at].Kind == key.Hashed || x.Multikey>>at&1 != 0 && !pl.wholeArrays(x, sets) {
			return false, false
		}
		back := (x.Fields[at].Kind == key.Descending) != f.Descending
		if directed && back != reverse {
			return false, false
		}
		reverse, directed = back, true
		at++
	}
	return true, reverse
}

// held says whether path is a field of x that the bounds hold to one value.
func held(x *Index, path string, fixed func(int) bool) bool {
	for i := range x.Fields {
		if x.Fields[i].Path == path {
			return fixed(i)
		}
	}
	return false
}

// wholeArrays says whether the bounds leave no entry of a document with arrays out.
func (pl *planner) wholeArrays(x *Index, sets []set) bool {
	for i := range sets {
		if x.Multikey>>i&1 != 0 && !sets[i].all() {
			return false
		}
	}
	return true
}
