package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseElemMatch(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.BadValue.Errorf("$elemMatch at '%s' needs an object", path)
	}
	at := p.pathOf(path, true)
	outer := p.element
	p.nested++
	p.element = p.isElemMatchValue(arg)
	defer func() {
		p.nested--
		p.element = outer
	}()
	if p.element {
		nodes, err := p.operatorList("", arg.Value)
		if err != nil {
			return nil, err
		}
		switch n := makeAnd(nodes).(type) {
		case *And:
			nodes = n.Nodes
		default:
			nodes = []Node{n}
		}
		return &ElemMatchValue{Path: path, Nodes: nodes, path: at}, nil
	}
	n, err := p.document(arg.Value)
	if err != nil {
		return nil, err
	}
	return &ElemMatchObject{Path: path, Node: n, path: at}, nil
}

// isElemMatchValue tells {$gt: 1} from {a: 1} and {$or: [...]}: conditions on the element from a filter for it.
func (p *parser) isElemMatchValue(arg bson.RawValue) bool {
	if !isOperators(arg, true) {
		return false
	}
	first := value.Elements(arg.Value)
	first.Next()
	o, ok := p.findOperator(string(first.Name()))
	return !ok || o.field != nil || o.todo
}

func (e *eval) elemMatchObject(n *ElemMatchObject, v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	it := value.Elements(v.Value)
	for k := 0; it.Next(); k++ {
		elem := it.Value()
		if elem.Type != bson.TypeEmbeddedDocument && elem.Type != bson.TypeArray {
			continue
		}
		inner := eval{doc: elem.Value, index: -1}
		ok := inner.match(n.Node)
		if inner.err != nil {
			e.err = inner.err
			return false
		}
		if ok {
			e.index = k
			return true
		}
	}
	return false
}

func (e *eval) elemMatchValue(n *ElemMatchValue, v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	it := value.Elements(v.Value)
	for k := 0; it.Next(); k++ {
		if e.testAll(n.Nodes, it.Value()) {
			e.index = k
			return true
		}
	}
	return false
}
