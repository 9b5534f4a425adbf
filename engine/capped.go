package engine

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// evict removes the oldest documents of a capped collection until it is within its bounds again.
func (u *unit) evict() error {
	o := &u.def.Options
	for o.Capped && (int64(u.sc.Bytes()) > o.Size || o.Max > 0 && int64(u.sc.Count()) > o.Max) {
		if err := u.removeOldest(); err != nil {
			return err
		}
	}
	return nil
}

// removeOldest removes the first document, of which there must be one.
func (u *unit) removeOldest() error {
	it := u.sc.Records(0, false)
	if !it.Next() {
		return it.Err()
	}
	// The edits end the iterator's life, but not that of the bytes it gave, which this write still holds.
	return u.remove(it.ID(), bson.Raw(it.Bytes()))
}

// ConvertToCapped makes the collection, in place, a capped one of size bytes. The oldest documents give way first, by and by and each for
// itself, so that whoever writes meanwhile does not wait; the last write sets the bound. The indexes but that on _id go, as MongoDB's do.
func (db *DB) ConvertToCapped(ctx context.Context, ns Namespace, size int64) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return err
	}
	c := db.writing(ctx, ns, true)
	var found, done bool
	var err error
	for !done && err == nil {
		found, err = c.do(false, func(u *unit) (err error) {
			done, err = u.convertToCapped(size)
			return err
		})
		if err == nil && !found {
			err = mongoerr.NamespaceNotFound.Errorf("source collection %s does not exist", ns)
		}
	}
	return c.end(err)
}

func (u *unit) convertToCapped(size int64) (done bool, err error) {
	d := u.def.Clone()
	raw := catalog.With(catalog.With(d.Options.Raw, "capped", value.Bool(true)), "size", value.Int64(size))
	if d.Options, err = catalog.ParseOptions(catalog.With(raw, "max", value.Missing)); err != nil {
		return false, err
	}
	for n := 0; int64(u.sc.Bytes()) > d.Options.Size; n++ {
		if u.full(n) {
			return false, nil
		}
		if err := u.removeOldest(); err != nil {
			return false, err
		}
	}
	for _, x := range u.def.Indexes {
		if !x.IsID() {
			if err := u.dropIndex(d, x.Name); err != nil {
				return false, err
			}
		}
	}
	return true, u.sc.SetDesc(d.Encode())
}

// arrivals lets tailable cursors wait for documents. There is one counter for all collections: a cursor that is woken in vain looks
// and waits again.
type arrivals struct {
	mu      env.Mutex
	changed env.Cond
	count   uint64
	waiting int
}

func (a *arrivals) init(e *env.Env) {
	a.mu.Init(e, env.RankNone, "arrivals")
	a.changed.Init(e, &a.mu, "arrivals changed")
}

// announce is called when a write has become visible.
func (a *arrivals) announce() {
	a.mu.Lock()
	a.count++
	if a.waiting > 0 {
		a.changed.Broadcast()
	}
	a.mu.Unlock()
}

func (a *arrivals) now() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

// wait returns when something was announced since seen was the count, or after d.
func (a *arrivals) wait(e *env.Env, seen uint64, d time.Duration) {
	over := false
	stop := e.Clock.AfterFunc(d, func() {
		a.mu.Lock()
		over = true
		a.changed.Broadcast()
		a.mu.Unlock()
	})
	defer stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting++
	for a.count == seen && !over {
		a.changed.Wait()
	}
	a.waiting--
}

// Await returns when documents may have come since the last batch of a tailable cursor, or after d.
func (c *Cursor) Await(d time.Duration) { c.db.arrivals.wait(c.db.env, c.seen, d) }

// checkTail says whether a tailable cursor may go on: the last record that it gave must be there. If it has given way, so may
// have others behind it.
func (c *Cursor) checkTail(col *collection, sc *storage.Collection) error {
	if !col.def.Options.Capped {
		return mongoerr.BadValue.Errorf("error processing query: tailable cursor requested on non capped collection %s", c.ns)
	}
	last := c.run.LastRecord()
	if last == 0 {
		return nil
	}
	_, err := sc.Record(storage.RecordID(last))
	if errors.Is(err, storage.ErrNoRecord) {
		return mongoerr.CappedPositionLost.Errorf("CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId(%d)", last)
	}
	return err
}
