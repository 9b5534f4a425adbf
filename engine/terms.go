package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
)

// terms are what the expressions of one command are evaluated with: the variables of its let, the time when it began, random bits.
// They belong to one goroutine, as all does that is parsed with them.
type terms struct {
	env   *env.Env
	ctx   context.Context // of the call under way
	cells *expr.Context   // nil until there is an expression
	scope expr.Scope
}

// terms evaluates let, which may be nil.
func (db *DB) terms(ctx context.Context, let bson.Raw) (*terms, error) {
	t := &terms{env: db.env, ctx: ctx}
	if value.Count(let) == 0 {
		return t, nil
	}
	var err error
	t.scope, err = expr.Let(t.context(), expr.Scope{}, let)
	return t, err
}

// constants adds variables with values that are not evaluated.
func (t *terms) constants(vars bson.Raw) error {
	let := noFields()
	for it := value.Elements(vars); it.Next(); {
		let = appendField(let, string(it.Name()), value.Document(appendField(noFields(), "$literal", it.Value())))
	}
	var err error
	t.scope, err = expr.Let(t.context(), t.scope, let)
	return err
}

func (t *terms) context() *expr.Context {
	if t.cells == nil {
		t.cells = newContext(t.env)
		t.cells.Tick = func() error { return t.ctx.Err() }
	}
	return t.cells
}

func newContext(e *env.Env) *expr.Context {
	return &expr.Context{Now: e.Clock.Now().UnixMilli(), Rand: e.Rand.Uint64}
}

func (t *terms) matching() match.Options { return match.Options{Expr: t.predicate} }

func (t *terms) predicate(v bson.RawValue) (match.Predicate, error) {
	return pipeline.Filter(t.context(), t.scope)(v)
}

func (t *terms) expression(v bson.RawValue) (project.Expression, error) {
	return pipeline.Projection(t.context(), t.scope)(v)
}

func (t *terms) transform(stages bson.Raw) (update.Transform, error) {
	return pipeline.Transform(t.context(), t.scope)(stages)
}

// test is what package update compiles conditions with.
func (t *terms) test(filter bson.Raw) (update.Test, error) {
	f, err := match.Parse(filter, t.matching())
	if err != nil {
		return nil, err
	}
	return f.Match, nil
}

// shared is for filters that any number of goroutines use at once, as a validator is: each evaluation has a context of its own.
func shared(e *env.Env) match.Options {
	return match.Options{Expr: func(v bson.RawValue) (match.Predicate, error) {
		x, err := expr.Parse(v, expr.Scope{})
		if err != nil {
			return nil, err
		}
		return func(doc bson.Raw) (bool, error) {
			r, err := x.Eval(newContext(e), doc)
			return err == nil && value.Truth(r), err
		}, nil
	}}
}
