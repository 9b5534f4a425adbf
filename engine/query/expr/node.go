package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// node is a part of the tree.
type node interface {
	eval(c *Context) (bson.RawValue, error)
}

// literal is a value that does not depend on the document.
type literal struct{ v bson.RawValue }

func (n literal) eval(*Context) (bson.RawValue, error) { return n.v, nil }

// list is an array of expressions. What is missing becomes null, so that positions stay.
type list struct{ nodes []node }

func (n *list) eval(c *Context) (bson.RawValue, error) {
	b := newArray()
	for _, e := range n.nodes {
		v, err := e.eval(c)
		if err != nil {
			return v, err
		}
		b.add(v)
	}
	return b.done()
}

// object is a document of expressions. What is missing is left out.
type object struct {
	names []string
	nodes []node
}

func (n *object) eval(c *Context) (bson.RawValue, error) {
	b := newDocument()
	for i, e := range n.nodes {
		v, err := e.eval(c)
		if err != nil {
			return v, err
		}
		b.field(n.names[i], v)
	}
	return b.done()
}

// function is a plain operator. Its arguments are in an array that is used again.
type function func(c *Context, args []bson.RawValue) (bson.RawValue, error)

// call evaluates all its arguments and then applies a function.
type call struct {
	name string
	f    function
	args []node
}

func (n *call) eval(c *Context) (bson.RawValue, error) {
	var few [4]bson.RawValue
	args := few[:0]
	if len(n.args) > len(few) {
		args = make([]bson.RawValue, 0, len(n.args))
	}
	for _, a := range n.args {
		v, err := a.eval(c)
		if err != nil {
			return v, err
		}
		args = append(args, v)
	}
	return n.f(c, args)
}

// evalAll evaluates nodes; a nil node is missing.
func evalAll(c *Context, nodes []node) ([]bson.RawValue, error) {
	values := make([]bson.RawValue, len(nodes))
	for i, n := range nodes {
		if n == nil {
			continue
		}
		var err error
		if values[i], err = n.eval(c); err != nil {
			return nil, err
		}
	}
	return values, nil
}

var (
	yes = value.Bool(true)
	no  = value.Bool(false)
)

func boolean(b bool) bson.RawValue {
	if b {
		return yes
	}
	return no
}
