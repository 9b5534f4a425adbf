package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Comparisons are between all types, in the order of package value: there are no brackets as in filters.

func callCmp(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch d := c.compare(args[0], args[1]); {
	case d < 0:
		return value.Int32(-1), nil
	case d > 0:
		return value.Int32(1), nil
	}
	return value.Int32(0), nil
}

func callEq(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(c.compare(args[0], args[1]) == 0), nil
}

func callNe(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(c.compare(args[0], args[1]) != 0), nil
}

func callLt(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(c.compare(args[0], args[1]) < 0), nil
}

func callLte(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(c.compare(args[0], args[1]) <= 0), nil
}

func callGt(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(c.compare(args[0], args[1]) > 0), nil
}

func callGte(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(c.compare(args[0], args[1]) >= 0), nil
}

func callNot(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(!value.Truth(args[0])), nil
}

// junction is $and and $or, which stop at the operand that decides.
type junction struct {
	decides bool
	nodes   []node
}

func (n *junction) eval(c *Context) (bson.RawValue, error) {
	for _, e := range n.nodes {
		v, err := e.eval(c)
		if err != nil {
			return v, err
		}
		if value.Truth(v) == n.decides {
			return boolean(n.decides), nil
		}
	}
	return boolean(!n.decides), nil
}

func parseAnd(p *parser, arg bson.RawValue) (node, error) { return p.junction("$and", arg, false) }

func parseOr(p *parser, arg bson.RawValue) (node, error) { return p.junction("$or", arg, true) }

func (p *parser) junction(op string, arg bson.RawValue, decides bool) (node, error) {
	nodes, err := p.arguments(op, arg, 0, -1)
	if err != nil {
		return nil, err
	}
	n := &junction{decides, nodes}
	if constants(nodes) {
		v, err := n.eval(&Context{})
		return literal{v}, err
	}
	return n, nil
}

// conditional is $cond.
type conditional struct{ test, then, otherwise node }

func (n *conditional) eval(c *Context) (bson.RawValue, error) {
	v, err := n.test.eval(c)
	switch {
	case err != nil:
		return v, err
	case value.Truth(v):
		return n.then.eval(c)
	}
	return n.otherwise.eval(c)
}

func parseCond(p *parser, arg bson.RawValue) (node, error) {
	var nodes []node
	var err error
	if arg.Type == bson.TypeEmbeddedDocument {
		var raw []bson.RawValue
		names := []string{"if", "then", "else"}
		if raw, err = p.fields("$cond", arg, 17083, 17083, 17080, nil, names); err != nil {
			return nil, err
		}
		for i, v := range raw {
			if v.Type == 0 {
				return nil, code(17080+i).Errorf("missing '%s' parameter to $cond", names[i])
			}
			n, err := p.parse(v)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
	} else if nodes, err = p.arguments("$cond", arg, 3, 3); err != nil {
		return nil, err
	}
	if l, ok := nodes[0].(literal); ok {
		if value.Truth(l.v) {
			return nodes[1], nil
		}
		return nodes[2], nil
	}
	return &conditional{nodes[0], nodes[1], nodes[2]}, nil
}

// ifNull is the first operand that is not nullish, else the last.
type ifNull struct{ nodes []node }

func (n *ifNull) eval(c *Context) (bson.RawValue, error) {
	for i, e := range n.nodes {
		v, err := e.eval(c)
		if err != nil || !nullish(v) || i == len(n.nodes)-1 {
			return v, err
		}
	}
	return value.Null, nil
}

func parseIfNull(p *parser, arg bson.RawValue) (node, error) {
	if arg.Type != bson.TypeArray || value.Count(arg.Value) < 2 {
		n := 1
		if arg.Type == bson.TypeArray {
			n = value.Count(arg.Value)
		}
		return nil, code(1257300).Errorf("$ifNull needs at least two arguments, had: %d", n)
	}
	nodes, err := p.list(arg)
	if err != nil {
		return nil, err
	}
	n := &ifNull{nodes}
	if constants(nodes) {
		v, err := n.eval(&Context{})
		return literal{v}, err
	}
	return n, nil
}

// switched is $switch.
type switched struct {
	tests, thens []node
	otherwise    node // nil: none
}

func (n *switched) eval(c *Context) (bson.RawValue, error) {
	for i, test := range n.tests {
		v, err := test.eval(c)
		if err != nil {
			return v, err
		}
		if value.Truth(v) {
			return n.thens[i].eval(c)
		}
	}
	if n.otherwise == nil {
		return value.Missing, code(40066).Errorf("$switch could not find a matching branch for an input, and no default was specified.")
	}
	return n.otherwise.eval(c)
}

func parseSwitch(p *parser, arg bson.RawValue) (node, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(40060).Errorf("$switch requires an object as an argument, found: %s", typeName(arg))
	}
	n := &switched{}
	var err error
	for it := value.Elements(arg.Value); it.Next(); {
		switch name := string(it.Name()); name {
		case "default":
			if n.otherwise, err = p.parse(it.Value()); err != nil {
				return nil, err
			}
		case "branches":
			if it.Value().Type != bson.TypeArray {
				return nil, code(40061).Errorf("$switch expected an array for 'branches', found: %s", typeName(it.Value()))
			}
			for _, b := range elements(it.Value()) {
				if err := p.branch(n, b); err != nil {
					return nil, err
				}
			}
		default:
			return nil, code(40067).Errorf("$switch found an unknown argument: %s", name)
		}
	}
	if len(n.tests) == 0 {
		return nil, code(40068).Errorf("$switch requires at least one branch.")
	}
	return n, nil
}

func (p *parser) branch(n *switched, b bson.RawValue) error {
	if b.Type != bson.TypeEmbeddedDocument {
		return code(40062).Errorf("$switch expected each branch to be an object, found: %s", typeName(b))
	}
	var test, then node
	var err error
	for it := value.Elements(b.Value); it.Next(); {
		switch name := string(it.Name()); name {
		case "case":
			test, err = p.parse(it.Value())
		case "then":
			then, err = p.parse(it.Value())
		default:
			return code(40063).Errorf("$switch found an unknown argument to a branch: %s", name)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case test == nil:
		return code(40064).Errorf("$switch requires each branch have a 'case' expression")
	case then == nil:
		return code(40065).Errorf("$switch requires each branch have a 'then' expression.")
	}
	n.tests, n.thens = append(n.tests, test), append(n.thens, then)
	return nil
}

func parseLiteral(_ *parser, arg bson.RawValue) (node, error) { return literal{arg}, nil }

// let binds variables to values of the outer scope.
type let struct {
	slots  []int
	values []node
	in     node
	// current is the value of CURRENT inside, nil if it stays.
	current node
}

func (n *let) eval(c *Context) (bson.RawValue, error) {
	values, err := evalAll(c, n.values)
	if err != nil {
		return value.Missing, err
	}
	outer := c.current
	if n.current != nil {
		if c.current, err = n.current.eval(c); err != nil {
			c.current = outer
			return value.Missing, err
		}
	}
	c.SetAll(n.slots, values)
	v, err := n.in.eval(c)
	c.current = outer
	return v, err
}

func parseLet(p *parser, arg bson.RawValue) (node, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(16874).Errorf("$let only supports an object as its argument")
	}
	raw, err := p.fields("$let", arg, 16874, 16875, 16876, nil, []string{"vars", "in"})
	switch {
	case err != nil:
		return nil, err
	case raw[0].Type == 0:
		return nil, code(16876).Errorf("missing 'vars' parameter to $let")
	case raw[1].Type == 0:
		return nil, code(16877).Errorf("missing 'in' parameter to $let")
	case raw[0].Type != bson.TypeEmbeddedDocument:
		return nil, mongoerr.TypeMismatch.Errorf("invalid parameter: expected an object (vars)")
	}
	n := &let{}
	inner := p.scope
	for it := value.Elements(raw[0].Value); it.Next(); {
		name := string(it.Name())
		e, err := p.parse(it.Value())
		if err != nil {
			return nil, err
		}
		if name == "CURRENT" {
			n.current = e
			continue
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
		var slot int
		inner, slot = inner.Bind(name)
		n.slots, n.values = append(n.slots, slot), append(n.values, e)
	}
	outer := p.scope
	p.scope = inner
	if n.current != nil {
		p.rebound++
	}
	n.in, err = p.parse(raw[1])
	if n.current != nil {
		p.rebound--
	}
	p.scope = outer
	return n, err
}
