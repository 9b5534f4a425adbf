package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// Options say how a database is opened. The zero value is a sensible one.
type Options struct {
	// Env is the outside; nil is the real one.
	Env *env.Env
	// Logger takes what the background jobs have to say; nil discards it.
	Logger *slog.Logger
	// TTLSweep is the time between two sweeps for expired documents: 0 is a minute, and a negative value turns the loop off
	// (SweepTTL still works).
	TTLSweep time.Duration
	// SortMemory bounds what one sort may keep in memory, in bytes: 0 is 100 MiB.
	SortMemory int
	// TemporaryMax bounds the temporary files of all sorts and pipelines together, in bytes: 0 is 64 GiB.
	TemporaryMax int64
	// MaxMemory is what the database may take of the heap, in bytes: what is not set here or in Storage is divided so that it suffices.
	// 0 is as much as the defaults come to.
	MaxMemory int64
	// Storage is passed on to the storage column.
	Storage storage.Options
}

const (
	ttlSweepDefault = time.Minute
)

// DB is an open database: all the databases, in MongoDB's sense, of one directory. Its methods may be called from many
// goroutines at once.
type DB struct {
	env   *env.Env
	log   *slog.Logger
	opt   Options
	store *storage.Store
	cache cache
	temp  temporary

	mu      env.Mutex // guards what follows
	changed env.Cond  // calls has become 0 after closing was set, or a build has ended
	calls   int
	closing bool
	builds  map[storage.CollID]struct{} // collections with an index build under way

	objectIDs objectIDs
	ordinal   atomic.Uint32 // of $currentDate's timestamps
	arrivals  arrivals
	sweep     sweeper
}

// Open opens the database in dir, and creates it if there is none. What a crash has
// left half-made is dropped: indexes that were being built, collections that an $out was filling.
func Open(dir string, o Options) (*DB, error) {
	if o.Env == nil {
		o.Env = env.Real()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TTLSweep == 0 {
		o.TTLSweep = ttlSweepDefault
	}
	o.divideMemory()
	if o.TemporaryMax == 0 {
		o.TemporaryMax = temporaryDefault
	}
	db := &DB{env: o.Env, log: o.Logger, opt: o, builds: map[storage.CollID]struct{}{}}
	db.mu.Init(db.env, env.RankNone, "engine")
	db.changed.Init(db.env, &db.mu, "engine changed")
	db.cache.init(db.env)
	db.objectIDs.init(db.env)
	db.arrivals.init(db.env)
	db.sweep.init(db.env)
	db.temp.init(db.env, dir, o.TemporaryMax)
	var err error
	if db.store, err = storage.Open(db.env, dir, o.Storage); err != nil {
		return nil, err
	}
	if err := db.temp.clean(); err != nil {
		db.log.Warn("temporary files that a crash has left cannot be removed", "error", err)
	}
	if err := db.dropHalfMade(); err != nil {
		db.store.Close()
		return nil, err
	}
	if o.TTLSweep > 0 {
		db.sweep.start(db)
	}
	return db, nil
}

// Close waits for calls under way, publishes a checkpoint and closes. Calls that come later answer with an error.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closing {
		db.mu.Unlock()
		return storage.ErrClosed
	}
	db.closing = true
	db.mu.Unlock()
	db.sweep.stop()
	db.mu.Lock()
	for db.calls > 0 {
		db.changed.Wait()
	}
	db.mu.Unlock()
	db.temp.close()
	return db.store.Close()
}

// enter counts a call; leave ends it. Close waits for all that have entered.
func (db *DB) enter() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closing {
		return clientError(storage.ErrClosed)
	}
	db.calls++
	return nil
}

func (db *DB) leave() {
	db.mu.Lock()
	db.calls--
	if db.calls == 0 && db.closing {
		db.changed.Broadcast()
	}
	db.mu.Unlock()
}

// Store is the storage column, for tools that look at pages and logs.
func (db *DB) Store() *storage.Store { return db.store }

// read runs f on the visible snapshot. What f reads dies with its return.
func (db *DB) read(f func(sn *storage.Snapshot) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	sn := db.store.Snapshot()
	defer sn.Release()
	return clientError(sn.Guard(func() error { return f(sn) }))
}

// tick is called in long loops, about every 50 µs: it lets others have the processor, and notices that nobody waits
// for the answer any more.
func (db *DB) tick(ctx context.Context) func() error {
	return func() error {
		db.env.Yield("scan")
		return ctx.Err()
	}
}

// dropHalfMade drops what a crash has left: indexes that are half-built, collections that an $out was filling. Nobody was told that
// they exist.
func (db *DB) dropHalfMade() error {
	sn := db.store.Snapshot()
	defer sn.Release()
	var half []*collection
	var temporary []Namespace
	err := sn.Guard(func() error {
		entries, err := catalog.List(sn.Collection(0), "")
		if err != nil {
			return err
		}
		for _, e := range entries {
			c, _, err := db.collection(sn, e.Namespace)
			if err != nil {
				return err
			}
			if strings.HasPrefix(e.Coll, outPrefix) {
				temporary = append(temporary, e.Namespace)
			} else if c.def.Ready() < len(c.def.Indexes) {
				half = append(half, c)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, ns := range temporary {
		commit, _, _, err := db.drop(ns)
		if err == nil {
			err = commit.Wait()
		}
		if err != nil {
			return err
		}
		db.log.Info("what an $out that did not end had written was dropped", "collection", ns.String())
	}
	for _, c := range half {
		commit, err := db.dropBuilding(c)
		if err == nil {
			err = commit.Wait()
		}
		if err != nil {
			return err
		}
		db.log.Info("index builds that did not end were dropped", "collection", c.def.NS.String())
	}
	return nil
}

// dropBuilding drops the indexes that are being built.
func (db *DB) dropBuilding(c *collection) (storage.Commit, error) {
	return db.store.Write(func(w *storage.Writer) error {
		u, err := db.lock(w, c)
		if err != nil {
			return err
		}
		d := u.def.Clone()
		if err := u.dropBuilding(d); err != nil || len(d.Indexes) == len(u.def.Indexes) {
			return err
		}
		return u.sc.SetDesc(d.Encode())
	})
}
