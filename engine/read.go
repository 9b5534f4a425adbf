package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Find is a query.
type Find struct {
	Filter     bson.Raw // nil is {}
	Sort       bson.Raw
	Projection bson.Raw
	Hint       bson.RawValue // zero, an index's name, its key pattern, or {$natural: ±1}
	Skip       int64
	Limit      int64 // 0 is none
	Collation  bson.Raw
	Let        bson.Raw // variables for expressions
	// Tailable makes a cursor on a capped collection that does not end with the last document: Batch goes on with what has come since.
	Tailable bool
	// ShowRecordID adds the field $recordId, except to keys.
	ShowRecordID bool
	// Min and Max are the first key of the hinted index that is looked at, and the first behind those that are; nil: no such bound.
	Min, Max bson.Raw
	// ReturnKey gives the entries of the index that the plan goes by instead of documents; without one, empty documents.
	ReturnKey bool
	// Reads are the paths whose values are asked for: documents may come without all else. nil: all is asked for.
	Reads []string
	// MemoryOnly makes a sort that does not fit the memory an error, instead of one that goes to the disk.
	MemoryOnly bool
}

// parse makes the query column's query of f.
func (db *DB) parse(in *terms, f *Find) (query.Query, error) {
	q := query.Query{Tail: f.Tailable, Fields: f.Reads, Min: f.Min, Max: f.Max, ReturnKey: f.ReturnKey, Skip: f.Skip, Limit: f.Limit, Hint: f.Hint, SortMemory: db.opt.SortMemory, Disk: db.disk(f.MemoryOnly), Collation: in.coll}
	var err error
	if q.Filter, err = match.Parse(f.Filter, in.matching()); err != nil {
		return q, err
	}
	if len(f.Sort) > 0 {
		if q.Sort, err = sortkey.Parse(f.Sort, in.sorting()); err != nil {
			return q, err
		}
	}
	if len(f.Projection) > 0 {
		q.Project, err = project.Parse(f.Projection, project.Options{Query: q.Filter, Match: in.matching(), Expr: in.expression})
	}
	return q, err
}

// Cursor is a query under way. Between batches it holds a position and no snapshot, so it keeps nothing from being reused; but a sort
// that does not fit the memory has files until Close. It belongs to one goroutine at a time.
type Cursor struct {
	db    *DB
	ns    Namespace
	terms *terms
	query query.Query
	id    storage.CollID
	uuid  catalog.UUID
	run   *query.Run // nil before the first batch
	ended bool
	show  bool   // $recordId
	seen  uint64 // count of arrivals before the last batch
	buf   []byte
}

// Find parses the query and answers with a cursor before its first document. It is planned with the first batch, which says
// what a plan may find wrong. A collection that does not exist is an empty one.
func (db *DB) Find(ctx context.Context, ns Namespace, f Find) (*Cursor, error) {
	if err := ns.Check(); err != nil {
		return nil, err
	}
	c := &Cursor{db: db, ns: ns, show: f.ShowRecordID}
	var err error
	if c.terms, err = db.terms(ctx, ns, f.Let, f.Collation); err != nil {
		return nil, err
	}
	c.query, err = db.parse(c.terms, &f)
	return c, err
}

// Batch calls emit with the next documents, from one snapshot: until emit says stop, or docs documents were emitted, or
// there are no more. The documents die when emit returns. emit answers false if it could not take the document, which
// is then the first of the next batch.
//
// more is false once the last document was emitted. It may be true though no document is left: the next batch is then
// empty, as MongoDB's is.
func (c *Cursor) Batch(ctx context.Context, docs int, emit func(doc bson.Raw) bool) (more bool, err error) {
	if c.ended {
		return false, nil
	}
	c.terms.ctx = ctx
	if c.query.Tail {
		c.seen = c.db.arrivals.now()
	}
	err = c.db.read(func(sn *storage.Snapshot) error {
		sc, err := c.collection(sn)
		if err != nil || sc == nil {
			return err
		}
		r := c.run
		r.Attach(source{sc}, c.db.tick(ctx))
		defer r.Detach()
		for n := 0; n < docs; n++ {
			if !r.Next() {
				more = c.query.Tail && r.Err() == nil && !r.Done()
				return r.Err()
			}
			doc := r.Doc()
			if c.show && !c.query.ReturnKey {
				doc = c.withRecordID(doc, r.ID())
			}
			if !emit(doc) {
				r.Unread()
				more = true
				return nil
			}
		}
		more = !r.Done()
		return nil
	})
	if !more {
		if e := c.Close(); err == nil {
			err = e
		}
	}
	return more, err
}

// Close ends the cursor; it is only needed before Batch has said that there is no more, or failed. It may be called again.
func (c *Cursor) Close() error {
	r := c.run
	if c.ended, c.run = true, nil; r == nil {
		return nil
	}
	return r.Close()
}

// collection finds what the cursor reads, in a new snapshot, and plans the query if this is the first. It is nil if there was
// no such collection then.
func (c *Cursor) collection(sn *storage.Snapshot) (*storage.Collection, error) {
	if c.run == nil {
		col, sc, err := c.db.collection(sn, c.ns)
		if err != nil || col == nil {
			return nil, err
		}
		if err := c.terms.fit(col); err != nil {
			return nil, err
		}
		p, err := query.New(c.query, col.plan, source{sc}, &col.choices)
		if err != nil {
			return nil, err
		}
		c.id, c.uuid, c.run = col.id, col.def.UUID, p.Start()
		if c.query.Tail {
			err = c.checkTail(col, sc)
		}
		return sc, err
	}
	sc := sn.Collection(c.id)
	if sc == nil {
		return nil, c.dropped()
	}
	col, err := c.db.open(sc)
	switch {
	case err != nil:
	case col.def.UUID != c.uuid:
		err = c.dropped()
	case c.query.Tail:
		err = c.checkTail(col, sc)
	default:
		c.run.Revise(col.plan)
	}
	return sc, err
}

func (c *Cursor) dropped() error {
	return mongoerr.QueryPlanKilled.Errorf("collection dropped. UUID %s", c.uuid)
}

func (c *Cursor) withRecordID(doc bson.Raw, id uint64) bson.Raw {
	c.buf = appendField(append(c.buf[:0], doc...), "$recordId", value.Int64(int64(id)))
	return c.buf
}

// Namespace is what the cursor reads.
func (c *Cursor) Namespace() Namespace { return c.ns }

// Count is a query that counts.
type Count struct {
	Filter    bson.Raw
	Hint      bson.RawValue
	Skip      int64
	Limit     int64
	Collation bson.Raw
}

// Count runs c. Without a filter it is answered from the collection's head.
func (db *DB) Count(ctx context.Context, ns Namespace, c Count) (int64, error) {
	n, err := db.count(ctx, ns, c)
	if OnView(err) {
		return db.countOnView(ctx, ns, c)
	}
	return n, err
}

func (db *DB) count(ctx context.Context, ns Namespace, c Count) (int64, error) {
	var n int64
	err := db.run(ctx, ns, Find{Filter: c.Filter, Hint: c.Hint, Collation: c.Collation}, func(q *query.Query, sc *storage.Collection) bool {
		if !q.Filter.All() {
			q.Skip, q.Limit, q.OnlyIDs = c.Skip, c.Limit, true
			return true
		}
		n = max(int64(sc.Count())-c.Skip, 0)
		if c.Limit > 0 {
			n = min(n, c.Limit)
		}
		return false
	}, func(bson.Raw) error {
		n++
		return nil
	})
	return n, err
}

// run plans and runs a query in one snapshot. first may look at the collection and change the query, or end it.
func (db *DB) run(ctx context.Context, ns Namespace, f Find, first func(q *query.Query, sc *storage.Collection) bool, each func(doc bson.Raw) error) error {
	if err := ns.Check(); err != nil {
		return err
	}
	in, err := db.terms(ctx, ns, f.Let, f.Collation)
	if err != nil {
		return err
	}
	q, err := db.parse(in, &f)
	if err != nil {
		return err
	}
	return db.read(func(sn *storage.Snapshot) error {
		col, sc, err := db.collection(sn, ns)
		if err == nil && col != nil {
			err = in.fit(col)
		}
		if err != nil || col == nil || first != nil && !first(&q, sc) {
			return err
		}
		p, err := query.New(q, col.plan, source{sc}, &col.choices)
		if err != nil {
			return err
		}
		r := p.Start()
		defer r.Close()
		r.Attach(source{sc}, db.tick(ctx))
		for r.Next() {
			if err := each(r.Doc()); err != nil {
				return err
			}
		}
		return r.Err()
	})
}
