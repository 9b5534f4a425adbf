package expr

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// origin is where a path begins.
type origin uint8

const (
	fromCurrent origin = iota
	fromRoot
	fromVariable
)

// path is "$a.b", "$$ROOT.a", "$$x.a.b". An array on the way is replaced by what the rest of the path finds in those of its
// elements that are documents; numbers are names like all others.
type path struct {
	from  origin
	slot  int
	names []string
}

func (n *path) eval(c *Context) (bson.RawValue, error) {
	v := c.current
	switch n.from {
	case fromRoot:
		v = c.root
	case fromVariable:
		if n.slot >= len(c.vars) {
			return value.Missing, nil
		}
		v = c.vars[n.slot]
	}
	return follow(v, n.names)
}

// follow goes along names from v.
func follow(v bson.RawValue, names []string) (bson.RawValue, error) {
	for i, name := range names {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v = value.Lookup(v.Value, name)
		case bson.TypeArray:
			return followEach(v, names[i:])
		default:
			return value.Missing, nil
		}
	}
	return v, nil
}

func followEach(array bson.RawValue, names []string) (bson.RawValue, error) {
	b := newArray()
	for it := value.Elements(array.Value); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			continue
		}
		v, err := follow(it.Value(), names)
		if err != nil {
			return v, err
		}
		if v.Type != 0 {
			b.add(v)
		}
	}
	return b.done()
}

// variable is one of the system's variables that are not documents.
type variable func(c *Context) (bson.RawValue, error)

func (f variable) eval(c *Context) (bson.RawValue, error) { return f(c) }

// reference reads "$path" or "$$variable.path".
func (p *parser) reference(s string) (node, error) {
	if !strings.HasPrefix(s, "$$") {
		names, err := splitPath(s[1:])
		if err != nil {
			return nil, err
		}
		return p.currentPath(names), nil
	}
	name, rest, dotted := strings.Cut(s[2:], ".")
	var names []string
	if dotted {
		var err error
		if names, err = splitPath(rest); err != nil {
			return nil, err
		}
	}
	if slot := p.scope.slot(name); slot >= 0 {
		return &path{from: fromVariable, slot: slot, names: names}, nil
	}
	switch name {
	case "":
		return nil, mongoerr.FailedToParse.Errorf("empty variable names are not allowed")
	case "CURRENT":
		return p.currentPath(names), nil
	case "ROOT":
		p.reads(names)
		return &path{from: fromRoot, names: names}, nil
	case "REMOVE":
		return literal{}, nil
	case "NOW":
		return variable(func(c *Context) (bson.RawValue, error) { return follow(value.Date(c.Now), names) }), nil
	case "CLUSTER_TIME":
		return variable(func(c *Context) (bson.RawValue, error) {
			if c.ClusterTime.Type == 0 {
				return value.Missing, code(51144).Errorf("builtin variable '$$CLUSTER_TIME' is not available")
			}
			return follow(c.ClusterTime, names)
		}), nil
	case "USER_ROLES":
		return literal{value.Array(emptyDocument)}, nil
	case "JS_SCOPE", "SEARCH_META":
		return nil, mongoerr.NotImplemented.Errorf("the variable $$%s is not implemented", name)
	}
	return nil, code(17276).Errorf("use of undefined variable: %s", name)
}

// currentPath is a path from $$CURRENT.
func (p *parser) currentPath(names []string) node {
	if p.rebound == 0 {
		p.reads(names)
	}
	return &path{from: fromCurrent, names: names}
}

// reads notes that the document's value at a path is looked at.
func (p *parser) reads(names []string) {
	if len(names) == 0 {
		p.all = true
		return
	}
	p.paths = append(p.paths, strings.Join(names, "."))
}

// splitPath splits a path after its dollars.
func splitPath(s string) ([]string, error) {
	switch {
	case s == "":
		return nil, mongoerr.InvalidPipelineOperator.Errorf("'$' by itself is not a valid FieldPath")
	case strings.HasSuffix(s, "."):
		return nil, mongoerr.LocationFieldPathTrailingDot.Errorf("FieldPath must not end with a '.' ('%s')", s)
	case strings.IndexByte(s, 0) >= 0:
		return nil, code(16411).Errorf("FieldPath field names may not contain '\\0'")
	}
	names := strings.Split(s, ".")
	if len(names) > depthMax {
		return nil, mongoerr.Overflow.Errorf("FieldPath is too long: %d parts at most", depthMax)
	}
	for _, name := range names {
		if name == "" {
			return nil, mongoerr.LocationFieldNameEmpty.Errorf("FieldPath field names may not be empty strings ('%s')", s)
		}
		if name[0] == '$' && name != "$id" && name != "$ref" && name != "$db" {
			return nil, mongoerr.LocationFieldPathDollar.Errorf("FieldPath field names may not start with '$' ('%s'). Consider using $getField or $setField.",
				s)
		}
	}
	return names, nil
}
