package project

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Apply appends doc, projected, to dst. An error is an expression's, or 51246 and 51247 of "a.$" without a matching element.
func (p *Projection) Apply(dst []byte, doc bson.Raw) ([]byte, error) {
	w := writer{p: p, doc: doc, dst: dst}
	if p.positional {
		ok, index, err := p.query.MatchIndex(doc)
		if err != nil {
			return dst, err
		}
		if !ok || index < 0 {
			return dst, mongoerr.LocationProjectPositional.Errorf(
				"Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array")
		}
		w.index, w.pending = index, true
	}
	w.document(p.root, doc, false)
	return w.dst, w.err
}

// writer writes one projected document.
type writer struct {
	p       *Projection
	doc     bson.Raw // as expressions see it
	dst     []byte
	index   int  // of the element that "a.$" is
	pending bool // the array of "a.$" has not been met
	err     error
}

func (w *writer) open() int32 {
	at, dst := bsoncore.ReserveLength(w.dst)
	w.dst = dst
	return at
}

func (w *writer) shut(at int32) {
	w.dst = append(w.dst, 0)
	w.dst = bsoncore.UpdateLength(w.dst, at, int32(len(w.dst))-at)
}

func (w *writer) header(t bson.Type, name []byte) {
	w.dst = append(append(append(w.dst, byte(t)), name...), 0)
}

func (w *writer) field(name []byte, v bson.RawValue) {
	w.header(v.Type, name)
	w.dst = append(w.dst, v.Value...)
}

// place is the header of element i of an array.
func (w *writer) place(t bson.Type, i int) {
	w.dst = append(strconv.AppendInt(append(w.dst, byte(t)), int64(i), 10), 0)
}

// document writes doc as n says, length and all. nested says that it lies in an array that lies in an array directly.
func (w *writer) document(n *node, doc []byte, nested bool) {
	at := w.open()
	var made []bool // children with something to compute that the loop has seen to
	if n.makes {
		made = make([]bool, len(n.children))
	}
	it := value.Elements(doc)
	for it.Next() && w.err == nil {
		name, v := it.Name(), it.Value()
		c := n.find(name)
		switch {
		case c == nil:
			if !w.p.inclusive {
				w.field(name, v)
			}
		case c.kind == take && c.position && w.pending && v.Type == bson.TypeArray:
			w.header(v.Type, name)
			w.only(c, v)
		case c.kind == take, c.kind == sliced && (v.Type != bson.TypeArray || nested):
			w.field(name, v)
		case c.kind == sliced:
			w.header(v.Type, name)
			w.slice(c.slice, v)
		case c.kind != branch:
			// dropped, or made below
		case v.Type == bson.TypeEmbeddedDocument, v.Type == bson.TypeArray:
			w.header(v.Type, name)
			w.below(c, v, nested)
			if c.makes {
				made[c.at] = true
			}
		case !w.p.inclusive:
			w.field(name, v)
		}
	}
	if it.Bad() && w.err == nil {
		w.err = mongoerr.InvalidBSON.Errorf("malformed document under a projection")
	}
	if n.makes {
		w.make(n, made)
	}
	w.shut(at)
}

// below writes a document or an array as the branch c says.
func (w *writer) below(c *node, v bson.RawValue, nested bool) {
	switch {
	case v.Type == bson.TypeEmbeddedDocument:
		w.document(c, v.Value, nested)
	case c.position && w.pending:
		w.only(c, v)
	default:
		w.array(c, v.Value, nested)
	}
}

func (w *writer) array(c *node, array []byte, nested bool) {
	at := w.open()
	i := 0
	for it := value.Elements(array); it.Next() && w.err == nil; {
		if w.element(c, i, it.Value(), nested) {
			i++
		}
	}
	w.shut(at)
}

// element writes an element as element i, if anything of it is left.
func (w *writer) element(c *node, i int, v bson.RawValue, nested bool) bool {
	switch {
	case v.Type == bson.TypeEmbeddedDocument:
		w.place(v.Type, i)
		w.document(c, v.Value, nested)
	case v.Type == bson.TypeArray:
		w.place(v.Type, i)
		w.array(c, v.Value, true)
	case c.makes:
		w.place(bson.TypeEmbeddedDocument, i)
		w.made(c)
	case w.p.inclusive:
		return false
	default:
		w.place(v.Type, i)
		w.dst = append(w.dst, v.Value...)
	}
	return true
}

// only writes the array of "a.$": the one element.
func (w *writer) only(c *node, v bson.RawValue) {
	w.pending = false
	at := w.open()
	e := value.At(v.Value, w.index)
	switch {
	case e.Type == 0:
		w.err = codePositionMismatch.Errorf("positional operator '.$' element mismatch")
	case c.kind == branch:
		w.element(c, 0, e, false)
	default:
		w.place(e.Type, 0)
		w.dst = append(w.dst, e.Value...)
	}
	w.shut(at)
}

func (w *writer) slice(s slice, v bson.RawValue) {
	skip := s.skip
	if skip < 0 {
		skip = max(0, value.Count(v.Value)+skip)
	}
	at := w.open()
	it := value.Elements(v.Value)
	for i := 0; i-skip < s.limit && it.Next(); i++ {
		if i >= skip {
			w.place(it.Value().Type, i-skip)
			w.dst = append(w.dst, it.Value().Value...)
		}
	}
	w.shut(at)
}

// make appends the children that are made and not copied; done says which of them were seen to already.
func (w *writer) make(n *node, done []bool) {
	for i, c := range n.children {
		if w.err != nil {
			return
		}
		switch {
		case c.kind == computed:
			v, err := c.expr.Eval(w.doc)
			if w.err = err; err == nil && v.Type != 0 {
				w.field([]byte(c.name), v)
			}
		case c.kind == elemMatch:
			w.elemMatch(c)
		case c.makes && (done == nil || !done[i]):
			w.header(bson.TypeEmbeddedDocument, []byte(c.name))
			w.made(c)
		}
	}
}

// made writes a document of nothing but what is computed below c.
func (w *writer) made(c *node) {
	at := w.open()
	w.make(c, nil)
	w.shut(at)
}

func (w *writer) elemMatch(c *node) {
	ok, index, err := c.match.MatchIndex(w.doc)
	if err != nil || !ok {
		w.err = err
		return
	}
	e := value.At(value.Lookup(w.doc, c.name).Value, index)
	w.header(bson.TypeArray, []byte(c.name))
	at := w.open()
	w.place(e.Type, 0)
	w.dst = append(w.dst, e.Value...)
	w.shut(at)
}
