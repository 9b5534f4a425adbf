package engine

import (
	"context"
	"errors"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// WriteError is one statement's failure: its position in the command, and an error that mongoerr understands.
type WriteError struct {
	Index int
	Err   error
}

// writing is a write command under way: what it rests on, and what went wrong.
type writing struct {
	db      *DB
	ctx     context.Context
	ns      Namespace
	ordered bool
	commit  storage.Commit
	errors  []WriteError
	into    *collection // nil: not looked up, or there was none
	views   bool        // are as good as collections
}

// do runs f in a storage.Write with the collection's lock. If create is set, a collection that is not there is made; else
// f is not run without one, and found is false.
func (c *writing) do(create bool, f func(u *unit) error) (found bool, err error) {
	for {
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
		if c.into == nil {
			if err := c.find(create); err != nil || c.into == nil {
				return false, err
			}
		}
		commit, err := c.db.store.Write(func(w *storage.Writer) error {
			u, err := c.db.lock(w, c.into)
			if err != nil {
				return err
			}
			if u.def.NS != c.ns {
				return errGone // it has another name by now
			}
			if u.def.Options.IsView() && !c.views {
				return onView(c.ns)
			}
			u.unchecked = bypassesValidation(c.ctx)
			if err := f(u); err != nil {
				return err
			}
			return u.end()
		})
		c.commit = c.commit.Later(commit)
		switch {
		case errors.Is(err, errGone):
			// What is visible may still name it.
			if err := commit.Wait(); err != nil {
				return false, err
			}
			c.into = nil
		default:
			return err == nil, err
		}
	}
}

// find looks the collection up in what is visible, and makes it if it is to be made.
func (c *writing) find(create bool) error {
	sn := c.db.store.Snapshot()
	err := sn.Guard(func() (err error) {
		c.into, _, err = c.db.collection(sn, c.ns)
		return err
	})
	sn.Release()
	if err != nil || c.into != nil || !create {
		return err
	}
	into, commit, err := c.db.create(c.ns, catalog.Options{})
	c.commit = c.commit.Later(commit)
	c.into = into
	return err
}

// failed notes that a statement failed, and says whether the command ends here.
func (c *writing) failed(index int, err error) (stop bool) {
	c.errors = append(c.errors, WriteError{index, clientError(err)})
	return c.ordered
}

// ofStatement says whether err is one statement's, so that others may go on: a refusal, or a full disk.
func ofStatement(err error) bool { return refused(err) || errors.Is(err, storage.ErrDiskFull) }

// end waits until all that the reply rests on is durable.
func (c *writing) end(err error) error {
	if wait := c.commit.Wait(); wait != nil {
		return clientError(wait)
	}
	c.db.arrivals.announce()
	return clientError(err)
}

func (db *DB) writing(ctx context.Context, ns Namespace, ordered bool) *writing {
	return &writing{db: db, ctx: ctx, ns: ns, ordered: ordered}
}

// create makes a collection unless there is one of that name by now, which is given then.
func (db *DB) create(ns Namespace, options catalog.Options) (*collection, storage.Commit, error) {
	if err := ns.CheckCreate(); err != nil {
		return nil, storage.Commit{}, err
	}
	def := catalog.NewDefinition(ns, catalog.NewUUID(db.env.Rand), options)
	var c *collection
	commit, err := db.store.Write(func(w *storage.Writer) error {
		zero := w.Lock(0)
		id, ok, err := catalog.Find(zero, ns)
		if err != nil {
			return err
		}
		var sc *storage.Collection
		if ok {
			sc = w.Lock(id)
		} else {
			if err := catalog.CheckCase(zero, ns.DB); err != nil {
				return err
			}
			if sc, err = catalog.Create(w, zero, def); err != nil {
				return err
			}
		}
		c, err = db.open(sc)
		return err
	})
	return c, commit, err
}
