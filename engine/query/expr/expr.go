// Package expr is the language of computed values: what stands behind names in $project and $addFields, in $expr, in $group, in
// pipeline updates. Parse reads an expression into a tree once; Eval walks the tree over raw documents, any number of times.
//
// A value is a bson.RawValue, a view of the document's bytes or of bytes that the evaluation made; nothing is ever written in
// place. The zero RawValue is missing: a path that leads nowhere, a branch that answers $$REMOVE. Operators say themselves what
// null and missing mean to them; most answer null to either.
//
// The tree has four kinds of leaves and inner nodes: literals, paths (from the current document or from a variable), documents
// and arrays of expressions, and operators. An operator is a row of the table in operators.go. Most rows are plain functions of
// their evaluated arguments (call); those that name their arguments, bind variables or evaluate only some of them parse
// themselves. A plain operator whose arguments are all literals is evaluated when it is parsed, unless that fails: an error
// belongs to the document that meets it.
//
// # Variables
//
// A Scope gives each variable a slot when it is parsed, and a Context holds the slots when it is evaluated, so there is no lookup
// by name. Nothing here reads a clock or a random source: what the time is, and where random numbers come from, the Context says.
//
// # Bounds
//
// Expressions nest at most depthMax levels, which bounds the recursion of both parsing and evaluating. A value that is made is at
// most sizeMax bytes, and each loop asks Context.Tick now and then whether it shall go on.
package expr

import (
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// code is a code of MongoDB's that has no name of its own.
type code = mongoerr.Code

const (
	// depthMax is how deep expressions nest.
	depthMax = 200
	// sizeMax is the largest string, array or document that an expression makes, in bytes. Larger than a stored document: what is
	// too large in the middle may be cut down at the end.
	sizeMax = 64 << 20
	// tickEvery is how many steps of loops lie between two calls of Context.Tick.
	tickEvery = 1024
)

// Expr is a parsed expression. It is immutable; evaluating it changes the Context only.
type Expr struct {
	root  node
	paths []string
	all   bool
}

// Context is what an evaluation depends on beside the document. It belongs to one goroutine.
type Context struct {
	// Now is $$NOW in milliseconds since 1970.
	Now int64
	// ClusterTime is $$CLUSTER_TIME; missing if there is none, and then asking for it is an error.
	ClusterTime bson.RawValue
	// Rand gives random bits. Without it $rand and $sampleRate are errors.
	Rand func() uint64
	// Order compares values; nil is value.Compare. A collation's differs.
	Order func(a, b bson.RawValue) int
	// Tick is called every now and then in long loops; an error ends the evaluation. It may be nil.
	Tick func() error

	root, current bson.RawValue
	vars          []bson.RawValue
	steps         int
	zones         map[string]*time.Location
}

// Eval is the expression's value for doc; missing is the zero value. The result may be a view of doc.
func (e *Expr) Eval(c *Context, doc bson.Raw) (bson.RawValue, error) {
	if l, ok := e.root.(literal); ok {
		return l.v, nil
	}
	c.root = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	c.current = c.root
	return e.root.eval(c)
}

// EvalAt is Eval with a $$CURRENT that is not $$ROOT.
func (e *Expr) EvalAt(c *Context, root, current bson.Raw) (bson.RawValue, error) {
	c.root, c.current = value.Document(root), value.Document(current)
	return e.root.eval(c)
}

// Constant is the expression's value if it is the same for all documents.
func (e *Expr) Constant() (bson.RawValue, bool) {
	l, ok := e.root.(literal)
	return l.v, ok
}

// Field is the path that the expression consists of ("$a.b" is a.b), and false if it is more than that.
func (e *Expr) Field() (string, bool) {
	p, ok := e.root.(*path)
	if !ok || p.from != fromCurrent && p.from != fromRoot || len(p.names) == 0 {
		return "", false
	}
	return strings.Join(p.names, "."), true
}

// Reads are the paths of the document whose values the expression may look at, sorted; all says that it may look at everything.
func (e *Expr) Reads() (paths []string, all bool) { return e.paths, e.all }

// Set gives the variable in a slot its value, for those who bound it with Scope.Bind.
func (c *Context) Set(slot int, v bson.RawValue) {
	for len(c.vars) <= slot {
		c.vars = append(c.vars, bson.RawValue{})
	}
	c.vars[slot] = v
}

// SetAll sets several variables at once. Values that are evaluated in the outer scope must not be set one by one: the variables of a
// $map in the second expression have the slots of the first.
func (c *Context) SetAll(slots []int, values []bson.RawValue) {
	for i, slot := range slots {
		c.Set(slot, values[i])
	}
}

// compare orders two values.
func (c *Context) compare(a, b bson.RawValue) int {
	if c.Order != nil {
		return c.Order(a, b)
	}
	return value.Compare(a, b)
}

// step counts a step of a loop.
func (c *Context) step() error {
	if c.steps++; c.steps%tickEvery == 0 && c.Tick != nil {
		return c.Tick()
	}
	return nil
}

// Scope knows the variables that an expression may use. It is immutable; Bind makes a larger one. The zero Scope has no
// variables but the system's.
type Scope struct {
	names []string // the slot is the position; a later one of the same name hides an earlier
}

// Bind returns a scope with one more variable, and its slot.
func (s Scope) Bind(name string) (Scope, int) {
	names := append(slices.Clip(slices.Clone(s.names)), name)
	return Scope{names: names}, len(names) - 1
}

func (s Scope) slot(name string) int {
	for i := len(s.names) - 1; i >= 0; i-- {
		if s.names[i] == name {
			return i
		}
	}
	return -1
}

// Let evaluates the variables of a command's let and returns a scope that has them. The expressions see no document.
func Let(c *Context, s Scope, vars bson.Raw) (Scope, error) {
	inner := s
	var slots []int
	var values []bson.RawValue
	for it := value.Elements(vars); it.Next(); {
		name := string(it.Name())
		if err := checkName(name); err != nil {
			return s, err
		}
		e, err := Parse(it.Value(), s)
		if err != nil {
			return s, err
		}
		if len(e.paths) > 0 || e.all {
			return s, code(4890500).Errorf("command let expression for '%s' tried to access a field, but this is not allowed", name)
		}
		v, err := e.Eval(c, emptyDocument)
		if err != nil {
			return s, err
		}
		var slot int
		inner, slot = inner.Bind(name)
		slots, values = append(slots, slot), append(values, v)
	}
	c.SetAll(slots, values)
	return inner, nil
}

var emptyDocument = bson.Raw{5, 0, 0, 0, 0}

// checkName says whether a user may choose name for a variable.
func checkName(name string) error {
	if name == "" {
		return mongoerr.FailedToParse.Errorf("empty variable names are not allowed")
	}
	if c := name[0]; (c < 'a' || c > 'z') && c < 0x80 {
		return mongoerr.FailedToParse.Errorf("'%s' starts with an invalid character for a user variable name", name)
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c < 0x80 {
			return mongoerr.FailedToParse.Errorf("'%s' contains an invalid character for a variable name: '%c'", name, c)
		}
	}
	return nil
}
