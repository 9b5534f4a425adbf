package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// RenameCollection gives a collection another name, in the same database or in another. A collection that has that name is
// dropped if dropTarget is set, else it is 48 NamespaceExists.
func (db *DB) RenameCollection(ctx context.Context, from, to Namespace, dropTarget bool) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if err := from.Check(); err != nil {
		return err
	}
	if err := to.CheckCreate(); err != nil {
		return err
	}
	if from == to {
		return mongoerr.IllegalOperation.Errorf("Can't rename a collection to itself")
	}
	commit, err := db.store.Write(func(w *storage.Writer) error {
		zero := w.Lock(0)
		source, ok, err := catalog.Find(zero, from)
		if err != nil {
			return err
		}
		if !ok {
			return mongoerr.NamespaceNotFound.Errorf("Source collection %s does not exist", from)
		}
		target, exists, err := catalog.Find(zero, to)
		switch {
		case err != nil:
			return err
		case exists && !dropTarget:
			return mongoerr.NamespaceExists.Errorf("target namespace exists: %s", to)
		case !exists:
			if err := catalog.CheckCase(zero, to.DB); err != nil {
				return err
			}
		}
		var sc, old *storage.Collection
		if exists && target < source { // locks are taken in ascending order
			old = w.Lock(target)
		}
		sc = w.Lock(source)
		if exists && target > source {
			old = w.Lock(target)
		}
		if old != nil {
			if err := catalog.Drop(zero, old, to); err != nil {
				return err
			}
		}
		c, err := db.open(sc)
		if err != nil {
			return err
		}
		if c.def.Options.IsView() {
			return onView(from)
		}
		if db.isBuilding(source) {
			return mongoerr.BackgroundOperationInProgressForNamespace.Errorf("cannot perform operation: an index build is currently running for collection %s", from)
		}
		return catalog.Rename(zero, sc, c.def, to)
	})
	if wait := commit.Wait(); wait != nil {
		err = wait
	}
	return clientError(err)
}

// CollMod is what collMod changes.
type CollMod struct {
	// Index names the index to change, by its name or its key pattern; zero: none.
	Index       bson.RawValue
	ExpireAfter *int64 // expireAfterSeconds
	Hidden      *bool
	// PrepareUnique makes writes be refused that make a key double, and Unique the index unique, if it was prepared.
	PrepareUnique *bool
	Unique        bool
	// Options are validator, validationLevel and validationAction, or a view's viewOn and pipeline, as far as they change.
	Options bson.Raw
}

// CollModResult is what MongoDB's reply is made of: of what has changed, the old value and the new.
type CollModResult struct {
	ExpireAfterOld, ExpireAfterNew *int64
	HiddenOld, HiddenNew           *bool
	PrepareOld, PrepareNew         *bool
	UniqueNew                      *bool
}

// CollMod changes a collection's options, or those of one of its indexes.
func (db *DB) CollMod(ctx context.Context, ns Namespace, m CollMod) (CollModResult, error) {
	var result CollModResult
	if err := db.enter(); err != nil {
		return result, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return result, err
	}
	c := db.writing(ctx, ns, true)
	c.views = true
	if err := db.checkViewMod(ctx, ns, &m); err != nil {
		return result, err
	}
	if m.Unique {
		if err := db.checkConvertible(ctx, ns, &m); err != nil {
			return result, err
		}
	}
	found, err := c.do(false, func(u *unit) error {
		result = CollModResult{}
		d := u.def.Clone()
		if m.ofView() && !d.Options.IsView() || d.Options.IsView() && (m.Index.Type != 0 || !m.ofView()) {
			return mongoerr.InvalidOptions.Errorf("viewOn and pipeline are what collMod changes of a view, and only of a view: %s", ns)
		}
		if m.Index.Type != 0 {
			if err := m.index(d, &result); err != nil {
				return err
			}
		}
		if err := m.options(db.env, d); err != nil {
			return err
		}
		return u.sc.SetDesc(d.Encode())
	})
	if err == nil && !found {
		err = mongoerr.NamespaceNotFound.Errorf("ns does not exist: %s", ns)
	}
	return result, c.end(err)
}

// ofView says whether it changes a view.
func (m *CollMod) ofView() bool {
	return value.Lookup(m.Options, "viewOn").Type != 0 || value.Lookup(m.Options, "pipeline").Type != 0
}

// checkViewMod looks at a view as it is going to be.
func (db *DB) checkViewMod(ctx context.Context, ns Namespace, m *CollMod) error {
	if !m.ofView() {
		return nil
	}
	var d *catalog.Definition
	err := db.read(func(sn *storage.Snapshot) error {
		c, _, err := db.collection(sn, ns)
		if err == nil && c != nil {
			d = c.def.Clone()
		}
		return err
	})
	if err != nil || d == nil {
		return err // which the change itself meets
	}
	if err := m.options(db.env, d); err != nil {
		return err
	}
	return db.checkView(ctx, ns, &d.Options)
}

func (m *CollMod) options(e *env.Env, d *catalog.Definition) error {
	raw := d.Options.Raw
	for it := value.Elements(m.Options); it.Next(); {
		raw = catalog.With(raw, string(it.Name()), it.Value())
	}
	o, err := catalog.ParseOptions(raw)
	if err != nil {
		return err
	}
	if _, err := match.Parse(o.Validator, shared(e, o.Collation)); err != nil {
		return err
	}
	d.Options = o
	return nil
}

// find is the position of the index that is to change.
func (m *CollMod) find(d *catalog.Definition) (int, error) {
	names, err := namesToDrop(d, m.Index) // the same ways to tell an index, and _id cannot change either
	if err != nil {
		return 0, err
	}
	if len(names) != 1 || m.Index.Type == bson.TypeString && m.Index.StringValue() == "*" {
		return 0, mongoerr.IndexNotFound.Errorf("cannot find index %s for ns %s", value.Brief(m.Index, 200), d.NS)
	}
	return d.Index(names[0]), nil
}

func (m *CollMod) index(d *catalog.Definition, result *CollModResult) error {
	i, err := m.find(d)
	if err != nil {
		return err
	}
	x := &d.Indexes[i]
	raw := x.Raw
	if m.ExpireAfter != nil && !(x.Expires && x.ExpireAfter == *m.ExpireAfter) {
		if x.Expires {
			old := x.ExpireAfter
			result.ExpireAfterOld = &old
		}
		result.ExpireAfterNew = m.ExpireAfter
		raw = catalog.With(raw, "expireAfterSeconds", value.Int64(*m.ExpireAfter))
	}
	if m.Hidden != nil && *m.Hidden != x.Hidden {
		old := x.Hidden
		result.HiddenOld, result.HiddenNew = &old, m.Hidden
		raw = catalog.With(raw, "hidden", value.Bool(*m.Hidden))
	}
	if m.PrepareUnique != nil && *m.PrepareUnique != x.PrepareUnique && !x.Unique {
		old := x.PrepareUnique
		result.PrepareOld, result.PrepareNew = &old, m.PrepareUnique
		raw = catalog.With(raw, "prepareUnique", value.Bool(*m.PrepareUnique))
	}
	if m.Unique && !x.Unique {
		if !x.PrepareUnique {
			return notPrepared(x.Name)
		}
		result.UniqueNew = &m.Unique
		raw = catalog.With(catalog.With(raw, "prepareUnique", bson.RawValue{}), "unique", value.Bool(true))
	}
	x.IndexSpec, err = catalog.ParseIndexSpec(raw)
	return err
}
