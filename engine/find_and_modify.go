package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FindAndModify changes or removes one document, and gives it back as it was or as it became.
type FindAndModify struct {
	Filter       bson.Raw
	Sort         bson.Raw
	Projection   bson.Raw
	Update       bson.RawValue // zero if Remove
	ArrayFilters []bson.Raw
	Remove       bool
	New          bool // give the document as it became
	Upsert       bool
	Hint         bson.RawValue
	Collation    bson.Raw
	Let          bson.Raw
}

// FindAndModifyResult is what MongoDB's reply is made of.
type FindAndModifyResult struct {
	Value    bson.Raw // nil if there was no such document
	Matched  bool     // lastErrorObject.updatedExisting, and n for a removal
	Upserted *bson.RawValue
}

// FindAndModify runs f. Which document is the first by Sort is decided by what is visible; if others have taken it meanwhile,
// the next that still matches is.
func (db *DB) FindAndModify(ctx context.Context, ns Namespace, f FindAndModify) (FindAndModifyResult, error) {
	var result FindAndModifyResult
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
	in, err := db.terms(ctx, ns, f.Let, f.Collation)
	if err != nil {
		return result, err
	}
	q, err := db.parse(in, &Find{Filter: f.Filter, Projection: f.Projection})
	if err != nil {
		return result, err
	}
	c := db.writing(ctx, ns, true)
	if f.Remove {
		err = c.findAndRemove(in, &f, &result)
	} else {
		err = c.findAndUpdate(&f, &result)
	}
	if err = c.end(err); err != nil {
		return FindAndModifyResult{}, err
	}
	if result.Value != nil && q.Project != nil {
		result.Value, err = q.Project.Apply(nil, result.Value)
	}
	return result, err
}

func (c *writing) findAndRemove(in *terms, f *FindAndModify, result *FindAndModifyResult) error {
	t, err := c.target(in, f.Filter, f.Sort, f.Hint)
	if err != nil {
		return err
	}
	var seen bson.Raw // by the last run: another may have taken the document between two of them
	n, err := c.change(t, false, func(u *unit, m matched) (bool, error) {
		seen = clone(m.doc)
		return true, u.remove(m.id, m.doc)
	})
	if n.matched > 0 {
		result.Matched, result.Value = true, seen
	}
	return err
}

func (c *writing) findAndUpdate(f *FindAndModify, result *FindAndModifyResult) error {
	ch, err := c.changer(&Update{Filter: f.Filter, Update: f.Update, ArrayFilters: f.ArrayFilters, Upsert: f.Upsert, Sort: f.Sort, Hint: f.Hint, Collation: f.Collation, Let: f.Let})
	if err != nil {
		return err
	}
	var seen bson.Raw
	n, inserted, id, err := ch.run(func(before, after bson.Raw) {
		if f.New {
			before = after
		}
		seen = clone(before)
	})
	switch {
	case err != nil:
		return err
	case n.matched > 0:
		result.Matched, result.Value = true, seen
	case inserted != nil:
		result.Upserted = &id
		if f.New {
			result.Value = inserted
		}
	}
	return nil
}
