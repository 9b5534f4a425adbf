package storage

import (
	"io"
	"sync/atomic"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
)

// Store is an open database: one data file, one log, and the order of writes.
type Store struct {
	env  *env.Env
	dir  string
	o    Options
	lock io.Closer

	file     env.File
	mapping  env.Mapping
	log      *wal.Log
	alloc    *page.Allocator
	frames   frames
	verified pageSet // checked since the open
	asked    pageSet // in which a record was asked for by its number
	buffers  buffers
	gen      atomic.Uint64

	visible atomic.Pointer[Snapshot]
	colls   atomic.Pointer[[]*coll] // by id; replaced under the gate

	// gate: installing a write, sealing a batch.
	gate     env.Mutex
	open     *batch
	sealed   heads   // of the last seal
	appended []*coll // touched since the last seal for a checkpoint
	inFlight int     // log bytes of the batch that was sealed last, until it is written

	// pipe: who leads, who waits.
	pipe     env.Mutex
	leading  bool
	wantLead int
	leadFree env.Cond

	// chain: the live snapshots, and what the batches since the last checkpoint did.
	chain         env.Mutex
	unfolded      []fold
	checkpointLSN LSN
	holding       bool // free pages go to held
	held          []page.Run

	failure atomic.Pointer[error]
	closed  atomic.Bool

	checkpointer checkpointer
	keeper       keeper
	committer    committer
	stats        counters

	publishedMeta atomic.Uint64 // generation of the newest meta page known durable
}

// fold is what a checkpoint must know of one batch.
type fold struct {
	num     page.Gen
	born    []page.Run
	retired []retired
	touched []*coll
	spans   []span
	extents []extentChange
}

func (s *Store) nextGen() page.Gen { return page.Gen(s.gen.Add(1)) }

// coll finds a collection's state, or nil.
func (s *Store) coll(id CollID) *coll {
	if cs := *s.colls.Load(); int(id) < len(cs) {
		return cs[id]
	}
	return nil
}

// enlist makes the table of collections agree with whether c has a head. The gate is held.
func (s *Store) enlist(c *coll) {
	want := c
	if c.head.Load() == nil {
		want = nil
	}
	if s.coll(c.id) == want {
		return
	}
	old := *s.colls.Load()
	n := make([]*coll, max(len(old), int(c.id)+1))
	copy(n, old)
	n[c.id] = want
	s.colls.Store(&n)
}

// vacantID is the lowest number that no collection has, those that w makes included. Collection 0 is locked, so that nobody
// else makes one meanwhile.
func (s *Store) vacantID(w *Writer) CollID {
	id := CollID(1)
next:
	for ; s.coll(id) != nil; id++ {
	}
	for _, c := range w.colls {
		if c.id == id {
			id++
			goto next
		}
	}
	return id
}

// fail makes the first failure of the disk final and gives the error for those that it concerns.
func (s *Store) fail(err error) error {
	if s.failure.CompareAndSwap(nil, &err) {
		// What a failed sync left in the page cache need not be what was checked.
		s.verified.clear()
		s.keeper.wake()
		s.checkpointer.wakeAll(s)
	}
	return ErrFailed
}

// Failed is the disk's error that made the database refuse writes, or nil.
func (s *Store) Failed() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// refusal is why no write can be taken, or nil.
func (s *Store) refusal() error {
	if s.Failed() != nil {
		return ErrFailed
	}
	if s.closed.Load() {
		return ErrClosed
	}
	return nil
}

// trees that only checkpoints write.
type metaTrees struct {
	heads btree.Head
	space btree.Head
}
