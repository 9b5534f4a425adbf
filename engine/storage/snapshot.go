package storage

import (
	"fmt"
	"sync/atomic"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Snapshot is the immutable state of the whole database after one batch.
type Snapshot struct {
	s     *Store
	num   page.Gen // taken when the batch was sealed: above the births of all its pages
	lsn   LSN
	heads heads

	// pins counts its users; being the visible snapshot is one use. The last one to go hands the deadlist on.
	pins atomic.Int64

	// Under Store.chain: the live snapshots in their order, and this one's deadlist: pages that no younger snapshot
	// reaches, and this one or an older one may.
	older, newer *Snapshot
	dead         []retired
	gone         bool
}

// retired is a run of pages that the head does not reach any more.
type retired struct {
	page.Run
	birth page.Gen
}

// Snapshot pins the newest durable state. It takes no lock and never waits. Release it soon: the pages it can reach are
// not reused meanwhile.
func (s *Store) Snapshot() *Snapshot {
	for {
		sn := s.visible.Load()
		s.env.Point("visible")
		sn.pins.Add(1)
		s.env.Point("pin")
		// While sn is visible it holds a pin of its own: if it still is, ours came before its last one went.
		if s.visible.Load() == sn {
			return sn
		}
		probe.PinMissed.Hit()
		sn.Release()
	}
}

// Release ends the pin. All slices that came from the snapshot die.
func (sn *Snapshot) Release() {
	if sn.pins.Add(-1) == 0 {
		sn.s.bury(sn)
	}
}

// LSN is the end of the batch that made the snapshot.
func (sn *Snapshot) LSN() LSN { return sn.lsn }

// Guard runs f and turns a fault of the mapped file into an error. All reads of one command belong into one Guard.
func (sn *Snapshot) Guard(f func() error) error { return sn.s.mapping.Guard(f) }

// Collection is the collection's state in the snapshot, or nil.
func (sn *Snapshot) Collection(id CollID) *Collection {
	h := sn.heads.get(id)
	if h == nil || h.dropped {
		return nil
	}
	return &Collection{s: sn.s, id: id, head: h}
}

// Collections are the numbers of all collections, in order; collection 0 is one.
func (sn *Snapshot) Collections() (ids []CollID) {
	_ = sn.heads.all(func(id CollID, h *head) error {
		if !h.dropped {
			ids = append(ids, id)
		}
		return nil
	})
	return ids
}

// publish makes the batch's snapshot the visible one, and finds out which pages it was the last to lose.
func (s *Store) publish(b *batch, sn *Snapshot) {
	var free []page.Run
	s.chain.Lock()
	prev := s.visible.Load()
	sn.pins.Store(1)
	sn.older, prev.newer = prev, sn
	for _, r := range b.retired {
		// A page born after prev was sealed was built and given up within this batch.
		if r.birth < prev.num {
			prev.dead = append(prev.dead, r)
		} else {
			probe.BornAndGivenUp.Hit()
			free = append(free, r.Run)
		}
	}
	s.unfolded = append(s.unfolded, fold{num: sn.num, born: b.born, retired: b.retired, touched: b.touched, spans: b.spans, extents: b.extents})
	s.visible.Store(sn)
	s.chain.Unlock()
	s.free(free)
	prev.Release()
}

// bury ends a snapshot that has lost its last pin: each page on its deadlist goes to the next older snapshot if that one may
// reach it, and else is free. Births are compared with snapshot numbers only where an error keeps a page too long.
func (s *Store) bury(sn *Snapshot) {
	var free []page.Run
	s.chain.Lock()
	if sn.gone || sn.pins.Load() != 0 {
		s.chain.Unlock()
		return
	}
	sn.gone = true
	older, newer := sn.older, sn.newer
	for _, r := range sn.dead {
		if older != nil && r.birth < older.num {
			probe.DeadlistHandedOn.Hit()
			older.dead = append(older.dead, r)
		} else {
			free = append(free, r.Run)
		}
	}
	sn.dead = nil
	if older != nil {
		older.newer = newer
	}
	if newer != nil {
		newer.older = older
	}
	sn.older, sn.newer = nil, nil
	s.chain.Unlock()
	s.free(free)
}

// free gives pages back that no snapshot reaches. Whether a published meta page does is the allocator's business.
func (s *Store) free(runs []page.Run) {
	s.chain.Lock()
	if s.holding {
		probe.FreeHeldBack.HitIf(len(runs) > 0)
		s.held = append(s.held, runs...)
		runs = nil
	}
	s.chain.Unlock()
	for _, r := range runs {
		if r.Count == 1 {
			s.frames.reclaim(r.First)
		} else {
			s.frames.drop(r)
		}
		s.alloc.Free(r)
	}
}

// holdFree keeps back what becomes free until f is done: a checkpoint that has sealed and takes pages for its trees must not
// get one that a later batch has made and given up. The allocator is told of the checkpoint's pages before it is told of that
// batch's, and would think the batch had taken, and freed, a page of the checkpoint.
func (s *Store) holdFree(f func() error) error {
	s.chain.Lock()
	s.holding = true
	s.chain.Unlock()
	err := f()
	s.chain.Lock()
	held := s.held
	s.holding, s.held = false, nil
	s.chain.Unlock()
	s.free(held)
	return err
}

// prefetch reads a part of the file that is asked for the first time, and nothing around it: a fault of the mapping would read 128 KiB,
// which is right for a scan and 30 times too much for a page. Where the system does not take the advice, faults serve as well.
func (s *Store) prefetch(off, n int64) { _ = s.mapping.Advise(off, n, env.AdviseWillNeed) }

// Page gives a page as heads and trees refer to it. It serves every snapshot and every write.
func (s *Store) Page(ref page.Ref) ([]byte, error) {
	id := ref.ID()
	var b []byte
	if f := s.frames.get(id); f != nil {
		b = f.page(id)
	} else {
		file := s.mapping.Bytes()
		end := (uint64(id) + 1) * page.Size
		if end > uint64(len(file)) {
			return nil, fmt.Errorf("page %d: beyond the end of the file: %w", id, ErrCorrupt)
		}
		b = file[end-page.Size : end : end]
		if !s.verified.has(id) {
			s.prefetch(int64(id)*page.Size, page.Size)
			if err := page.Verify(b, ref); err != nil {
				return nil, err
			}
			s.verified.set(id)
		}
	}
	if page.IDOf(b) != id || !ref.Matches(page.BirthOf(b)) {
		return nil, fmt.Errorf("page %d: reference %v finds page %d born at %#x: %w", id, ref, page.IDOf(b), uint64(page.BirthOf(b)), ErrCorrupt)
	}
	return b, nil
}
