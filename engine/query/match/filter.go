package match

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// levelMax is how deep a filter may nest; MongoDB's limit.
const levelMax = 100

// Options are what a filter means beside what it says.
type Options struct {
	// Collation compares strings; nil is by bytes.
	Collation Collation
	// Expr compiles the operand of $expr. Without it $expr is refused.
	Expr func(expr bson.RawValue) (Predicate, error)
}

// Predicate is a compiled $expr: is the expression true of the document?
type Predicate func(doc bson.Raw) (bool, error)

// Filter is a parsed filter. It is immutable and may be used by any number of goroutines at once. It keeps the bytes that it was
// parsed from.
type Filter struct {
	root   Node
	fields *fields // the first parts of paths that one pass over the document looks for
}

// Parse parses a filter; nil is {}. The error is a client's: BadValue, FailedToParse, TypeMismatch, NotImplemented ...
func Parse(filter bson.Raw, opts Options) (*Filter, error) {
	if len(filter) == 0 {
		return &Filter{root: &Always{true}}, nil
	}
	if err := value.Validate(filter); err != nil {
		return nil, err
	}
	p := &parser{opts: opts, operators: operators, keywords: schemaKeywords}
	root, err := p.document(filter)
	if err != nil {
		return nil, err
	}
	return &Filter{root, &p.fields}, nil
}

// Root is the tree. It is not to be changed.
func (f *Filter) Root() Node { return f.root }

// With is a filter for a part of f's tree, or for a tree put together from parts of f's tree by And: what a plan has to
// test after its index scan has seen to the rest.
func (f *Filter) With(root Node) *Filter { return &Filter{root, f.fields} }

// Conjunction is the And of nodes in normal form.
func Conjunction(nodes ...Node) Node { return makeAnd(slices.Clone(nodes)) }

// All says whether the filter lets every document pass.
func (f *Filter) All() bool {
	a, ok := f.root.(*Always)
	return ok && a.Value
}

// Reads are the paths whose values decide whether a document passes; all says that it takes more than these: $expr, $jsonSchema. A
// plan whose index has them all can test a filter without the document.
func (f *Filter) Reads() (paths []string, all bool) { return reads(nil, f.root) }

func reads(paths []string, nodes ...Node) (_ []string, all bool) {
	for _, n := range nodes {
		more := false
		switch n := n.(type) {
		case *And:
			paths, more = reads(paths, n.Nodes...)
		case *Or:
			paths, more = reads(paths, n.Nodes...)
		case *Nor:
			paths, more = reads(paths, n.Nodes...)
		case *Not:
			paths, more = reads(paths, n.Node)
		case *Expr, *Schema:
			more = true
		default:
			if path, ok := PathOf(n); ok && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		all = all || more
	}
	return paths, all
}

// PathOf is the path that a test of a path is about.
func PathOf(n Node) (path string, ok bool) {
	switch n := n.(type) {
	case *Comparison:
		return n.Path, true
	case *In:
		return n.Path, true
	case *Exists:
		return n.Path, true
	case *Type:
		return n.Path, true
	case *Mod:
		return n.Path, true
	case *Regex:
		return n.Path, true
	case *Size:
		return n.Path, true
	case *Bits:
		return n.Path, true
	case *ElemMatchObject:
		return n.Path, true
	case *ElemMatchValue:
		return n.Path, true
	}
	return "", false
}

// Raw is the filter in its normal form, as explain shows it.
func (f *Filter) Raw() bson.Raw {
	return document(func(dst []byte) []byte { return f.root.appendTo(dst) })
}

// parser carries the table, so that the operators' functions can call it without an initialization cycle.
type parser struct {
	opts      Options
	operators []operator
	keywords  []keyword
	fields    fields
	level     int
	nested    int  // inside how many $elemMatch
	element   bool // the tests parsed now are about an element of $elemMatch
	weight    int  // of the patterns so far
}

// enter counts a level of the filter.
func (p *parser) enter() error {
	if p.level++; p.level > levelMax {
		return mongoerr.BadValue.Errorf("filter nests deeper than the maximum query tree depth of %d", levelMax)
	}
	return nil
}

func (p *parser) leave() { p.level-- }

// document parses a whole filter, or one below a logical operator.
func (p *parser) document(doc bson.Raw) (Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var nodes []Node
	for it := value.Elements(doc); it.Next(); {
		var n Node
		var err error
		if name := string(it.Name()); strings.HasPrefix(name, "$") {
			n, err = p.top(name, it.Value())
		} else {
			n, err = p.field(name, it.Value())
		}
		if err != nil {
			return nil, err
		}
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return makeAnd(nodes), nil
}

func (p *parser) top(name string, arg bson.RawValue) (Node, error) {
	o, ok := p.findOperator(name)
	switch {
	case ok && o.todo:
		return nil, mongoerr.NotImplemented.Errorf("the query operator %s is not implemented", name)
	case !ok || o.top == nil:
		return nil, mongoerr.BadValue.Errorf("unknown top level operator: %s. If a field's name starts with '$', "+
			"$getField or $setField reach it", name)
	}
	return o.top(p, arg)
}

// field parses {path: arg}.
func (p *parser) field(path string, arg bson.RawValue) (Node, error) {
	switch {
	case arg.Type == bson.TypeRegex:
		return p.regexValue(path, arg)
	case isOperators(arg, false):
		return p.operatorsOf(path, arg.Value)
	}
	return p.comparison(path, Eq, arg)
}

// operatorsOf parses {$gt: 1, $lt: 5} behind path.
func (p *parser) operatorsOf(path string, clause bson.Raw) (Node, error) {
	nodes, err := p.operatorList(path, clause)
	if err != nil {
		return nil, err
	}
	return makeAnd(nodes), nil
}

func (p *parser) operatorList(path string, clause bson.Raw) ([]Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var nodes []Node
	for it := value.Elements(clause); it.Next(); {
		name := string(it.Name())
		o, ok := p.findOperator(name)
		switch {
		case ok && o.todo:
			return nil, mongoerr.NotImplemented.Errorf("the query operator %s, used at '%s', is not implemented", name, path)
		case !ok || o.field == nil:
			return nil, mongoerr.BadValue.Errorf("unknown operator: %s (at '%s')", name, path)
		}
		n, err := o.field(p, path, it.Value(), clause)
		if err != nil {
			return nil, err
		}
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// isOperators says whether v is a document of operators rather than a value to be equal to. A DBRef, though its fields
// start with '$', is a value.
func isOperators(v bson.RawValue, incompleteDBRef bool) bool {
	if v.Type != bson.TypeEmbeddedDocument {
		return false
	}
	var first string
	var ref, id, any bool
	for it := value.Elements(v.Value); it.Next(); {
		if first == "" {
			if first = string(it.Name()); !strings.HasPrefix(first, "$") {
				return false
			}
		}
		switch string(it.Name()) {
		case "$ref":
			ref, any = true, true
		case "$id":
			id, any = true, true
		case "$db":
			any = true
		}
	}
	return first != "" && !(ref && id) && !(incompleteDBRef && any)
}

// pathOf is the compiled path of a test. Inside $elemMatch paths begin at the element, so they get no slot.
func (p *parser) pathOf(s string, whole bool) *path {
	c := newPath(s, whole)
	c.element = p.element
	if p.nested > 0 {
		return c
	}
	first := c.parts[0].Name
	if c.slot = slices.Index(p.fields.names, first); c.slot < 0 && len(p.fields.names) < slotMax {
		c.slot = len(p.fields.names)
		p.fields.add(first)
	}
	return c
}

// makeAnd, makeOr and makeNor keep the normal form that Node promises.
func makeAnd(nodes []Node) Node {
	var flat []Node
	for _, n := range nodes {
		switch n := n.(type) {
		case *Always:
			if !n.Value {
				return n
			}
		case *And:
			flat = append(flat, n.Nodes...)
		default:
			flat = append(flat, n)
		}
	}
	switch len(flat) {
	case 0:
		return &Always{true}
	case 1:
		return flat[0]
	}
	return &And{flat}
}

func makeOr(nodes []Node) Node {
	var flat []Node
	for _, n := range nodes {
		switch n := n.(type) {
		case *Always:
			if n.Value {
				return n
			}
		case *Or:
			flat = append(flat, n.Nodes...)
		default:
			flat = append(flat, n)
		}
	}
	switch len(flat) {
	case 0:
		return &Always{false}
	case 1:
		return flat[0]
	}
	return &Or{flat}
}

func makeNor(nodes []Node) Node {
	switch n := makeOr(nodes).(type) {
	case *Always:
		return &Always{!n.Value}
	case *Or:
		return &Nor{n.Nodes}
	default:
		return &Nor{[]Node{n}}
	}
}
