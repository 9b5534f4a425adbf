package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Index is what a plan knows of an index.
type Index struct {
	Tree     uint32 // its number: never another index's in the same collection
	Name     string
	Key      bson.Raw
	Fields   []Field
	Unique   bool
	Sparse   bool
	Hidden   bool
	Multikey uint64        // bit i: some document has an array on the path of field i
	Partial  *match.Filter // nil if all documents are in it
}

// Field is one field of an index's key.
type Field struct {
	Path string
	Kind key.Kind
}

func (x *Index) isID() bool {
	return len(x.Fields) == 1 && x.Fields[0] == Field{Path: "_id"} && x.Unique && x.Partial == nil
}

// Query is what a plan is made for.
type Query struct {
	Filter  *match.Filter
	Sort    *sortkey.Spec       // nil: any order
	Project *project.Projection // nil: whole documents
	Skip    int64
	Limit   int64         // 0: none
	Hint    bson.RawValue // zero, an index's name, its key pattern, or {$natural: ±1}
	// SortMemory bounds what a sort in memory may keep, in bytes.
	SortMemory int
	// OnlyIDs says that nobody asks for documents: a run gives none where it can do without.
	OnlyIDs bool
}

// Estimate tells about how many entries an index has from lo (included) to hi (excluded; "" is the end).
type Estimate func(tree uint32, lo, hi string) uint64

// Plan is a way to run a query. It is immutable.
type Plan struct {
	Query
	scan     scan
	residual *match.Filter // what is left to test of what the scan finds; nil: nothing
	sorted   bool          // the scan gives the order asked for
	rejected []scan
}

// kind is how a scan finds records.
type kind int

const (
	scanNothing kind = iota // no document can match
	scanRecords             // all, in the order of their ids
	scanID                  // the one with an _id
	scanIndex
	scanUnion // of index scans
)

type scan struct {
	kind    kind
	index   *Index
	bounds  Bounds
	sets    []set // of the fields, for explain
	reverse bool
	settled []match.Node // tests that need not be made again
	parts   []scan       // of a union
	id      []byte       // of scanID: the key

	points int     // leading fields that are held to single values
	cost   float64 // an estimate of entries
}

// New plans q over the indexes that a collection has.
//
// A test of _id for equality is looked up. Otherwise each index is a candidate whose first field the filter limits, or
// whose order is the one asked for, and an $or is one if each of its branches has a candidate. Among several the cheapest is taken, by
// counting entries in the trees. Without a candidate the records are scanned.
func New(q Query, indexes []*Index, estimate Estimate) (*Plan, error) {
	p := &Plan{Query: q}
	if err := p.plan(indexes, estimate); err != nil {
		return nil, err
	}
	p.residual = p.scan.residual(q.Filter)
	return p, nil
}

func (p *Plan) plan(indexes []*Index, estimate Estimate) error {
	q, root := &p.Query, p.Filter.Root()
	if a, ok := root.(*match.Always); ok && !a.Value {
		p.sorted = true
		return nil
	}
	if q.Hint.Type == 0 {
		if s, ok := idScan(root, indexes); ok {
			p.scan, p.sorted = s, true
			return nil
		}
	}
	pl := planner{q: q, nodes: conjunction(root), estimate: estimate, memo: map[string][]limit{}}
	if q.Sort != nil && q.Sort.Natural() != 0 {
		if q.Hint.Type != 0 {
			return mongoerr.BadValue.Errorf("a sort by $natural and a hint exclude each other")
		}
		p.scan, p.sorted = scan{kind: scanRecords, reverse: q.Sort.Natural() < 0}, true
		return nil
	}
	if q.Hint.Type != 0 {
		return pl.hinted(p, indexes)
	}
	pl.choose(p, indexes)
	return nil
}

// residual is what of filter is left to test of the documents that the scan finds.
func (s *scan) residual(filter *match.Filter) *match.Filter {
	switch {
	case filter.All(), s.kind == scanID:
		return nil
	case len(s.settled) == 0:
		return filter
	}
	var left []match.Node
	for _, n := range conjunction(filter.Root()) {
		if !slices.Contains(s.settled, n) {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return filter.With(match.Conjunction(left...))
}

type planner struct {
	q        *Query
	nodes    []match.Node
	estimate Estimate
	memo     map[string][]limit
}

// idScan is the plan for {_id: value}.
func idScan(root match.Node, indexes []*Index) (scan, bool) {
	c, ok := root.(*match.Comparison)
	if !ok || c.Op != match.Eq || c.Path != "_id" || c.Value.Type == bson.TypeArray || value.IsNullish(c.Value) {
		return scan{}, false
	}
	for _, x := range indexes {
		if x.isID() {
			return scan{kind: scanID, index: x, id: key.Append(nil, c.Value)}, true
		}
	}
	return scan{}, false
}

func (pl *planner) choose(p *Plan, indexes []*Index) {
	var best []candidate
	for _, x := range indexes {
		if x.Hidden || !pl.usable(x) {
			continue
		}
		if c := pl.candidate(x); c.limited || c.sorted && p.Sort != nil {
			best = append(best, c)
		}
	}
	if u, ok := pl.union(indexes); ok {
		best = append(best, u)
	}
	if len(best) == 0 {
		p.scan = scan{kind: scanRecords}
		p.sorted = p.Sort == nil
		return
	}
	i := pl.cheapest(best)
	p.scan, p.sorted = best[i].scan, best[i].sorted
	for j := range best {
		if j != i {
			p.rejected = append(p.rejected, best[j].scan)
		}
	}
}

// candidate is a scan with what speaks for it.
type candidate struct {
	scan
	limited bool // the filter limits the first field
	sorted  bool // no sort is needed
	unique  bool // one document at most
}

// cheapest gives the position of the candidate to take.
func (pl *planner) cheapest(list []candidate) int {
	if len(list) == 1 {
		return 0
	}
	for i := range list {
		if list[i].unique {
			return i
		}
	}
	fewest := -1.0
	for i := range list {
		c := &list[i]
		c.cost = pl.count(&c.scan)
		if fewest < 0 || c.cost < fewest {
			fewest = c.cost
		}
	}
	best := 0
	for i := range list {
		c := &list[i]
		rows := max(fewest, 1)
		switch want := float64(pl.q.Skip + pl.q.Limit); {
		case !c.sorted:
			c.cost += rows * 4 // keeping and sorting what is found
		case pl.q.Limit > 0 && want < rows:
			c.cost *= want / rows // it ends early
		}
		b := &list[best]
		switch {
		case i == 0, c.cost > b.cost:
		case c.cost < b.cost, c.sorted && !b.sorted, c.sorted == b.sorted && c.points > b.points:
			best = i
		}
	}
	return best
}

// countSpans is how many spans are counted one by one; the rest is taken to be like them.
const countSpans = 16

// count estimates the entries that a scan visits.
func (pl *planner) count(s *scan) float64 {
	if s.kind == scanUnion {
		n := 0.0
		for i := range s.parts {
			n += pl.count(&s.parts[i])
		}
		return n
	}
	if len(s.bounds.fields) == 0 {
		return float64(pl.estimate(s.index.Tree, "", ""))
	}
	n, counted, total := 0.0, 0, 1
	prefixes := []string{""}
	for i, f := range s.bounds.fields {
		last := i == len(s.bounds.fields)-1
		var next []string
		for _, prefix := range prefixes {
			for _, v := range f.spans {
				if v.point && !last {
					if len(next) < countSpans {
						next = append(next, prefix+v.lo)
					}
					continue
				}
				if counted < countSpans {
					n += float64(pl.estimate(s.index.Tree, prefix+v.lo, prefixed(prefix, v.hi)))
					counted++
				}
			}
		}
		total *= max(len(f.spans), 1)
		if len(next) == 0 {
			break
		}
		prefixes = next
	}
	if counted > 0 && total > counted {
		n *= float64(total) / float64(counted)
	}
	return n
}

// prefixed is the end of a span behind the bytes of the fields before it.
func prefixed(prefix, hi string) string {
	if hi != "" || prefix == "" {
		return prefix + hi
	}
	return string(key.Successor([]byte(prefix)))
}

// limits are the filter's limits on path.
func (pl *planner) limits(path string) []limit {
	l, ok := pl.memo[path]
	if !ok {
		l = limits(pl.nodes, path)
		pl.memo[path] = l
	}
	return l
}

// usable says whether every document that can match is in x.
func (pl *planner) usable(x *Index) bool {
	if x.Partial != nil && !pl.implies(x.Partial.Root()) {
		return false
	}
	if !x.Sparse {
		return true
	}
	for _, f := range x.Fields {
		for _, l := range pl.limits(f.Path) {
			if !l.nulls {
				return true
			}
		}
	}
	return false
}

// implies says whether what matches the query matches n; it errs on the side of no.
func (pl *planner) implies(n match.Node) bool {
	switch n := n.(type) {
	case *match.Always:
		return n.Value
	case *match.And:
		for _, inner := range n.Nodes {
			if !pl.implies(inner) {
				return false
			}
		}
		return true
	case *match.Or:
		for _, inner := range n.Nodes {
			if pl.implies(inner) {
				return true
			}
		}
		return false
	case *match.Exists:
		for _, l := range pl.limits(n.Path) {
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
	if !ok || !want.exact {
		return false
	}
	for _, l := range pl.limits(path) {
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

// fieldSet is what bounds field i, and the limits that it comes from: all that the filter sets on its path if no array was met on
// it, else one that goes together with those chosen for the fields before.
func (pl *planner) fieldSet(x *Index, i int, chosen [][]limit) (set, []limit) {
	list := pl.limits(x.Fields[i].Path)
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
	if pl.q.Sort == nil {
		return true, false
	}
	if x.Sparse && x.Multikey != 0 {
		return false, false // an element that has none of the fields has no entry, and counts in a sort
	}
	fixed := func(i int) bool { return x.Multikey>>i&1 == 0 && sets[i].point() }
	at, directed := 0, false
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
		if x.Multikey>>at&1 != 0 && !pl.wholeArrays(x, sets) {
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

// union plans an $or, alone or in a conjunction, as one index scan for each branch.
func (pl *planner) union(indexes []*Index) (candidate, bool) {
	for i, n := range pl.nodes {
		or, ok := n.(*match.Or)
		if !ok {
			continue
		}
		c := candidate{scan: scan{kind: scanUnion}, limited: true, sorted: pl.q.Sort == nil}
		for _, branch := range or.Nodes {
			nodes := append([]match.Node(nil), conjunction(branch)...)
			nodes = append(append(nodes, pl.nodes[:i]...), pl.nodes[i+1:]...)
			part, ok := pl.branch(nodes, indexes)
			if !ok {
				break
			}
			c.parts = append(c.parts, part)
		}
		if len(c.parts) == len(or.Nodes) {
			return c, true
		}
	}
	return candidate{}, false
}

// branch plans one branch of an $or.
func (pl *planner) branch(nodes []match.Node, indexes []*Index) (scan, bool) {
	q := Query{}
	sub := planner{q: &q, nodes: nodes, estimate: pl.estimate, memo: map[string][]limit{}}
	var list []candidate
	for _, x := range indexes {
		if x.Hidden || !sub.usable(x) {
			continue
		}
		if c := sub.candidate(x); c.limited {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return scan{}, false
	}
	return list[sub.cheapest(list)].scan, true
}

// hinted plans as the hint says.
func (pl *planner) hinted(p *Plan, indexes []*Index) error {
	if doc, ok := p.Hint.DocumentOK(); ok {
		if v := doc.Lookup("$natural"); v.Type != 0 {
			d, ok := v.AsInt64OK()
			if !ok || d != 1 && d != -1 {
				return mongoerr.FailedToParse.Errorf("$natural hint must be 1 or -1, but is %s", v)
			}
			p.scan = scan{kind: scanRecords, reverse: d < 0}
			p.sorted = p.Sort == nil
			return nil
		}
	}
	var x *Index
	for _, y := range indexes {
		if !y.hintedBy(p.Hint) {
			continue
		}
		if x != nil {
			return mongoerr.IndexNotFound.Errorf("error processing query: planner returned error: Hint matched multiple indexes, must hint by index name. Matched: %s and %s", x.Name, y.Name)
		}
		x = y
	}
	switch {
	case x == nil:
		return mongoerr.BadValue.Errorf("error processing query: planner returned error: hint provided does not correspond to an existing index")
	case x.Partial != nil && !pl.implies(x.Partial.Root()):
		return mongoerr.NoQueryExecutionPlans.Errorf("error processing query: planner returned error: the hinted index %s is partial, and the filter does not imply its partialFilterExpression", x.Name)
	}
	c := pl.candidate(x)
	p.scan, p.sorted = c.scan, c.sorted
	return nil
}

func (x *Index) hintedBy(hint bson.RawValue) bool {
	if name, ok := hint.StringValueOK(); ok {
		return x.Name == name
	}
	doc, ok := hint.DocumentOK()
	return ok && value.CompareDocuments(doc, x.Key) == 0
}
