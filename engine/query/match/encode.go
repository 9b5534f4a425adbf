package match

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/value"
)

// document is a document of the elements that inside appends.
func document(inside func(dst []byte) []byte) bson.Raw { return appendDocument(nil, inside) }

func appendDocument(dst []byte, inside func(dst []byte) []byte) []byte {
	i, dst := bsoncore.AppendDocumentStart(dst)
	dst, err := bsoncore.AppendDocumentEnd(inside(dst), i)
	if err != nil {
		panic("match: " + err.Error()) // only for an index out of range
	}
	return dst
}

func appendNamed(dst []byte, t bson.Type, name string, inside func(dst []byte) []byte) []byte {
	return appendDocument(bsoncore.AppendHeader(dst, bsoncore.Type(t), name), inside)
}

func appendValue(dst []byte, name string, v bson.RawValue) []byte {
	return append(bsoncore.AppendHeader(dst, bsoncore.Type(v.Type), name), v.Value...)
}

// appendClause writes {path: {name: v}}, or {name: v} for a test inside of $elemMatch.
func appendClause(dst []byte, path *path, text, name string, v bson.RawValue) []byte {
	if path.element {
		return appendValue(dst, name, v)
	}
	return appendNamed(dst, bson.TypeEmbeddedDocument, text, func(dst []byte) []byte { return appendValue(dst, name, v) })
}

func appendList(dst []byte, name string, nodes []Node) []byte {
	return appendNamed(dst, bson.TypeArray, name, func(dst []byte) []byte {
		for i, n := range nodes {
			dst = appendNamed(dst, bson.TypeEmbeddedDocument, strconv.Itoa(i), n.appendTo)
		}
		return dst
	})
}

func array(values []bson.RawValue) bson.RawValue {
	return value.Array(document(func(dst []byte) []byte {
		for i, v := range values {
			dst = appendValue(dst, strconv.Itoa(i), v)
		}
		return dst
	}))
}

func (n *And) appendTo(dst []byte) []byte { return appendList(dst, "$and", n.Nodes) }
func (n *Or) appendTo(dst []byte) []byte  { return appendList(dst, "$or", n.Nodes) }
func (n *Nor) appendTo(dst []byte) []byte { return appendList(dst, "$nor", n.Nodes) }

// appendTo puts $not behind the path, where the language has it.
func (n *Not) appendTo(dst []byte) []byte {
	nodes := []Node{n.Node}
	if and, ok := n.Node.(*And); ok {
		nodes = and.Nodes
	}
	inner := document(func(dst []byte) []byte {
		for _, c := range nodes {
			dst = c.appendTo(dst)
		}
		return dst
	})
	it := value.Elements(inner)
	if !it.Next() {
		return dst
	}
	path := string(it.Name())
	clauses := document(func(dst []byte) []byte {
		for it := value.Elements(inner); it.Next(); {
			dst = append(dst, elementsOf(it.Value())...)
		}
		return dst
	})
	if len(path) > 0 && path[0] == '$' { // inside of $elemMatch
		return appendValue(dst, "$not", value.Document(inner))
	}
	return appendNamed(dst, bson.TypeEmbeddedDocument, path, func(dst []byte) []byte {
		return appendValue(dst, "$not", value.Document(clauses))
	})
}

// elementsOf are the bytes of a document's elements.
func elementsOf(v bson.RawValue) []byte {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil
	}
	return v.Value[4 : len(v.Value)-1]
}

func (n *Always) appendTo(dst []byte) []byte {
	if n.Value {
		return dst
	}
	return bsoncore.AppendInt32Element(dst, "$alwaysFalse", 1)
}

func (n *Comparison) appendTo(dst []byte) []byte {
	return appendClause(dst, n.path, n.Path, n.Op.Name(), n.Value)
}

func (n *In) appendTo(dst []byte) []byte {
	values := n.Values[:len(n.Values):len(n.Values)]
	for _, re := range n.Regexes {
		values = append(values, regexOf(re))
	}
	return appendClause(dst, n.path, n.Path, "$in", array(values))
}

func regexOf(n *Regex) bson.RawValue {
	return bson.RawValue{Type: bson.TypeRegex, Value: bsoncore.AppendRegex(nil, n.Pattern, n.Options)}
}

func (n *Exists) appendTo(dst []byte) []byte {
	return appendClause(dst, n.path, n.Path, "$exists", value.Bool(true))
}

func (n *Type) appendTo(dst []byte) []byte {
	var numbers []bson.RawValue
	n.Types.Each(func(t bson.Type) { numbers = append(numbers, value.Int32(int32(int8(t)))) })
	return appendClause(dst, n.path, n.Path, "$type", array(numbers))
}

func (n *Mod) appendTo(dst []byte) []byte {
	return appendClause(dst, n.path, n.Path, "$mod", array([]bson.RawValue{integer(n.Divisor), integer(n.Remainder)}))
}

func (n *Regex) appendTo(dst []byte) []byte {
	inner := func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "$regex", n.Pattern)
		if n.Options != "" {
			dst = bsoncore.AppendStringElement(dst, "$options", n.Options)
		}
		return dst
	}
	if n.path.element {
		return inner(dst)
	}
	return appendNamed(dst, bson.TypeEmbeddedDocument, n.Path, inner)
}

// integer is an int32 if i fits one.
func integer(i int64) bson.RawValue {
	if i == int64(int32(i)) {
		return value.Int32(int32(i))
	}
	return value.Int64(i)
}

func (n *Size) appendTo(dst []byte) []byte {
	return appendClause(dst, n.path, n.Path, "$size", integer(n.N))
}

func (n *Bits) appendTo(dst []byte) []byte {
	var positions []bson.RawValue
	for _, p := range n.Positions {
		positions = append(positions, value.Int32(int32(p)))
	}
	return appendClause(dst, n.path, n.Path, n.Op.Name(), array(positions))
}

func (n *ElemMatchObject) appendTo(dst []byte) []byte {
	return appendClause(dst, n.path, n.Path, "$elemMatch", value.Document(document(n.Node.appendTo)))
}

func (n *ElemMatchValue) appendTo(dst []byte) []byte {
	return appendClause(dst, n.path, n.Path, "$elemMatch", value.Document(document(func(dst []byte) []byte {
		for _, c := range n.Nodes {
			if a, ok := c.(*Always); ok {
				// The language has no constants for an element; these say the same.
				dst = appendValue(dst, map[bool]string{true: "$nin", false: "$in"}[a.Value], array(nil))
				continue
			}
			dst = c.appendTo(dst)
		}
		return dst
	})))
}

func (n *Expr) appendTo(dst []byte) []byte { return appendValue(dst, "$expr", n.Value) }

func (n *Schema) appendTo(dst []byte) []byte {
	return appendValue(dst, "$jsonSchema", value.Document(n.Value))
}
