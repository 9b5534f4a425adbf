// Package project cuts documents down to what a projection asks for. Parse reads the projection into a tree once, Apply copies the
// wanted bytes of each document; nothing is decoded, and what is wanted whole is copied whole.
//
// A projection includes or excludes: {a: 1, "b.c": 1} names all that is kept, {a: 0} all that is left out; only _id may go its own way, and
// is kept unless it is excluded. Paths go through arrays, nested ones too, and numbers in them are names and nothing else. Beside 0 and 1 there
// are $slice (a part of an array), $elemMatch (the array's first element that passes a filter), "a.$" (the first element that the query
// matched), and expressions (computed fields), which the caller compiles.
//
// # The order of fields
//
// Kept fields stand where they stood. What is computed, by an expression or $elemMatch, comes behind them in the order of the
// projection, except that inside of a kept document or array it comes there. $slice and "a.$" leave the field in its place.
package project

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
)

// Options are what a projection means beside what it says.
type Options struct {
	// Query is the command's filter; "a.$" asks it for the position. Without it "a.$" is refused.
	Query *match.Filter
	// Match is how the filter in $elemMatch is parsed.
	Match match.Options
	// Expr compiles an expression. Without it computed fields are refused.
	Expr func(expr bson.RawValue) (Expression, error)
	// Pipeline reads the projection as the stage $project does: $slice and $elemMatch are expressions, and "a.$" is no path.
	Pipeline bool
}

// Expression is a compiled expression.
type Expression interface {
	// Eval is its value for a document; Missing leaves the field out.
	Eval(doc bson.Raw) (bson.RawValue, error)
	// Reads are the paths whose values it may look at; all says that these are not the whole story.
	Reads() (paths []string, all bool)
}

// Projection is a parsed projection. It is immutable and may be used by any number of goroutines at once. It keeps the bytes it was
// parsed from.
type Projection struct {
	spec       bson.Raw
	root       *node
	inclusive  bool
	query      *match.Filter
	positional bool
	plain      bool
}

// kind is what happens to the value at a node's path.
type kind uint8

const (
	branch kind = iota // its children decide
	take
	drop
	computed
	elemMatch
	sliced
)

// node is a name in the tree of paths.
type node struct {
	name     string
	kind     kind
	children []*node          // in the order of the projection
	byName   map[string]*node // of the children, if there are many
	at       int              // which of its parent's children it is

	expr     Expression    // computed
	match    *match.Filter // elemMatch
	slice    slice         // sliced
	makes    bool          // something below, or this itself, is computed or elemMatch
	position bool          // it is on the path of "a.$"
}

// slice is $slice: limit elements from skip on. A negative skip counts from the end.
type slice struct{ skip, limit int }

// manyChildren is how many children are looked up by map.
const manyChildren = 8

// add adds a child of a name that none has yet.
func (n *node) add(c *node) {
	n.children = append(n.children, c)
	switch {
	case n.byName != nil:
		n.byName[c.name] = c
	case len(n.children) > manyChildren:
		n.index()
	}
}

// index makes byName.
func (n *node) index() {
	n.byName = make(map[string]*node, len(n.children))
	for _, c := range n.children {
		n.byName[c.name] = c
	}
}

func (n *node) find(name []byte) *node {
	if n.byName != nil {
		return n.byName[string(name)]
	}
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// Raw is the projection as it was given.
func (p *Projection) Raw() bson.Raw { return p.spec }

// Reads are the paths whose values the result is made of; all says that it takes the whole document. A plan whose index holds
// all of them need not fetch the document, if p is Plain.
func (p *Projection) Reads() (paths []string, all bool) {
	if !p.inclusive || p.positional {
		return nil, true
	}
	all = p.root.reads("", &paths)
	return paths, all
}

func (n *node) reads(prefix string, paths *[]string) (all bool) {
	for _, c := range n.children {
		path := prefix + c.name
		switch c.kind {
		case branch:
			all = c.reads(path+".", paths) || all
		case computed:
			list, more := c.expr.Reads()
			*paths = append(*paths, list...)
			all = all || more
		default:
			*paths = append(*paths, path)
		}
	}
	return all
}

// Plain says whether the projection keeps values as they are at the paths that Reads names, and does nothing else.
func (p *Projection) Plain() bool { return p.plain }
