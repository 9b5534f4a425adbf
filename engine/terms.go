package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// terms are what the expressions of one command are evaluated with: the variables of its let, the time when it began, random bits.
// They belong to one goroutine, as all does that is parsed with them.
type terms struct {
	env   *env.Env
	ctx   context.Context // of the call under way
	cells *expr.Context   // nil until there is an expression
	scope expr.Scope

	coll     *collation.Collation // nil: strings are compared by their bytes
	inherits bool                 // coll is the collection's
}

// terms evaluates let, which may be nil. Strings are compared as coll says or, if it is empty, as the collection does.
func (db *DB) terms(ctx context.Context, ns Namespace, let, coll bson.Raw) (*terms, error) {
	t := &terms{env: db.env, ctx: ctx, inherits: value.Count(coll) == 0}
	err := db.describe(t, ns)
	if err == nil && !t.inherits {
		t.coll, err = collation.Parse(coll)
	}
	if err != nil || value.Count(let) == 0 {
		return t, err
	}
	t.scope, err = expr.Let(t.context(), expr.Scope{}, let)
	return t, err
}

// describe finds how the collection compares strings; one that is not there does it by their bytes. A view is refused.
func (db *DB) describe(t *terms, ns Namespace) error {
	if ns.Coll == viewsName {
		return onView(ns)
	}
	return db.read(func(sn *storage.Snapshot) error {
		c, _, err := db.collection(sn, ns)
		if err != nil || c == nil {
			return err
		}
		if c.def.Options.IsView() {
			return onView(ns)
		}
		t.coll = c.def.Options.Collation
		return nil
	})
}

// fit says whether what was parsed with t is right for c, which may be another collection than there was then.
func (t *terms) fit(c *collection) error {
	if t.inherits && !collation.Same(t.coll, c.def.Options.Collation) {
		return mongoerr.QueryPlanKilled.Errorf("query plan killed :: collection %s was dropped, and one with another collation has its name", c.def.NS)
	}
	return nil
}

// order is how values are compared; nil is package value's order.
func (t *terms) order() func(a, b bson.RawValue) int {
	if t.coll == nil {
		return nil
	}
	return func(a, b bson.RawValue) int { return match.Compare(t.coll, a, b) }
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
		t.cells.Order = t.order()
	}
	return t.cells
}

func newContext(e *env.Env) *expr.Context {
	return &expr.Context{Now: e.Clock.Now().UnixMilli(), Rand: e.Rand.Uint64}
}

func (t *terms) matching() match.Options { return matching(t.coll, t.predicate) }

func matching(c *collation.Collation, expr func(bson.RawValue) (match.Predicate, error)) match.Options {
	o := match.Options{Expr: expr}
	if c != nil {
		o.Collation = c
	}
	return o
}

func (t *terms) sorting() sortkey.Options {
	var o sortkey.Options
	if t.coll != nil {
		o.Collation = t.coll
	}
	return o
}

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
func shared(e *env.Env, c *collation.Collation) match.Options {
	order := (&terms{coll: c}).order()
	return matching(c, func(v bson.RawValue) (match.Predicate, error) {
		x, err := expr.Parse(v, expr.Scope{})
		if err != nil {
			return nil, err
		}
		return func(doc bson.Raw) (bool, error) {
			at := newContext(e)
			at.Order = order
			r, err := x.Eval(at, doc)
			return err == nil && value.Truth(r), err
		}, nil
	})
}
