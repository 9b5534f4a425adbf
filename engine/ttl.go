package engine

import (
	"context"
	"errors"
	"time"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// sweepDocs is how many documents one step of a sweep looks at.
const sweepDocs = 1000

// SweepTTL removes documents that have expired at now: one bounded step. It tells how many, and whether there may be more.
//
// A document has expired if a date in the field of a TTL index, of an array the earliest, lies more than expireAfterSeconds before now.
// Values that are not dates never expire.
func (db *DB) SweepTTL(ctx context.Context, now time.Time) (removed int, more bool, err error) {
	type expiring struct {
		ns   Namespace
		spec catalog.IndexSpec
	}
	var list []expiring
	err = db.each("", func(c *collection, _ *storage.Collection) error {
		for i := range c.def.Indexes {
			if x := &c.def.Indexes[i]; x.Expires && !x.Building {
				list = append(list, expiring{c.def.NS, x.IndexSpec})
			}
		}
		return nil
	})
	for i := 0; i < len(list) && err == nil && !more; i++ {
		var n int
		if n, err = db.expire(ctx, list[i].ns, &list[i].spec, now); mongoerr.Is(err, mongoerr.BadValue) {
			err = nil // the index was dropped meanwhile: the hint names none
		}
		removed += n
		more = n >= sweepDocs
	}
	return removed, more, err
}

// expire removes some of the documents that an index says have expired.
func (db *DB) expire(ctx context.Context, ns Namespace, x *catalog.IndexSpec, now time.Time) (removed int, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	it := value.Elements(x.Key)
	it.Next()
	before := value.Date(now.UnixMilli() - x.ExpireAfter*1000)
	filter := appendField(noFields(), string(it.Name()), value.Document(appendField(noFields(), "$lte", before)))
	if x.Partial != nil {
		filter = appendField(noFields(), "$and", value.Array(appendField(appendField(noFields(), "0", value.Document(filter)), "1", value.Document(x.Partial))))
	}
	c := db.writing(ctx, ns, true)
	in, err := db.terms(ctx, ns, nil, x.Collation.Spec())
	if err != nil {
		return 0, err
	}
	t, err := c.target(in, filter, nil, value.String(x.Name))
	if err != nil {
		return 0, err
	}
	t.most = sweepDocs
	n, err := c.change(t, true, remove)
	return n.matched, c.end(err)
}

// sweeper is the loop around SweepTTL.
type sweeper struct {
	env     *env.Env
	mu      env.Mutex
	wake    env.Cond // due or stopped was set
	due     bool
	stopped bool
	ctx     context.Context
	cancel  context.CancelFunc
	done    env.WaitGroup
}

func (s *sweeper) init(e *env.Env) {
	s.env = e
	s.mu.Init(e, env.RankNone, "ttl")
	s.wake.Init(e, &s.mu, "ttl wake")
	s.done.Init(e, "ttl done")
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

func (s *sweeper) start(db *DB) {
	s.done.Add(1)
	s.env.Go("ttl", func() {
		defer s.done.Done()
		for s.wait(db.opt.TTLSweep) {
			for more := true; more; {
				var n int
				var err error
				n, more, err = db.SweepTTL(s.ctx, s.env.Clock.Now())
				switch {
				case err == nil:
				case s.ctx.Err() != nil, errors.Is(err, storage.ErrClosed):
					return
				default:
					db.log.Warn("a sweep for expired documents failed", "error", err)
					more = false
				}
				if n > 0 {
					db.log.Debug("expired documents were removed", "count", n)
				}
			}
		}
	})
}

// wait returns false once the sweeper is stopped.
func (s *sweeper) wait(d time.Duration) bool {
	cancel := s.env.Clock.AfterFunc(d, func() {
		s.mu.Lock()
		s.due = true
		s.wake.Broadcast()
		s.mu.Unlock()
	})
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.due && !s.stopped {
		s.wake.Wait()
	}
	s.due = false
	return !s.stopped
}

func (s *sweeper) stop() {
	s.cancel()
	s.mu.Lock()
	s.stopped = true
	s.wake.Broadcast()
	s.mu.Unlock()
	s.done.Wait()
}
