package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/query/spill"
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
	// Collation orders the strings in it; nil is by bytes. Entries under a collation do not tell what the strings were.
	Collation *collation.Collation
	// Wild is set for a wildcard index, of which Fields say nothing.
	Wild *Wild

	path  string // of a part of a wildcard index: what it is about
	whole bool   // it holds what is below path, too
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
	Fields  []string            // without a Project: the paths that are looked at, so that others may be left out; nil: all
	Skip    int64
	Limit   int64         // 0: none
	Hint    bson.RawValue // zero, an index's name, its key pattern, or {$natural: ±1}
	// Distinct is a path of whose values the first document each is enough, in the order of Sort; "": all documents are asked for.
	Distinct string
	// SortMemory bounds what a sort may keep in memory, in bytes; Disk takes what is more, and nil refuses it.
	SortMemory int
	Disk       spill.Disk
	// Collation is the one that Filter and Sort were parsed with.
	Collation *collation.Collation
	// Tail says that the end of the records is not the end of the run: after the next Attach it looks for more.
	Tail bool
	// Min and Max are the first key of the hinted index and the first behind those that are looked at; nil: the filter says it.
	Min, Max bson.Raw
	// ReturnKey gives the entries' fields instead of documents.
	ReturnKey bool
	// OnlyIDs says that nobody asks for documents: a run gives none where it can do without.
	OnlyIDs bool
}

// Collection is what a query is planned for.
type Collection interface {
	Source
	// Estimate tells about how many entries an index has from lo (included) to hi (excluded; "" is the end).
	Estimate(tree uint32, lo, hi string) uint64
}

// Plan is a way to run a query. It is immutable.
type Plan struct {
	Query
	scan     scan
	residual *match.Filter // what is left to test of what the scan finds; nil: nothing
	sorted   bool          // the scan gives the order asked for
	cover    *cover        // makes documents of entries; nil: they are fetched
	sieve    *sieve        // tests entries before their documents are fetched; nil: there is nothing to test
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
	scanMerge // of index scans, in order
)

type scan struct {
	kind    kind
	index   *Index
	bounds  Bounds
	sets    []set // of the fields, for explain
	reverse bool
	settled []match.Node // tests that need not be made again
	// distinct says that one entry for each value of the first field is enough.
	distinct bool
	parts    []scan // of a union or merge
	id       []byte // of scanID: the key

	merge, mergeLen int // of a part of a merge: the fields that are compared; 0 fields are all that follow

	points int     // leading fields that are held to single values
	cost   float64 // an estimate of entries
}

// New plans q over the indexes that a collection has.
//
// A test of _id for equality is looked up. Otherwise each index is a candidate whose first field the filter limits, or
// whose order is the one asked for, and an $or is one if each of its branches has a candidate. Among several the cheapest is taken, by
// counting entries in the trees and, where these tie, by a trial. Without a candidate the records are scanned. choices may be nil: then there
// are no trials.
func New(q Query, indexes []*Index, source Collection, choices Choices) (*Plan, error) {
	p := &Plan{Query: q}
	if err := p.plan(indexes, source, choices); err != nil {
		return nil, err
	}
	p.residual = p.scan.residual(q.Filter)
	p.scan.distinct = p.scan.kind == scanIndex && p.sorted && p.residual == nil && p.Skip == 0 && p.Limit == 0 && p.distinct(p.scan.index)
	p.cover = newCover(p)
	p.sieve = newSieve(p)
	if p.ReturnKey && !p.sorted {
		return nil, mongoerr.NotImplemented.Errorf("returnKey with a sort that no index gives is not implemented")
	}
	return p, nil
}

func (p *Plan) plan(indexes []*Index, source Collection, choices Choices) error {
	q, root := &p.Query, p.Filter.Root()
	if a, ok := root.(*match.Always); ok && !a.Value {
		p.sorted = true
		return nil
	}
	if q.Hint.Type == 0 && !q.Tail && q.Min == nil && q.Max == nil {
		if s, ok := idScan(root, indexes, q.Collation); ok {
			p.scan, p.sorted = s, true
			return nil
		}
	}
	if q.Tail {
		if q.Sort != nil && q.Sort.Natural() != 1 || q.Hint.Type != 0 {
			return mongoerr.BadValue.Errorf("a tailable cursor goes by the order of the records: it has no sort but {$natural: 1}, and no hint")
		}
		p.scan, p.sorted = scan{kind: scanRecords}, true
		return nil
	}
	if (q.Min != nil || q.Max != nil) && (q.Hint.Type == 0 || q.Sort != nil && q.Sort.Natural() != 0) {
		return codeNeedsHint.Errorf("When using min()/max() a hint of which index to use must be provided")
	}
	pl := planner{q: q, nodes: conjunction(root), source: source, choices: choices, memo: map[string][]limit{}}
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
	q       *Query
	nodes   []match.Node
	source  Collection
	choices Choices
	memo    map[string][]limit
}

// distinct says whether the entries of x, which are in the order of its first field, tell the values of the path of Distinct apart.
func (q *Query) distinct(x *Index) bool {
	return q.Distinct != "" && x.Fields[0].Path == q.Distinct && x.Fields[0].Kind != key.Hashed && x.Wild == nil && x.path == "" && x.Multikey == 0 &&
		!x.Sparse && x.Partial == nil && collation.Same(x.Collation, q.Collation)
}

// idScan is the plan for {_id: value}.
func idScan(root match.Node, indexes []*Index, coll *collation.Collation) (scan, bool) {
	n, ok := root.(*match.Comparison)
	if !ok || n.Op != match.Eq || n.Path != "_id" || n.Value.Type == bson.TypeArray || value.IsNullish(n.Value) {
		return scan{}, false
	}
	for _, x := range indexes {
		if !x.isID() {
			continue
		}
		if !collation.Same(x.Collation, coll) && key.HoldsText(n.Value) {
			return scan{}, false
		}
		return scan{kind: scanID, index: x, id: key.AppendBy(n.Collation(), nil, n.Value)}, true
	}
	return scan{}, false
}

func (pl *planner) choose(p *Plan, indexes []*Index) {
	var best []candidate
	for _, x := range pl.expand(indexes) {
		if x.Hidden || !pl.usable(x) {
			continue
		}
		c := pl.candidate(x)
		if !c.sorted {
			if m, ok := pl.merged(&c); ok {
				c = m
			}
		}
		if c.limited || c.sorted && p.Sort != nil || p.Sort == nil && p.Filter.All() && p.distinct(x) {
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
	i := pl.try(best, pl.cheapest(best))
	p.scan, p.sorted = best[i].scan, best[i].sorted
	for j := range best {
		if j != i {
			p.rejected = append(p.rejected, best[j].scan)
		}
	}
}

// union plans an $or, alone or in a conjunction, as one index scan for each branch.
func (pl *planner) union(indexes []*Index) (candidate, bool) {
	for i, n := range pl.nodes {
		or, ok := n.(*match.Or)
		if !ok {
			continue
		}
		c := candidate{scan: scan{kind: scanUnion}, limited: true, sorted: pl.q.Sort == nil}
		var list []candidate
		for _, branch := range or.Nodes {
			nodes := append([]match.Node(nil), conjunction(branch)...)
			nodes = append(append(nodes, pl.nodes[:i]...), pl.nodes[i+1:]...)
			part, ok := pl.branch(nodes, indexes)
			if !ok {
				break
			}
			list = append(list, part)
		}
		if len(list) < len(or.Nodes) {
			continue
		}
		if pl.q.Sort != nil && len(list) <= mergeMax && pl.mergedUnion(list) {
			c.kind, c.sorted, c.reverse = scanMerge, true, list[0].reverse
		}
		for i := range list {
			if c.kind == scanUnion {
				list[i].reverse = false
			}
			c.parts = append(c.parts, list[i].scan)
		}
		return c, true
	}
	return candidate{}, false
}

// branch plans one branch of an $or, in the order asked for if that does not cost more.
func (pl *planner) branch(nodes []match.Node, indexes []*Index) (candidate, bool) {
	q := Query{Collation: pl.q.Collation, Sort: pl.q.Sort}
	sub := planner{q: &q, nodes: nodes, source: pl.source, memo: map[string][]limit{}}
	var list []candidate
	for _, x := range sub.expand(indexes) {
		if x.Hidden || !sub.usable(x) {
			continue
		}
		if c := sub.candidate(x); c.limited {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return candidate{}, false
	}
	return list[sub.cheapest(list)], true
}

// hinted plans as the hint says.
func (pl *planner) hinted(p *Plan, indexes []*Index) error {
	if doc, ok := p.Hint.DocumentOK(); ok {
		if v := doc.Lookup("$natural"); v.Type != 0 {
			d, ok := v.AsInt64OK()
			if !ok || d != 1 && d != -1 {
				return mongoerr.FailedToParse.Errorf("$natural hint must be 1 or -1, but is %s", v)
			}
			if p.Min != nil || p.Max != nil {
				return codeIncompatible.Errorf("min() and max() are keys of an index, and the hint $natural uses none")
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
	case x.Partial != nil && !pl.implies(x, x.Partial.Root()):
		return mongoerr.NoQueryExecutionPlans.Errorf("error processing query: planner returned error: the hinted index %s is partial, and the filter does not imply its partialFilterExpression", x.Name)
	}
	if p.Min != nil || p.Max != nil {
		return pl.between(p, x)
	}
	if x.Wild != nil {
		return pl.hintedWild(p, x)
	}
	c := pl.candidate(x)
	if !c.sorted {
		if m, ok := pl.merged(&c); ok {
			c = m
		}
	}
	p.scan, p.sorted = c.scan, c.sorted
	return nil
}

// hintedWild takes the cheapest of what a wildcard index can do.
func (pl *planner) hintedWild(p *Plan, x *Index) error {
	var list []candidate
	for _, at := range pl.expand([]*Index{x}) {
		if pl.usable(at) {
			list = append(list, pl.candidate(at))
		}
	}
	if len(list) == 0 {
		return mongoerr.NoQueryExecutionPlans.Errorf("error processing query: planner returned error: the hinted wildcard index %s holds nothing that the filter needs", x.Name)
	}
	c := list[pl.cheapest(list)]
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
