package storage

import (
	"errors"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
)

// keeper does the work that no client waits for: checkpoints, marks in an idle log, clearing away what was dropped. Each is a
// method that does one bounded step; the loop only calls them.
type keeper struct {
	mu   env.Mutex
	cond env.Cond
	done env.WaitGroup
	work env.Mutex // held during a round of the loop: a check keeps it out

	stopping   bool
	checkpoint bool
	clear      bool
	mark       bool
	prepare    bool
	clean      bool
	timer      func() bool // stops the timer of a mark, if one runs
}

func (k *keeper) wake() {
	k.mu.Lock()
	k.cond.Signal()
	k.mu.Unlock()
}

func (k *keeper) want(flag *bool) {
	k.mu.Lock()
	if !*flag {
		*flag = true
		k.cond.Signal()
	}
	k.mu.Unlock()
}

func (s *Store) startKeeper() {
	if s.o.Manual {
		return
	}
	s.committer.done.Add(1)
	s.env.Go("storage committer", func() {
		defer s.committer.done.Done()
		s.runCommitter()
	})
	s.keeper.done.Add(1)
	s.env.Go("storage keeper", func() {
		defer s.keeper.done.Done()
		s.keep()
	})
}

func (s *Store) stopKeeper() {
	k := &s.keeper
	k.mu.Lock()
	k.stopping = true
	stop := k.timer
	k.timer = nil
	k.cond.Signal()
	k.mu.Unlock()
	if stop != nil {
		stop()
	}
	k.done.Wait()
	s.committer.stop()
}

// keep is the loop. Errors need no word here: a failure of the disk is kept by the Store and told to every writer, and a full
// disk is met again by the next of them.
func (s *Store) keep() {
	k := &s.keeper
	for {
		k.mu.Lock()
		for !k.stopping && (s.Failed() != nil || !k.checkpoint && !k.clear && !k.mark && !k.prepare && !k.clean) {
			k.cond.Wait()
		}
		stop, checkpoint, clear, mark, prepare, clean := k.stopping, k.checkpoint, k.clear, k.mark, k.prepare, k.clean
		k.checkpoint, k.mark, k.prepare = false, false, false
		k.mu.Unlock()
		if stop {
			return
		}
		k.work.Lock()
		if prepare {
			_ = s.prepareLog()
		}
		if checkpoint {
			if err := s.Checkpoint(); err != nil {
				s.checkpointer.failed(s, err)
			} else {
				_ = s.reclaim()
			}
		}
		if mark {
			_ = s.Mark()
		}
		if clean {
			more, err := s.CleanStep()
			if err != nil || !more || !s.dirty(cleanShare) {
				k.mu.Lock()
				k.clean = false
				k.mu.Unlock()
			}
		}
		if clear {
			if more, err := s.ClearStep(); err != nil || !more {
				k.mu.Lock()
				k.clear = false
				k.mu.Unlock()
			}
		}
		k.work.Unlock()
	}
}

// wantCheckpoint asks for one.
func (s *Store) wantCheckpoint() {
	if !s.o.Manual {
		s.keeper.want(&s.keeper.checkpoint)
	}
}

// account adds a committed batch to what a checkpoint would have to do, and asks for the work that this makes due; but not for a batch
// that was sealed for a checkpoint, which would ask for the next one, and on a full disk so for ever.
func (s *Store) account(b *batch, forCheckpoint bool) {
	c := &s.checkpointer
	s.pipe.Lock()
	c.pending.logBytes += int64(b.logBytes)
	c.pending.edits += int64(b.edits)
	due := c.pending.due(s.o) || s.frames.count.Load()-c.left > s.o.CheckpointPages
	s.pipe.Unlock()
	if !forCheckpoint {
		if due || s.pendingDue() {
			s.wantCheckpoint()
		}
		if !s.o.Manual && s.dirty(cleanShare) {
			s.keeper.want(&s.keeper.clean)
		}
	}
	if b.logBytes > 0 {
		s.armMark()
		if !s.o.Manual && s.log.Room() < s.logAhead() {
			s.keeper.want(&s.keeper.prepare)
		}
	}
}

// logAhead is how much of the log is kept prepared, so that commits need not wait for a new segment.
func (s *Store) logAhead() int64 { return s.o.SegmentSize / 2 }

// prepareLog makes the next segment. That it cannot be made is met again, and told, by the write that needs it.
func (s *Store) prepareLog() error {
	err := s.log.Prepare(s.logAhead())
	if err != nil && s.log.Err() != nil {
		return s.fail(err)
	}
	return err
}

// pendingDue reports whether so many pages wait for checkpoints to become free that they hold the file up: 3% of it.
func (s *Store) pendingDue() bool {
	st := s.alloc.Stats()
	return st.Pending > max(st.File*3/100, pendingMin)
}

// pendingMin is a number of pages that is not worth a checkpoint of its own.
const pendingMin = 1024

func (p pendingWork) due(o Options) bool {
	return p.logBytes > o.CheckpointBytes || p.edits > o.CheckpointEdits
}

// hard reports whether writers must wait: the log holds two intervals.
func (p pendingWork) hard(o Options) bool {
	return p.logBytes > 2*o.CheckpointBytes || p.edits > 2*o.CheckpointEdits
}

// admit lets a write begin. Here, with nothing held, is the only place where it waits for a checkpoint.
func (s *Store) admit(k kind) error {
	if err := s.refusal(); err != nil {
		return err
	}
	if k != logged || s.o.Manual {
		return nil
	}
	if s.dirty(helpShare) {
		if _, err := s.CleanStep(); errors.Is(err, ErrFailed) {
			return err
		}
	}
	c := &s.checkpointer
	s.pipe.Lock()
	defer s.pipe.Unlock()
	for c.pending.hard(s.o) || s.frames.count.Load()-c.left > 4*s.o.CheckpointPages {
		if err := s.refusal(); err != nil {
			return err
		}
		s.wantCheckpoint() // nobody else may have: pages of writes under way count, and these have committed nothing yet
		if c.err != nil {
			return c.err // the last one did not succeed, for want of space; the one asked for may
		}
		s.stats.admissionWaits.Add(1)
		c.done.Wait()
	}
	return nil
}

// failed tells the writers at admission that they wait in vain. The next checkpoint that succeeds lets them in again.
func (c *checkpointer) failed(s *Store, err error) {
	s.pipe.Lock()
	c.err = err
	c.done.Broadcast()
	s.pipe.Unlock()
}

func (c *checkpointer) wakeAll(s *Store) {
	s.pipe.Lock()
	c.done.Broadcast()
	s.pipe.Unlock()
}

// armMark sees to it that a mark follows when the log has been idle for a while.
func (s *Store) armMark() {
	k := &s.keeper
	if s.o.Manual {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil || k.stopping {
		return
	}
	at := s.stats.batches.Load()
	k.timer = s.env.Clock.AfterFunc(s.o.MarkAfter, func() { s.markIfIdle(at) })
}

func (s *Store) markIfIdle(at int64) {
	k := &s.keeper
	k.mu.Lock()
	k.timer = nil
	idle := s.stats.batches.Load() == at
	if idle {
		k.mark = true
		k.cond.Signal()
	}
	k.mu.Unlock()
	if !idle {
		s.armMark()
	}
}

// Mark makes the log say that its last batch is durable: damage to it is then told from a torn write.
func (s *Store) Mark() error {
	if err := s.refusal(); err != nil {
		return err
	}
	return s.mark()
}

func (s *Store) mark() error {
	// A full disk must not be met while leading, where it would be a failure.
	err := s.makeLogRoom(0, freeing)
	if err != nil {
		return err
	}
	s.lead(func() {
		if s.Failed() != nil {
			err = ErrFailed
			return
		}
		if e := s.log.Mark(s.publishedMeta.Load()); e != nil {
			err = s.fail(e)
		}
	})
	return err
}

// clearPages bounds a step of clearing.
const clearPages = 128

// step is what a step of background work does at most: n, or so little that a small database takes many, if a simulation wants that.
func (s *Store) step(n int) int {
	if s.env.Buggy("storage: small steps") {
		return 3
	}
	return n
}

// ClearStep retires some pages of a collection or tree that was dropped, and reports whether there is more. Steps are not
// logged: what recovery finds of a dropped collection it clears again, from where the last checkpoint left it.
func (s *Store) ClearStep() (more bool, err error) {
	for _, c := range *s.colls.Load() {
		if c == nil {
			continue
		}
		if h := c.head.Load(); h != nil && (h.dropped || len(h.garbage) > 0) {
			commit, err := s.WriteFreeing(func(w *Writer) error { return w.clearStep(c.id) })
			return true, errors.Join(err, commit.Wait())
		}
	}
	return false, nil
}

func (w *Writer) clearStep(id CollID) error {
	c := w.lock(id)
	if c == nil || c.head == nil {
		return nil
	}
	switch h := c.edit(); {
	case len(h.garbage) > 0:
		last := len(h.garbage) - 1
		done, err := btree.DropStep(w, &h.garbage[last], w.s.step(clearPages))
		if done {
			h.garbage = h.garbage[:last]
		}
		return err
	case !h.dropped:
		return nil
	case len(h.trees) > 0:
		last := len(h.trees) - 1
		if h.trees[last].Root != 0 {
			h.garbage = append(h.garbage, h.trees[last].Head)
		}
		h.trees = h.trees[:last]
		return nil
	case h.table.Root != 0:
		_, err := h.table.DropStep(w, w.s.step(clearPages))
		return err
	default:
		h.open = openExtent{}
		c.gone = append(c.gone, c.c.extents[:min(w.s.step(clearPages), len(c.c.extents))]...)
		return nil
	}
}

// Close waits for writes under way, publishes a checkpoint and closes. Snapshots must have been released.
//
// After a failure it writes nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	s.stopKeeper()
	s.checkpointer.wakeAll(s)
	var err error
	if s.Failed() == nil {
		s.checkpointer.mu.Lock()
		err = s.checkpoint()
		s.checkpointer.mu.Unlock()
		if err == nil {
			err = s.trim()
		}
		if s.Failed() == nil {
			err = errors.Join(err, s.mark())
		}
		if errors.Is(err, ErrDiskFull) && s.Failed() == nil {
			err = nil // what could not be published is in the log
		}
	}
	return errors.Join(err, s.release())
}
