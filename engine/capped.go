package engine

import (
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// evict removes the oldest documents of a capped collection until it is within its bounds again.
func (u *unit) evict() error {
	o := &u.def.Options
	for o.Capped && (int64(u.sc.Bytes()) > o.Size || o.Max > 0 && int64(u.sc.Count()) > o.Max) {
		it := u.sc.Records(0, false)
		if !it.Next() {
			return it.Err()
		}
		// The edits end the iterator's life, but not that of the bytes it gave, which this write still holds.
		if err := u.remove(it.ID(), bson.Raw(it.Bytes())); err != nil {
			return err
		}
	}
	return nil
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
