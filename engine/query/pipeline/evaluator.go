package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// evaluator evaluates several expressions over one document after the other. Those that are plain fields are found in one walk
// over the document. It belongs to one run.
type evaluator struct {
	c      *expr.Context
	exprs  []*expr.Expr
	names  []string // of the fields that are walked for
	field  []int    // by expression: the number of its field, -1: it is no plain one
	found  []bson.RawValue
	values []bson.RawValue
}

func newEvaluator(c *expr.Context, exprs []*expr.Expr) *evaluator {
	e := &evaluator{c: c, exprs: exprs, values: make([]bson.RawValue, len(exprs))}
	for _, x := range exprs {
		i := -1
		if name, ok := x.Field(); ok && strings.IndexByte(name, '.') < 0 {
			if i = slices.Index(e.names, name); i < 0 {
				i = len(e.names)
				e.names = append(e.names, name)
			}
		}
		e.field = append(e.field, i)
	}
	e.found = make([]bson.RawValue, len(e.names))
	return e
}

// eval gives the values in the order of the expressions. They die at the next call.
func (e *evaluator) eval(doc bson.Raw) ([]bson.RawValue, error) {
	value.LookupAll(doc, e.names, e.found)
	for i, x := range e.exprs {
		if f := e.field[i]; f >= 0 {
			e.values[i] = e.found[f]
			continue
		}
		var err error
		if e.values[i], err = x.Eval(e.c, doc); err != nil {
			return nil, err
		}
	}
	return e.values, nil
}
