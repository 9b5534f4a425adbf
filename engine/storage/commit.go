package storage

import (
	"errors"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// batch is what one seal covers: whole writes, made durable and visible together.
type batch struct {
	seq      uint64
	parts    [][]byte // log, in order; each part is whole writes
	logBytes int
	edits    int

	touched []*coll
	born    []page.Run
	bornAt  map[page.ID]int // where the single pages among them are
	retired []retired
	spans   []span
	extents []extentChange

	// Under Store.pipe:
	cond    env.Cond
	waiting int
	done    bool
	err     error
}

// extentChange is what a batch did to one extent of a collection.
type extentChange struct {
	coll  CollID
	run   page.Run
	birth page.Gen
	live  int64 // gained or lost
	gone  bool
}

func (s *Store) newBatch(seq uint64) *batch {
	b := &batch{seq: seq, bornAt: make(map[page.ID]int)}
	b.cond.Init(s.env, &s.pipe, "batch")
	return b
}

// errLogRoom: the log's prepared segments cannot be relied on to take this write. The write is dropped, room is made, and it
// runs again.
var errLogRoom = errors.New("no room prepared in the log")

// install puts the write into the open batch: the one moment at which it takes its place in the order of writes. It cannot
// fail half-way: what can be wrong is found before anything changes.
func (w *Writer) install() error {
	changed, garbage := false, false
	for _, c := range w.colls {
		if c.changed {
			changed = true
			garbage = garbage || c.head.dropped || len(c.head.garbage) > 0
			c.settle()
		}
	}
	if !changed {
		return nil
	}
	s := w.s
	if garbage {
		defer s.keeper.want(&s.keeper.clear)
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	for _, c := range w.colls {
		if c.changed && c.c.head.Load() != c.base {
			return errMoved
		}
	}
	b := s.open
	if len(w.log) > 0 && !s.log.Fits(s.logPromised(len(w.log), w.kind)) {
		return errLogRoom
	}
	for _, c := range w.colls {
		if c.changed {
			c.install(b)
		}
	}
	for _, f := range w.born {
		if f != nil {
			b.bornAt[f.first] = len(b.born)
			b.born = append(b.born, page.Run{First: f.first, Count: 1})
		}
	}
	for _, r := range w.retired {
		i, ok := b.bornAt[r.First]
		if !ok {
			b.retired = append(b.retired, r)
			continue
		}
		// An earlier write of this batch has made it: no snapshot will have it.
		probe.BornAndGivenUp.Hit()
		delete(b.bornAt, r.First)
		b.born[i].Count = 0
		w.unseen = append(w.unseen, r.Run)
	}
	if len(w.log) > 0 {
		b.parts = append(b.parts, w.log)
		b.logBytes += len(w.log)
		b.edits += w.edits
		w.large = int64(b.logBytes) >= s.o.CommitBytes && !s.o.Manual
		s.stats.writes.Add(1)
	}
	return nil
}

func (c *Collection) install(b *batch) {
	st := c.c
	h := c.head
	if h.cleared() && len(st.extents) == len(c.gone) {
		probe.CollectionCleared.Hit()
		h = nil
	}
	st.head.Store(h)
	c.s.enlist(st)
	if st.last != b {
		st.last = b
		b.touched = append(b.touched, st)
	}
	st.buffer = c.buffer
	for _, r := range c.slack {
		probe.ExtentSlack.HitIf(r.Count > 0)
		c.s.frames.closeOff(r)
	}
	if c.cleaning != (cleanPosition{}) {
		st.cleaning = c.cleaning
	}
	var sum space
	for _, x := range c.fresh {
		sum.total += int64(x.run.Count) * page.Size
		st.addExtent(x)
		b.born = append(b.born, x.run)
	}
	for _, x := range c.extentsChanged() {
		d := c.deltas[x]
		x.live += d
		sum.live += d
		b.extents = append(b.extents, extentChange{coll: c.id, run: x.run, birth: x.birth, live: d})
	}
	for _, x := range c.gone {
		st.removeExtent(x)
		size := int64(x.run.Count) * page.Size
		c.s.stats.freedBytes.Add(size)
		sum.total -= size
		sum.live -= x.live // of a dropped collection
		b.extents = append(b.extents, extentChange{coll: c.id, run: x.run, birth: x.birth, gone: true})
	}
	b.spans = append(b.spans, c.spans...)
	c.s.count(st, sum)
}

// count adds to what is known of the collection's extents.
func (s *Store) count(c *coll, sum space) {
	s.stats.extentBytes.Add(sum.total)
	s.stats.liveBytes.Add(sum.live)
	c.dead.Add(sum.dead())
	c.cleaned.Store(false)
}

// Commit is a point of the order of writes that a reply rests on. The zero Commit is the beginning.
type Commit struct {
	s *Store
	b *batch
}

// Later is the later of two commits.
func (c Commit) Later(d Commit) Commit {
	if c.b == nil || d.b != nil && d.b.seq > c.b.seq {
		return d
	}
	return c
}

// Wait returns once everything that the write looked at and did is durable and visible, or ErrFailed.
//
// The caller leads: if nobody is making a batch durable, it does so itself, for all that wait for the same batch.
func (c Commit) Wait() error {
	if c.b == nil {
		return nil
	}
	s, b := c.s, c.b
	s.pipe.Lock()
	for !b.done {
		if !s.leading {
			// Only the open batch can be waited for then: one in flight has a leader.
			s.leading = true
			s.pipe.Unlock()
			s.commitOpen(false)
			s.pipe.Lock()
			s.handOn()
			continue
		}
		b.waiting++
		b.cond.Wait()
		b.waiting--
	}
	err := b.err
	s.pipe.Unlock()
	return err
}

// lead runs f as the leader of the pipeline: no batch is in flight meanwhile.
func (s *Store) lead(f func()) {
	s.pipe.Lock()
	for s.leading {
		probe.LeaderWaited.Hit()
		s.wantLead++
		s.leadFree.Wait()
		s.wantLead--
	}
	s.leading = true
	s.pipe.Unlock()
	defer func() {
		s.pipe.Lock()
		s.handOn()
		s.pipe.Unlock()
	}()
	f()
}

// handOn ends the caller's leadership and wakes the next leader. The pipe is locked.
func (s *Store) handOn() {
	s.leading = false
	if s.wantLead > 0 {
		s.leadFree.Signal()
		return
	}
	// Nobody leads, so nobody swaps the open batch: it may be looked at without the gate.
	probe.LeaderHandedOn.HitIf(s.open.waiting > 0)
	if s.open.waiting > 0 {
		s.open.cond.Signal()
	}
}

// commitOpen seals the open batch, makes it durable and publishes its snapshot. The caller leads. A panic in here leaves the
// order of writes in doubt, so it fails the database as a failed sync does.
func (s *Store) commitOpen(forCheckpoint bool) {
	var b *batch
	var sn *Snapshot
	defer func() {
		if r := recover(); r != nil {
			s.fail(fmt.Errorf("panic while committing: %v", r))
			if b != nil {
				s.finish(b, ErrFailed)
			}
			panic(r)
		}
	}()
	s.env.Point("seal")
	b, sn = s.seal(forCheckpoint)
	if s.Failed() != nil {
		s.finish(b, ErrFailed)
		return
	}
	sn.lsn = s.visible.Load().lsn
	probe.BatchOfSeveral.HitIf(len(b.parts) > 1)
	if len(b.parts) > 0 {
		end, err := s.log.Append(b.parts, s.publishedMeta.Load())
		if err == nil {
			err = s.log.Sync()
		}
		if err != nil {
			// Set before anyone is woken. Followers, and writers that are queued, get "outcome unknown".
			probe.FailedSyncIsFinal.Hit()
			s.fail(err)
			s.finish(b, ErrFailed)
			return
		}
		for _, part := range b.parts {
			s.buffers.put(part)
		}
		b.parts = nil
		sn.lsn = LSN(end)
		s.stats.batches.Add(1)
	}
	s.env.Point("publish")
	s.publish(b, sn)
	s.gate.Lock()
	s.inFlight = 0
	s.gate.Unlock()
	s.finish(b, nil)
	s.account(b, forCheckpoint)
}

func (s *Store) finish(b *batch, err error) {
	s.pipe.Lock()
	b.done, b.err = true, err
	b.cond.Broadcast()
	s.pipe.Unlock()
}

// seal closes the open batch and captures the heads of what it touched: the snapshot that the batch makes. It is the only
// time when the gate is held for more than one write's installation, and takes microseconds.
//
// A seal for a checkpoint also rounds up the fill of every open extent that was appended to: the page in which the snapshot
// ends will be published, and must never be written again.
func (s *Store) seal(forCheckpoint bool) (*batch, *Snapshot) {
	s.gate.Lock()
	defer s.gate.Unlock()
	b := s.open
	s.open = s.newBatch(b.seq + 1)
	s.inFlight = b.logBytes
	sn := &Snapshot{s: s, num: s.nextGen(), heads: s.sealed}
	if len(b.touched) > 0 {
		sn.heads = s.sealed.with(b.touched)
		s.sealed = sn.heads
	}
	for _, c := range b.touched {
		if !c.appended {
			c.appended = true
			s.appended = append(s.appended, c)
		}
	}
	if forCheckpoint {
		for _, c := range s.appended {
			c.appended = false
			if h := c.head.Load(); h != nil && h.open.fill%page.Size != 0 {
				probe.ExtentRounded.Hit()
				n := *h
				n.open = h.open.rounded()
				c.head.Store(&n)
			}
		}
		s.appended = s.appended[:0]
	}
	return b, sn
}
