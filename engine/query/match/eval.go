package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Match says whether doc passes the filter. The error is one of $expr's, or of a regular expression that gave up.
func (f *Filter) Match(doc bson.Raw) (bool, error) {
	e := eval{doc: doc, fields: f.fields, index: -1, pos: 4}
	ok := e.match(f.root)
	return ok && e.err == nil, e.err
}

// MatchIndex is Match, and the position in an array that the positional operator $ stands for: of the outermost array that
// the last deciding test went into. It is -1 if no test went into an array.
func (f *Filter) MatchIndex(doc bson.Raw) (ok bool, index int, err error) {
	e := eval{doc: doc, fields: f.fields, index: -1, pos: 4}
	if ok = e.match(f.root) && e.err == nil; !ok {
		e.index = -1
	}
	return ok, e.index, e.err
}

// eval is the evaluation of one filter on one document. It never leaves the stack: nodes are told apart by type switches and
// not by methods of an interface, so the compiler sees where e goes, and a match allocates nothing.
//
// The first parts of the filter's paths are looked for in one pass over the document, which goes only as far as the tests
// made so far needed.
type eval struct {
	doc    []byte
	fields *fields
	pos    int             // where the pass has come to
	seen   uint            // bit i: names[i] was found
	found  [slotMax]extent // what was found
	index  int             // see MatchIndex
	single bool            // look every path up by itself
	forks  int             // see fork
	been   map[place]struct{}
	err    error // ends the evaluation; no result counts after it
}

// match tests a node against the document.
func (e *eval) match(n Node) bool {
	switch n := n.(type) {
	case *And:
		for _, c := range n.Nodes {
			if !e.match(c) {
				e.index = -1
				return false
			}
		}
		return true
	case *Or:
		for _, c := range n.Nodes {
			if e.match(c) {
				return true
			}
		}
		return false
	case *Nor:
		index := e.index
		for _, c := range n.Nodes {
			if e.match(c) {
				return false
			}
		}
		e.index = index
		return true
	case *Not:
		index := e.index
		ok := e.match(n.Node)
		e.index = index
		return !ok
	case *Always:
		return n.Value
	case *Comparison:
		return e.reach(n.path, n)
	case *In:
		return e.reach(n.path, n)
	case *Exists:
		return e.reach(n.path, n)
	case *Type:
		return e.reach(n.path, n)
	case *Mod:
		return e.reach(n.path, n)
	case *Regex:
		return e.reach(n.path, n)
	case *Size:
		return e.reach(n.path, n)
	case *Bits:
		return e.reach(n.path, n)
	case *ElemMatchObject:
		return e.reach(n.path, n)
	case *ElemMatchValue:
		return e.reach(n.path, n)
	case *Expr:
		return e.expr(n)
	case *Schema:
		return e.schema(n)
	}
	panic("match: unknown node")
}

// test tests a node against one value: the end of a path, or an element under $elemMatch.
func (e *eval) test(n Node, v bson.RawValue) bool {
	switch n := n.(type) {
	case *Comparison:
		return n.test(v)
	case *In:
		return e.in(n, v)
	case *Exists:
		return v.Type != 0
	case *Type:
		return n.Types.Has(v.Type)
	case *Mod:
		return n.test(v)
	case *Regex:
		return e.regex(n, v)
	case *Size:
		return n.test(v)
	case *Bits:
		return n.test(v)
	case *ElemMatchObject:
		return e.elemMatchObject(n, v)
	case *ElemMatchValue:
		return e.elemMatchValue(n, v)
	case *And:
		return e.testAll(n.Nodes, v)
	case *Or:
		for _, c := range n.Nodes {
			if e.test(c, v) {
				return true
			}
		}
		return false
	case *Not:
		return !e.test(n.Node, v)
	case *Always:
		return n.Value
	case *collector:
		return n.test(v)
	}
	panic("match: a node that does not test a value")
}

func (e *eval) testAll(nodes []Node, v bson.RawValue) bool {
	for _, c := range nodes {
		if !e.test(c, v) {
			return false
		}
	}
	return true
}

// reach tests n on the values that p reaches from the document.
func (e *eval) reach(p *path, n Node) bool {
	if e.err != nil {
		return false
	}
	e.forks, e.been = 0, nil
	if p.slot < 0 || e.single {
		return e.walk(e.doc, p, 0, n)
	}
	return e.step(e.root(p.slot), p, 1, n)
}

// walk tests n on the values that the parts of p from i on reach in doc.
func (e *eval) walk(doc []byte, p *path, i int, n Node) bool {
	return e.step(lookup(doc, p.parts[i].Name), p, i+1, n)
}

// step goes on from v, which the parts before i reached.
func (e *eval) step(v bson.RawValue, p *path, i int, n Node) bool {
	switch {
	case v.Type == bson.TypeArray:
		return e.array(v, p, i, n)
	case i == len(p.parts):
		return e.test(n, v)
	case v.Type == bson.TypeEmbeddedDocument:
		return e.walk(v.Value, p, i, n)
	}
	return e.test(n, value.Missing)
}

// array goes on from an array.
func (e *eval) array(v bson.RawValue, p *path, i int, n Node) bool {
	if i == len(p.parts) {
		if !p.whole {
			it := value.Elements(v.Value)
			for k := 0; it.Next(); k++ {
				if e.test(n, it.Value()) {
					e.index = k
					return true
				}
			}
		}
		return e.test(n, v)
	}
	it := value.Elements(v.Value)
	for k := 0; it.Next(); k++ {
		elem := it.Value()
		at := p.parts[i].Index == k
		if elem.Type == bson.TypeEmbeddedDocument {
			if at && e.fork(elem.Value, i) {
				continue
			}
			if e.walk(elem.Value, p, i, n) {
				e.index = k
				return true
			}
			if at && (i+1 == len(p.parts) && e.test(n, elem) || i+1 < len(p.parts) && e.walk(elem.Value, p, i+1, n)) {
				return true
			}
		} else if at && (i+1 == len(p.parts) && e.test(n, elem) ||
			elem.Type == bson.TypeArray && i+1 < len(p.parts) && e.array(elem, p, i+1, n)) {
			return true
		}
	}
	return false
}

// place is a position in a document (its first byte) and in a path.
type place struct {
	at *byte
	i  int
}

// forksFree is how often a walk may fork before it remembers where it was.
const forksFree = 64

// fork is called where a path may take a number as an index and as a field's name. Forks under forks multiply: 0.0.0... on nested
// arrays would take a time exponential in the depth. A place where the walk has been has nothing new to tell, since
// otherwise it would have ended there; fork says so.
func (e *eval) fork(doc []byte, i int) (visited bool) {
	if e.forks++; e.forks <= forksFree {
		return false
	}
	if e.been == nil {
		e.been = map[place]struct{}{}
	}
	k := place{&doc[0], i}
	if _, ok := e.been[k]; ok {
		return true
	}
	e.been[k] = struct{}{}
	return false
}
