package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Aggregate is a pipeline.
type Aggregate struct {
	Stages    []bson.Raw
	Hint      bson.RawValue
	Collation bson.Raw
	Let       bson.Raw
	// Operations and Sessions are what $currentOp and $listLocalSessions give; nil: they are refused.
	Operations, Sessions func() []bson.Raw
	// Strict refuses the stages that are not in the stable API.
	Strict bool
}

// Aggregation is a pipeline under way. Its front, which is a find, is planned over indexes; the documents that come out of that flow
// through the stages.
//
// Like a Cursor it holds no snapshot between batches. A pipeline whose stages look at one document at a time goes on at the position
// of its front. Any other is run to its end in the snapshot of its first batch, and what does not fit the batch is held in memory,
// up to the bound that a stage has, too.
type Aggregation struct {
	*Cursor
	pipe  *pipeline.Pipeline
	world world
	sink  sink

	find, flows bool // nothing is behind the front; the stages look at one document at a time
	counts      func(n int64) bson.Raw

	out  pipeline.Iterator // nil before the first batch
	buf  bson.Raw          // the document that the stages look at
	rest []bson.Raw        // given next; of the whole result if over
	over bool              // out has no more
}

// Aggregate parses the pipeline and answers with its cursor. A namespace without a collection is for pipelines that make their documents
// themselves. A pipeline that ends in $out or $merge has been run when Aggregate returns, and gives no documents.
func (db *DB) Aggregate(ctx context.Context, ns Namespace, a Aggregate) (*Aggregation, error) {
	r, err := db.aggregation(ctx, ns, a)
	if err != nil {
		return nil, err
	}
	if _, writes := r.pipe.Writes(); writes {
		return r, r.write(ctx)
	}
	return r, nil
}

func (db *DB) aggregation(ctx context.Context, ns Namespace, a Aggregate) (*Aggregation, error) {
	check := ns.Check
	if ns.Coll == "" {
		check = func() error { return catalog.CheckDB(ns.DB) }
	}
	if err := check(); err != nil {
		return nil, err
	}
	if a.Collation != nil {
		if err := catalog.CheckCollation(value.Document(a.Collation)); err != nil {
			return nil, err
		}
	}
	in, err := db.terms(ctx, a.Let)
	if err != nil {
		return nil, err
	}
	r := &Aggregation{Cursor: &Cursor{db: db, ns: ns, terms: in}}
	r.world = world{db: db, terms: in, operations: a.Operations, sessions: a.Sessions}
	r.sink = sink{db: db, terms: in, world: &r.world}
	r.pipe, err = pipeline.Parse(a.Stages, pipeline.Options{
		Namespace: pipeline.Namespace{DB: ns.DB, Collection: ns.Coll}, Context: in.context(), Scope: in.scope,
		World: &r.world, Sink: &r.sink, Statistics: &r.world, Memory: int64(db.opt.SortMemory), Strict: a.Strict,
	})
	if err != nil {
		return nil, err
	}
	if ns.Coll == "" && r.pipe.NeedsSource() {
		return nil, mongoerr.InvalidNamespace.Errorf("{aggregate: 1} is not valid for a pipeline that reads a collection; it must begin with $documents or $currentOp")
	}
	r.query, err = db.frontQuery(r.pipe.Prefix().Find)
	r.query.Hint = a.Hint
	stages := r.pipe.Stages()
	r.find = len(stages) == 0 && r.pipe.NeedsSource()
	r.flows = flow(stages)
	if r.counts, _ = r.pipe.Counts(); r.counts != nil {
		r.query.OnlyIDs, r.query.Sort = true, nil
	}
	return r, err
}

// frontQuery is a stage's wish as the planner has it.
func (db *DB) frontQuery(f pipeline.Find) (query.Query, error) {
	q := query.Query{Filter: f.Filter, Sort: f.Sort, Skip: f.Skip, Limit: f.Limit, SortMemory: db.opt.SortMemory}
	var err error
	if q.Filter == nil {
		q.Filter, err = match.Parse(nil, match.Options{})
	}
	return q, err
}

// flow says whether all stages make what they make of one document, and keep nothing of the others but numbers.
func flow(stages []bson.Raw) bool {
	for _, s := range stages {
		it := value.Elements(s)
		it.Next()
		switch string(it.Name()) {
		case "$match", "$project", "$addFields", "$set", "$unset", "$unwind", "$replaceRoot", "$replaceWith", "$redact", "$limit", "$skip":
		default:
			return false
		}
	}
	return true
}

// Batch is as Cursor's.
func (a *Aggregation) Batch(ctx context.Context, docs int, emit func(doc bson.Raw) bool) (more bool, err error) {
	if a.find {
		return a.Cursor.Batch(ctx, docs, emit)
	}
	a.terms.ctx = ctx
	for ; docs > 0 && len(a.rest) > 0; docs-- {
		if !emit(a.rest[0]) {
			return true, nil
		}
		a.rest = a.rest[1:]
	}
	if a.over || docs == 0 {
		return !a.over || len(a.rest) > 0, nil
	}
	err = a.read(ctx, func() error {
		for ; docs > 0; docs-- {
			doc, err := a.next()
			if err != nil || doc == nil {
				return err
			}
			if !emit(doc) {
				a.rest = append(a.rest, clone(doc))
				break
			}
		}
		if a.flows {
			return nil
		}
		return a.gather()
	})
	a.over = a.over || err != nil
	return !a.over || len(a.rest) > 0, err
}

// read runs f, which may call next, in a snapshot.
func (a *Aggregation) read(ctx context.Context, f func() error) error {
	return a.db.read(func(sn *storage.Snapshot) error {
		a.world.sn, a.world.ctx = sn, ctx
		defer func() { a.world.sn = nil }()
		if a.pipe.NeedsSource() {
			sc, err := a.collection(sn)
			if err != nil {
				return err
			}
			if sc != nil {
				if a.out == nil && a.counts != nil && a.query.Filter.All() {
					a.out = a.counted(int64(sc.Count()))
					return f()
				}
				a.run.Attach(source{sc}, a.db.tick(ctx))
				defer func() { a.run.Detach() }()
			}
		}
		if a.out == nil {
			a.out = a.pipe.Run(front{a})
		}
		defer func() {
			if a.over {
				a.out.Close()
			}
		}()
		return f()
	})
}

func (a *Aggregation) next() (bson.Raw, error) {
	doc, err := a.out.Next()
	a.over = a.over || doc == nil || err != nil
	return doc, err
}

// counted is the answer of a pipeline that counts a whole collection of n documents.
func (a *Aggregation) counted(n int64) pipeline.Iterator {
	if n = max(n-a.query.Skip, 0); a.query.Limit > 0 {
		n = min(n, a.query.Limit)
	}
	doc := a.counts(n)
	if doc == nil {
		return pipeline.Documents(nil)
	}
	return pipeline.Documents([]bson.Raw{doc})
}

// gather takes what is left.
func (a *Aggregation) gather() error {
	size := 0
	for {
		doc, err := a.next()
		if err != nil || doc == nil {
			return err
		}
		if size += len(doc); size > a.db.opt.SortMemory {
			return mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed.Errorf("the results behind the first batch exceed the memory limit of %d bytes, and cannot use the disk", a.db.opt.SortMemory)
		}
		a.rest = append(a.rest, clone(doc))
	}
}

// write runs a pipeline that gives no documents.
func (a *Aggregation) write(ctx context.Context) error {
	err := a.read(ctx, func() error {
		_, err := a.next()
		return err
	})
	a.over = true
	return a.sink.end(err)
}

// front is what comes out of the plan. It copies, since a stage may stand in the middle of a document between two batches.
type front struct{ a *Aggregation }

func (f front) Next() (bson.Raw, error) {
	r := f.a.run
	if r == nil || !r.Next() {
		if r == nil {
			return nil, nil
		}
		return nil, r.Err()
	}
	switch {
	case f.a.counts != nil:
		return nothing, nil
	case !f.a.flows:
		return r.Doc(), nil
	}
	f.a.buf = append(f.a.buf[:0], r.Doc()...)
	return f.a.buf, nil
}

// nothing is a document for those who only count.
var nothing = noFields()

func (front) Close() error { return nil }
