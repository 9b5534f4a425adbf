package expr

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// parser reads one expression.
type parser struct {
	operators []operator // the table, carried because its rows refer to the parser
	scope     Scope
	depth     int
	rebound   int // how many $let around here give CURRENT another value
	paths     []string
	all       bool
}

// Parse reads an expression: a string that begins with $ is a path or a variable, a document is one operator or a document of
// expressions, an array is an array of expressions, all else is itself.
func Parse(v bson.RawValue, s Scope) (*Expr, error) {
	p := &parser{operators: operators, scope: s}
	n, err := p.parse(v)
	if err != nil {
		return nil, err
	}
	return p.finish(n), nil
}

// finish makes the expression whose tree is n.
func (p *parser) finish(n node) *Expr {
	slices.Sort(p.paths)
	return &Expr{root: n, paths: slices.Compact(p.paths), all: p.all}
}

func (p *parser) parse(v bson.RawValue) (node, error) {
	if p.depth++; p.depth > depthMax {
		return nil, mongoerr.Overflow.Errorf("expressions are nested deeper than %d levels", depthMax)
	}
	defer func() { p.depth-- }()
	switch v.Type {
	case bson.TypeString:
		if s := value.StringBytes(v); len(s) > 0 && s[0] == '$' {
			return p.reference(string(s))
		}
	case bson.TypeEmbeddedDocument:
		return p.document(v)
	case bson.TypeArray:
		nodes, err := p.list(v)
		if err != nil {
			return nil, err
		}
		n := &list{nodes}
		if !constants(nodes) {
			return n, nil
		}
		r, err := n.eval(&Context{})
		return literal{r}, err
	}
	return literal{v}, nil
}

// list reads each element of an array.
func (p *parser) list(v bson.RawValue) ([]node, error) {
	var nodes []node
	for it := value.Elements(v.Value); it.Next(); {
		n, err := p.parse(it.Value())
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// document reads {$op: arg} or {name: expression, ...}.
func (p *parser) document(v bson.RawValue) (node, error) {
	it := value.Elements(v.Value)
	if !it.Next() {
		return literal{v}, nil
	}
	if name := it.Name(); len(name) > 0 && name[0] == '$' {
		op, arg := string(name), it.Value()
		if it.Next() {
			return nil, code(15983).Errorf("an object representing an expression must have exactly one field: %s",
				value.Brief(v, 200))
		}
		return p.operator(op, arg)
	}
	o := &object{}
	constant := true
	for it := value.Elements(v.Value); it.Next(); {
		name := string(it.Name())
		switch {
		case name == "":
			return nil, mongoerr.LocationFieldNameEmpty.Errorf("FieldPath field names may not be empty strings.")
		case name[0] == '$':
			return nil, mongoerr.LocationFieldPathDollar.Errorf("FieldPath field names may not start with '$'. Consider using $getField or $setField: '%s'",
				name)
		case strings.IndexByte(name, '.') >= 0:
			return nil, code(16412).Errorf("FieldPath field names may not contain '.'. Consider using $getField or $setField: '%s'",
				name)
		case slices.Contains(o.names, name):
			return nil, code(16406).Errorf("duplicate field name specified in object literal: %s", value.Brief(v, 200))
		}
		n, err := p.parse(it.Value())
		if err != nil {
			return nil, err
		}
		_, isLiteral := n.(literal)
		constant = constant && isLiteral
		o.names, o.nodes = append(o.names, name), append(o.nodes, n)
	}
	if constant {
		r, err := o.eval(&Context{})
		return literal{r}, err
	}
	return o, nil
}

func constants(nodes []node) bool {
	for _, n := range nodes {
		if _, ok := n.(literal); !ok {
			return false
		}
	}
	return true
}

// operator reads {name: arg}.
func (p *parser) operator(name string, arg bson.RawValue) (node, error) {
	o, ok := p.find(name)
	switch {
	case !ok:
		return nil, mongoerr.InvalidPipelineOperator.Errorf("unrecognized expression '%s'", name)
	case o.todo:
		return nil, mongoerr.NotImplemented.Errorf("the expression '%s' is not implemented", name)
	case o.parse != nil:
		return o.parse(p, arg)
	}
	args, err := p.arguments(name, arg, o.min, o.max)
	if err != nil {
		return nil, err
	}
	return p.call(o.name, o.call, args...), nil
}

// arguments reads an operator's operands: an array of them, or one that is not an array. max -1 is any number.
func (p *parser) arguments(name string, arg bson.RawValue, least, most int) ([]node, error) {
	n := 1
	if arg.Type == bson.TypeArray {
		n = value.Count(arg.Value)
	}
	switch {
	case least == most && n != least:
		return nil, code(16020).Errorf("expression %s takes exactly %d arguments. %d were passed in.", name, least, n)
	case n < least || most >= 0 && n > most:
		return nil, code(28667).Errorf("expression %s takes at least %d arguments, and at most %d, but %d were passed in.",
			name, least, most, n)
	case arg.Type == bson.TypeArray:
		return p.list(arg)
	}
	one, err := p.parse(arg)
	return []node{one}, err
}

// call is the node of a plain operator, or its value if that is known already.
func (p *parser) call(name string, f function, args ...node) node {
	n := &call{name: name, f: f, args: args}
	if constants(args) {
		if v, err := n.eval(&Context{}); err == nil {
			return literal{v}
		}
	}
	return n
}

// named reads the operands of an operator that takes a document: those that must be there first, those that may behind. An
// operand that is not there is a nil node. unknown is the code of an error about a field that is in neither.
func (p *parser) named(op string, arg bson.RawValue, notObject, unknown, missing code, must, may []string) ([]node, error) {
	raw, err := p.fields(op, arg, notObject, unknown, missing, must, may)
	if err != nil {
		return nil, err
	}
	nodes := make([]node, len(raw))
	for i, v := range raw {
		if v.Type == 0 {
			continue
		}
		if nodes[i], err = p.parse(v); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// fields is named without parsing the operands.
func (p *parser) fields(op string, arg bson.RawValue, notObject, unknown, missing code, must, may []string) ([]bson.RawValue, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, notObject.Errorf("%s only supports an object as its argument, not %s", op, value.TypeName(arg.Type))
	}
	values := make([]bson.RawValue, len(must)+len(may))
	for it := value.Elements(arg.Value); it.Next(); {
		name := string(it.Name())
		i := slices.Index(must, name)
		if i < 0 {
			if i = slices.Index(may, name); i < 0 {
				return nil, unknown.Errorf("unrecognized argument to %s: '%s'", op, name)
			}
			i += len(must)
		}
		values[i] = it.Value()
	}
	for i, name := range must {
		if values[i].Type == 0 {
			return nil, missing.Errorf("missing '%s' parameter to %s", name, op)
		}
	}
	return values, nil
}

// bind parses v with one more variable.
func (p *parser) bind(name string, v bson.RawValue) (n node, slot int, err error) {
	outer := p.scope
	p.scope, slot = outer.Bind(name)
	n, err = p.parse(v)
	p.scope = outer
	return n, slot, err
}

// find finds name's row.
func (p *parser) find(name string) (operator, bool) {
	i, ok := slices.BinarySearchFunc(p.operators, name, func(o operator, name string) int { return strings.Compare(o.name, name) })
	if !ok {
		return operator{}, false
	}
	return p.operators[i], true
}
