package storage

import (
	"errors"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Compaction does to completion what the cleaner does in part, and what it never does: it moves everything that lies in the back
// of the file into free places at the front, extents and pages of tables and trees alike, and joins tree pages that are half
// empty. Then the back of the file can be cut off.
//
// It goes in steps, each a write like those of the cleaner: private pages, one collection's lock for some milliseconds, nothing logged,
// since the state is the same afterwards. Recovery finds what a crash left of it. A step's pages all come from below the mark, so
// that each step is progress; when there is no room left below, it ends.

// compactBudget is about how many pages of tables and trees a step looks at or makes.
const compactBudget = 256

// compaction is one pass over the database: what lies at the mark or behind it is moved below.
type compaction struct {
	s    *Store
	mark page.ID
	at   compactPosition
}

// compactPosition is how far a pass has come: it goes through the collections, and in each through extents, table and trees.
type compactPosition struct {
	coll   CollID
	part   compactPart
	record uint64 // in the table
	tree   TreeID
	key    []byte // in the tree
}

type compactPart int

const (
	compactExtents compactPart = iota
	compactTable
	compactTrees
)

// compactChecks is how many steps there are from one checkpoint to the next, which makes what they left reusable.
const compactChecks = 1000

// Compact makes the file small: it cleans all extents that are worth it, moves what lies in the back of the file to its front, tidies
// the trees, and gives the free space back. Readers and writers go on meanwhile; what they add is not waited for. stop is asked
// between the steps, and its error ends it. freed is the number of bytes that the file's storage has become smaller by.
func (s *Store) Compact(stop func() error) (freed int64, err error) {
	before := s.storedPages()
	if err := s.Checkpoint(); err != nil { // only what a checkpoint has written can be moved
		return 0, err
	}
	if err := s.cleanAll(stop); err != nil {
		return 0, err
	}
	for round, slack := range []uint64{2, 2, 5, 10} { // percent that may stay free below the mark
		c := compaction{s: s, mark: s.compactMark(slack)}
		end := s.alloc.Truncatable()
		if err := c.run(stop); err != nil {
			return 0, err
		}
		if err := s.checkpointsToFree(); err != nil {
			return 0, err
		}
		if now := s.alloc.Truncatable(); now <= c.mark || now >= end && round > 0 {
			break
		}
	}
	if err := s.Trim(); err != nil {
		return 0, err
	}
	if err := s.punch(0, 1); err != nil {
		return 0, err
	}
	return (before - s.storedPages()) * page.Size, nil
}

// storedPages counts the pages of the file that have storage.
func (s *Store) storedPages() int64 {
	st := s.alloc.Stats()
	return int64(st.File - st.Holes)
}

// checkpointsToFree publishes twice, so that neither meta page reaches any more what was moved.
func (s *Store) checkpointsToFree() error {
	for range 2 {
		if err := s.Checkpoint(); err != nil {
			return err
		}
	}
	return nil
}

// cleanAll cleans until no extent is worth it. Others may delete as fast as it cleans: each byte is moved once.
func (s *Store) cleanAll(stop func() error) error {
	limit := s.stats.cleanedBytes.Load() + s.space().total
	for step := 1; s.stats.cleanedBytes.Load() <= limit; step++ {
		if err := stop(); err != nil {
			return err
		}
		more, err := s.CleanStep()
		if err != nil {
			return err
		}
		if !more || step%compactChecks == 0 {
			if err := s.checkpointsToFree(); err != nil {
				return err
			}
		}
		if !more {
			break
		}
	}
	return nil
}

// compactMark is where the file could end if everything in use lay at its front, with slack percent of it free, and room for one more
// extent.
func (s *Store) compactMark(slack uint64) page.ID {
	st := s.alloc.Stats()
	return page.ID(st.Used + (st.Used+st.Pending)*slack/100 + extentPagesMax)
}

// run goes through all collections once, and through the trees that only checkpoints write.
func (c *compaction) run(stop func() error) error {
	for step := 1; ; step++ {
		if err := stop(); err != nil {
			return err
		}
		more, err := c.step()
		if errors.Is(err, ErrDiskFull) {
			break // no room below the mark
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if step%compactChecks == 0 {
			if err := c.s.Checkpoint(); err != nil {
				return err
			}
		}
	}
	c.s.checkpointer.mu.Lock()
	c.s.checkpointer.mark = c.mark
	c.s.checkpointer.mu.Unlock()
	return nil
}

// step moves something, or finds that there is no more.
func (c *compaction) step() (more bool, err error) {
	var next compactPosition
	colls := *c.s.colls.Load()
	for int(c.at.coll) < len(colls) && colls[c.at.coll] == nil {
		c.at = compactPosition{coll: c.at.coll + 1}
	}
	if int(c.at.coll) >= len(colls) {
		return false, nil
	}
	commit, err := c.s.write(func(w *Writer) (err error) {
		next, err = c.move(w)
		return err
	}, kind{freeing: true, below: c.mark})
	if err = errors.Join(err, commit.Wait()); err == nil {
		c.at = next
	}
	return true, err
}

// behind reports whether a page must be moved.
func (c *compaction) behind(id page.ID) bool { return id >= c.mark }

// move does one step's work and says where to go on.
func (c *compaction) move(w *Writer) (next compactPosition, err error) {
	next = c.at
	k := w.Lock(c.at.coll)
	if k == nil {
		return compactPosition{coll: c.at.coll + 1}, nil
	}
	switch c.at.part {
	case compactExtents:
		more, err := c.moveExtent(w, k)
		if !more {
			next.part = compactTable
		}
		return next, err
	case compactTable:
		t := k.head.table
		next.record, err = t.Move(w, c.at.record, compactBudget, c.behind)
		if err == nil && t != k.head.table {
			k.edit().table = t
		}
		if next.record == 0 {
			next.part = compactTrees
		}
		return next, err
	}
	for _, t := range k.head.trees {
		if t.id < c.at.tree {
			continue
		}
		h := t.Head
		next.tree = t.id
		next.key, err = w.s.o.Tree.Tidy(w, &h, c.at.key, compactBudget, c.behind)
		if err == nil && h != t.Head {
			k.edit().tree(t.id).Head = h
		}
		if next.key == nil {
			next.tree++
		}
		return next, err
	}
	return compactPosition{coll: c.at.coll + 1}, nil
}

// moveExtent moves records out of an extent that lies behind the mark, if there is one that checkpoints have written whole. The open
// extent is closed first: it then is one of the others after the next checkpoint.
func (c *compaction) moveExtent(w *Writer, k *Collection) (more bool, err error) {
	if open := k.head.open.run; open.Count > 0 && open.End() > c.mark {
		k.edit()
		return true, k.openExtent(page.Size)
	}
	i := slices.IndexFunc(k.c.extents, func(x *extent) bool { return x.run.End() > c.mark && w.s.onDisk(x.run) })
	if i < 0 {
		return false, nil
	}
	return true, w.empty(k, k.c.extents[i])
}

// tidyMetaTrees moves pages of the heads tree and the space tree below the mark of the last compaction.
func (s *Store) tidyMetaTrees(w *Writer, trees *metaTrees) error {
	mark := s.checkpointer.mark
	if mark == 0 {
		return nil
	}
	for _, t := range []*btree.Head{&trees.heads, &trees.space} {
		if _, err := s.o.Tree.Tidy(w, t, nil, 1<<20, func(id page.ID) bool { return id >= mark }); err != nil {
			return err
		}
	}
	return nil
}
