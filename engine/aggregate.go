package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/spill"
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
	// MemoryOnly makes a stage that does not fit its memory an error, instead of one that goes to the disk.
	MemoryOnly bool
}

// Aggregation is a pipeline under way. Its front, which is a find, is planned over indexes; the documents that come out of that flow
// through the stages.
//
// Like a Cursor it holds no snapshot between batches. A pipeline whose stages look at one document at a time goes on at the position
// of its front. Any other is run to its end in the snapshot of its first batch, and what does not fit the batch is held, as far as the
// memory of a stage goes there, and else on the disk: until Close.
type Aggregation struct {
	*Cursor
	pipe  *pipeline.Pipeline
	world world
	sink  sink

	find, flows bool // nothing is behind the front; the stages look at one document at a time
	counts      func(n int64) bson.Raw

	disk spill.Disk        // nil: in memory only
	each []int64           // for explain: how many documents each stage has given; nil: nobody asks
	out  pipeline.Iterator // nil before the first batch
	buf  bson.Raw          // the document that the stages look at
	over bool              // out has no more

	refused bson.Raw // by emit, and given next
	rest    *spill.Buffer
	reader  *spill.BufferReader
	left    int // documents of rest
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
	if ns.Coll != "" {
		o, err := db.originOf(ns)
		if err == nil {
			ns, err = a.lie(ns, o)
		}
		if err != nil {
			return nil, err
		}
	}
	in, err := db.terms(ctx, ns, a.Let, a.Collation)
	if err != nil {
		return nil, err
	}
	r := &Aggregation{Cursor: &Cursor{db: db, ns: ns, terms: in}, disk: db.disk(a.MemoryOnly)}
	r.world = world{db: db, terms: in, disk: r.disk, operations: a.Operations, sessions: a.Sessions}
	r.sink = sink{db: db, terms: in, world: &r.world}
	o := pipeline.Options{
		Namespace: pipeline.Namespace{DB: ns.DB, Collection: ns.Coll}, Context: in.context(), Scope: in.scope,
		World: &r.world, Sink: &r.sink, Statistics: &r.world, Memory: int64(db.opt.SortMemory), Disk: r.disk, Strict: a.Strict,
	}
	if in.coll != nil {
		o.Collation = in.coll
	}
	r.pipe, err = pipeline.Parse(a.Stages, o)
	if err != nil {
		return nil, err
	}
	if ns.Coll == "" && r.pipe.NeedsSource() {
		return nil, mongoerr.InvalidNamespace.Errorf("{aggregate: 1} is not valid for a pipeline that reads a collection; it must begin with $documents or $currentOp")
	}
	r.query, err = db.frontQuery(in, r.pipe.Prefix().Find)
	r.query.Hint, r.query.Disk, r.query.Fields, r.query.Distinct = a.Hint, r.disk, r.pipe.Prefix().Fields, r.pipe.Prefix().Distinct
	stages := r.pipe.Stages()
	r.find = len(stages) == 0 && r.pipe.NeedsSource()
	r.flows = flow(stages)
	if r.counts, _ = r.pipe.Counts(); r.counts != nil {
		r.query.OnlyIDs, r.query.Sort = true, nil
	}
	return r, err
}

// frontQuery is a stage's wish as the planner has it.
func (db *DB) frontQuery(in *terms, f pipeline.Find) (query.Query, error) {
	q := query.Query{Filter: f.Filter, Sort: f.Sort, Skip: f.Skip, Limit: f.Limit, SortMemory: db.opt.SortMemory, Collation: in.coll}
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
	next, full := docs, false
	for ; next > 0 && !full && err == nil && (a.refused != nil || a.left > 0); next-- {
		full, err = a.give(emit)
	}
	if err == nil && next > 0 && !full && !a.over {
		err = a.read(ctx, func() error {
			for ; next > 0 && !full; next-- {
				doc, err := a.next()
				if err != nil || doc == nil {
					return err
				}
				if full = !emit(doc); full {
					a.refused = clone(doc)
				}
			}
			if a.flows {
				return nil
			}
			return a.gather()
		})
	}
	more = err == nil && (!a.over || a.refused != nil || a.left > 0)
	if !more {
		if e := a.Close(); err == nil {
			err = e
		}
	}
	return more, err
}

// give gives the next document that is held.
func (a *Aggregation) give(emit func(doc bson.Raw) bool) (full bool, err error) {
	doc := a.refused
	if doc == nil {
		if doc, err = a.reader.Next(); err != nil {
			return false, err
		}
		a.left--
	}
	if full = !emit(doc); full {
		doc = clone(doc)
	} else {
		doc = nil
	}
	a.refused = doc
	return full, nil
}

// Close ends the aggregation, as Cursor's.
func (a *Aggregation) Close() error {
	err := a.Cursor.Close()
	if a.rest != nil {
		if e := a.rest.Close(); err == nil {
			err = e
		}
	}
	a.over, a.refused, a.rest, a.left = true, nil, nil, 0
	return err
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
			a.out = a.pipe.RunCounted(front{a}, a.each)
		}
		err := mongoerr.During("PlanExecutor error during aggregation", f())
		if a.over = a.over || err != nil; a.over {
			if e := a.out.Close(); err == nil {
				err = e
			}
		}
		return err
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
	for {
		doc, err := a.next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		if a.rest == nil {
			a.rest = spill.NewBuffer(spill.BufferOptions{Who: "the results behind the first batch", Memory: int64(a.db.opt.SortMemory), Disk: a.disk})
		}
		if err := a.rest.Append(doc); err != nil {
			return err
		}
	}
	if a.rest == nil {
		return nil
	}
	var err error
	a.left = a.rest.Len()
	a.reader, err = a.rest.Reader()
	return err
}

// drain runs the pipeline to its end for nothing but its figures.
func (a *Aggregation) drain(ctx context.Context) error {
	err := a.read(ctx, func() error {
		for {
			doc, err := a.next()
			if doc == nil || err != nil {
				return err
			}
		}
	})
	if e := a.Close(); err == nil {
		err = e
	}
	return err
}

// write runs a pipeline that gives no documents.
func (a *Aggregation) write(ctx context.Context) error {
	err := a.read(ctx, func() error {
		_, err := a.next()
		return err
	})
	if e := a.Close(); err == nil {
		err = e
	}
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
