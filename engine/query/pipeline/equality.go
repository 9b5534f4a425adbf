package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// equality is a condition {$expr: {$eq: ["$path", "$$variable"]}} of a sub-pipeline. An expression says nothing to a planner; the same
// as a test of the path, with the variable's value, it can look up in an index.
type equality struct {
	path string
	e    *expr.Expr
}

// equalities are those that a filter asks for, in conjunctions.
func (p *parser) equalities(filter bson.Raw) (list []equality) {
	for it := value.Elements(filter); it.Next(); {
		switch v := it.Value(); string(it.Name()) {
		case "$expr":
			list = append(list, p.equalitiesOf(v)...)
		case "$and":
			for it := value.Elements(v.Value); it.Next(); {
				list = append(list, p.equalities(bson.Raw(it.Value().Value))...)
			}
		}
	}
	return list
}

// equalitiesOf are those of an expression.
func (p *parser) equalitiesOf(v bson.RawValue) (list []equality) {
	if v.Type != bson.TypeEmbeddedDocument || value.Count(v.Value) != 1 {
		return nil
	}
	it := value.Elements(v.Value)
	it.Next()
	args := it.Value()
	switch {
	case args.Type != bson.TypeArray:
	case string(it.Name()) == "$and":
		for it := value.Elements(args.Value); it.Next(); {
			list = append(list, p.equalitiesOf(it.Value())...)
		}
	case string(it.Name()) == "$eq" && value.Count(args.Value) == 2:
		a, b := value.At(args.Value, 0), value.At(args.Value, 1)
		for _, side := range [][2]bson.RawValue{{a, b}, {b, a}} {
			path, variable := string(value.StringBytes(side[0])), string(value.StringBytes(side[1]))
			if side[0].Type != bson.TypeString || !strings.HasPrefix(path, "$") || strings.HasPrefix(path, "$$") || !strings.HasPrefix(variable, "$$") {
				continue
			}
			if e, err := p.expression(side[1]); err == nil {
				if paths, all := e.Reads(); len(paths) == 0 && !all {
					list = append(list, equality{path[1:], e})
				}
			}
		}
	}
	return list
}

// test is what the equality asks of documents, with the variables that are set now: every document for which it holds passes. It is
// nil where that cannot be said: nothing is equal to a missing value but another, and a path through arrays gives an array that is
// nowhere in the document.
func (q equality) test(c *expr.Context) (bson.Raw, error) {
	v, err := q.e.Eval(c, bson.Raw{5, 0, 0, 0, 0})
	if err != nil || v.Type == 0 || v.Type == bson.TypeUndefined || v.Type == bson.TypeArray {
		return nil, err
	}
	eq, d := newDocument(), newDocument()
	eq.field("$eq", v)
	d.field(q.path, value.Document(eq.raw()))
	return d.raw(), nil
}
