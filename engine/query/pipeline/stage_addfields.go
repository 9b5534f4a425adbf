package pipeline

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// addStage is $addFields and $set: a tree of names with an expression in each leaf. A field that is there is changed in its
// place, others come behind. On the way through an array each element gets the field; what is no document becomes one.
type addStage struct {
	root  *addNode
	paths []string
	c     *expr.Context
}

type addNode struct {
	name     string
	e        *expr.Expr // nil for a branch
	children []*addNode
}

func parseAddFields(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(40272).Errorf("$addFields specification stage must be an object, got %s", value.TypeName(arg.Type))
	}
	s := &addStage{root: &addNode{}, c: p.opts.Context}
	if value.Count(arg.Value) == 0 {
		return nil, code(51272).Errorf("specification must have at least one field")
	}
	return s, s.fields(p, s.root, "", bson.Raw(arg.Value))
}

func (s *addStage) fields(p *parser, n *addNode, prefix string, doc bson.Raw) error {
	for it := value.Elements(doc); it.Next(); {
		name, v := string(it.Name()), it.Value()
		if _, err := fieldPath(prefix + name); err != nil {
			return err
		}
		at := n
		parts := strings.Split(name, ".")
		branch := isBranch(v)
		for i, part := range parts {
			c := at.child(part)
			last := i == len(parts)-1
			if c != nil && (c.e != nil || last && !branch) {
				return mongoerr.LocationProjectPathCollision.Errorf("path collision at %s",
					prefix+name)
			}
			if c == nil {
				c = &addNode{name: part}
				at.children = append(at.children, c)
			}
			at = c
		}
		if branch {
			if err := s.fields(p, at, prefix+name+".", bson.Raw(v.Value)); err != nil {
				return err
			}
			continue
		}
		var err error
		if at.e, err = p.expression(v); err != nil {
			return err
		}
		s.paths = append(s.paths, prefix+name)
	}
	return nil
}

// isBranch says whether a value is a document of further fields, and no expression.
func isBranch(v bson.RawValue) bool {
	if v.Type != bson.TypeEmbeddedDocument {
		return false
	}
	it := value.Elements(v.Value)
	return it.Next() && !strings.HasPrefix(string(it.Name()), "$")
}

func (n *addNode) child(name string) *addNode {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (s *addStage) run(in Iterator) Iterator {
	w := adder{c: s.c}
	return over(in, func() (bson.Raw, error) {
		doc, err := in.Next()
		if err != nil || doc == nil {
			return nil, err
		}
		w.doc, w.dst = doc, w.dst[:0]
		w.document(s.root, doc)
		return w.dst, w.err
	})
}

// adder writes one document.
type adder struct {
	c   *expr.Context
	doc bson.Raw
	dst []byte
	err error
}

func (w *adder) document(n *addNode, doc []byte) {
	at, dst := bsoncore.ReserveLength(w.dst)
	w.dst = dst
	var few [8]bool
	made := few[:]
	if len(n.children) > len(few) {
		made = make([]bool, len(n.children))
	}
fields:
	for it := value.Elements(doc); it.Next() && w.err == nil; {
		name, v := it.Name(), it.Value()
		for i, c := range n.children {
			if string(name) == c.name {
				if !made[i] {
					made[i] = true
					w.field(c, v)
				}
				continue fields
			}
		}
		w.dst = append(append(append(w.dst, byte(v.Type)), name...), 0)
		w.dst = append(w.dst, v.Value...)
	}
	for i, c := range n.children {
		if !made[i] && w.err == nil {
			w.field(c, value.Missing)
		}
	}
	w.dst = append(w.dst, 0)
	w.dst = bsoncore.UpdateLength(w.dst, at, int32(len(w.dst))-at)
}

func (w *adder) field(c *addNode, old bson.RawValue) {
	if c.e != nil {
		v, err := c.e.Eval(w.c, w.doc)
		if w.err = err; err == nil && v.Type != 0 {
			w.dst = append(append(append(w.dst, byte(v.Type)), c.name...), 0)
			w.dst = append(w.dst, v.Value...)
		}
		return
	}
	t := bson.TypeEmbeddedDocument
	if old.Type == bson.TypeArray {
		t = bson.TypeArray
	}
	w.dst = append(append(append(w.dst, byte(t)), c.name...), 0)
	w.below(c, old)
}

// below writes what becomes of a value that the branch c goes into.
func (w *adder) below(c *addNode, old bson.RawValue) {
	switch old.Type {
	case bson.TypeEmbeddedDocument:
		w.document(c, old.Value)
	case bson.TypeArray:
		at, dst := bsoncore.ReserveLength(w.dst)
		w.dst = dst
		i := 0
		for it := value.Elements(old.Value); it.Next() && w.err == nil; i++ {
			t := bson.TypeEmbeddedDocument
			if it.Value().Type == bson.TypeArray {
				t = bson.TypeArray
			}
			w.dst = append(strconv.AppendInt(append(w.dst, byte(t)), int64(i), 10), 0)
			w.below(c, it.Value())
		}
		w.dst = append(w.dst, 0)
		w.dst = bsoncore.UpdateLength(w.dst, at, int32(len(w.dst))-at)
	default:
		w.document(c, []byte{5, 0, 0, 0, 0})
	}
}
