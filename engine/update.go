package engine

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Update is one update statement.
type Update struct {
	Filter       bson.Raw
	Update       bson.RawValue // a document of operators, a replacement, or (an array) a pipeline
	ArrayFilters []bson.Raw
	Multi        bool
	Upsert       bool
	Sort         bson.Raw      // which of the documents that match one that is not Multi changes
	Hint         bson.RawValue // zero, an index's name, or its key pattern
	Collation    bson.Raw
	Let          bson.Raw // variables for the expressions of filter and update
	Constants    bson.Raw // variables for an update that is a pipeline, not evaluated
}

// UpdateResult sums up the statements. N in MongoDB's reply is Matched + len(Upserted).
type UpdateResult struct {
	Matched  int
	Modified int
	Upserted []Upserted
	Errors   []WriteError
}

// Upserted is a document that a statement inserted.
type Upserted struct {
	Index int
	ID    bson.RawValue
}

// Update runs the statements in order. Each document that a statement changes is a unit of its own.
func (db *DB) Update(ctx context.Context, ns Namespace, statements []Update, ordered bool) (UpdateResult, error) {
	var result UpdateResult
	if err := db.enter(); err != nil {
		return result, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return result, err
	}
	if err := db.noView(ns); err != nil {
		return result, err
	}
	c := db.writing(ctx, ns, ordered)
	for i := range statements {
		n, id, err := c.update(&statements[i])
		result.Matched += n.matched
		result.Modified += n.changed
		if id.Type != 0 {
			result.Upserted = append(result.Upserted, Upserted{i, id})
		}
		if err == nil {
			continue
		}
		if !ofStatement(err) {
			result.Errors = c.errors
			return result, c.end(err)
		}
		if c.failed(i, err) {
			break
		}
	}
	result.Errors = c.errors
	return result, c.end(nil)
}

// update runs one statement. id is that of a document that was inserted.
func (c *writing) update(s *Update) (n tally, id bson.RawValue, err error) {
	ch, err := c.changer(s)
	if err != nil {
		return n, id, err
	}
	n, _, id, err = ch.run(nil)
	return n, id, err
}

// changer runs an update statement.
type changer struct {
	*writing
	*target
	update *update.Update
	at     update.Context
	multi  bool
	upsert bool
	filter bson.Raw
}

func (c *writing) changer(s *Update) (*changer, error) {
	in, err := c.db.terms(c.ctx, c.ns, s.Let, s.Collation)
	if err != nil {
		return nil, err
	}
	t, err := c.target(in, s.Filter, s.Sort, s.Hint)
	if err != nil {
		return nil, err
	}
	if s.Constants != nil {
		if s.Update.Type != bson.TypeArray {
			return nil, mongoerr.Code(51198).Errorf("Constant values may only be specified for pipeline updates")
		}
		if err := in.constants(s.Constants); err != nil {
			return nil, err
		}
	}
	u, err := update.Parse(s.Update, update.Options{ArrayFilters: s.ArrayFilters, Filter: in.test, Pipeline: in.transform, Compare: in.order()})
	if err != nil {
		return nil, err
	}
	if s.Multi && u.IsReplacement() {
		return nil, mongoerr.FailedToParse.Errorf("multi update is not supported for replacement-style update")
	}
	at := update.Context{Now: c.db.env.Clock.Now().UnixMilli(), Ordinal: c.db.ordinal.Add(1)}
	return &changer{c, t, u, at, s.Multi, s.Upsert, s.Filter}, nil
}

// run changes what matches, or inserts. see is told of each document that matched, as it was and as it became; what it
// was told last about a record counts.
func (c *changer) run(see func(before, after bson.Raw)) (n tally, inserted bson.Raw, id bson.RawValue, err error) {
	f := func(u *unit, m matched) (bool, error) {
		at := c.at
		at.Positional = m.index
		after, changed, err := c.update.Apply(m.doc, at)
		if err == nil && changed {
			err = u.replace(m.id, m.doc, after)
		}
		if err == nil && see != nil {
			see(m.doc, after)
		}
		return changed, err
	}
	if !c.upsert || !c.byID {
		if n, err = c.change(c.target, c.multi, f); err != nil || n.matched > 0 || !c.upsert {
			return n, nil, id, err
		}
	}
	return c.insertOrChange(f)
}

// insertOrChange is the second half of an upsert, which has found nothing in what is visible. With the lock it looks at head, so
// that of two that are at it at once one inserts and the other finds what it inserted.
func (c *changer) insertOrChange(f edit) (n tally, inserted bson.Raw, id bson.RawValue, err error) {
	var doc bson.Raw
	var found []uint64
	_, err = c.do(true, func(u *unit) (err error) {
		n, inserted = tally{}, nil
		if found, err = u.lookUp(c.target, c.multi); err != nil {
			return err
		}
		if len(found) > 0 {
			if !c.multi {
				_, n, err = u.changeSome(c.target, found, false, f)
			}
			return err
		}
		if doc == nil {
			if doc, err = c.update.Make(c.filter, c.at); err != nil {
				return err
			}
			if doc, err = c.db.prepare(doc); err != nil {
				return err
			}
		}
		inserted = doc
		return u.insert(doc)
	})
	switch {
	case err != nil:
		return tally{}, nil, id, err // nothing of this write was kept
	case inserted != nil:
		return n, inserted, value.Lookup(inserted, "_id"), nil
	case n.matched > 0:
		return n, nil, id, nil
	}
	// Many are there by now; by the time they are changed they may be gone again.
	if n, err = c.changeAll(c.target, found, true, f); err != nil || n.matched > 0 {
		return n, nil, id, err
	}
	return c.insertOrChange(f)
}

// clone is a document that outlives the write or the snapshot that it was read in.
func clone(doc bson.Raw) bson.Raw { return slices.Clone(doc) }
