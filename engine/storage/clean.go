package storage

import (
	"errors"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/slab"
)

// Cleaning gives back the space of records that were deleted or replaced. An extent is free when nothing in it is live any
// more; the cleaner helps those along that have most dead bytes, by moving their live records to the open extent.
//
// A move is a write like any other, but it is not logged: the state it leaves is the same. Recovery places the records of
// the log anew anyway, and finds the others where the checkpoint has them, since the pages of a cleaned extent are not written
// again before both meta pages have forgotten them. Only extents that checkpoints have written whole are cleaned: in memory, the
// end of a page that was rounded up may hold what a write that was dropped has left.
//
// It is paced by the garbage that writers make: the keeper cleans while more than cleanShare of all extents' bytes is dead, and
// where that is not enough, from helpShare on, each write does a step before it begins.
const (
	cleanShare = 10 // percent
	helpShare  = 20
	// victimShare is what must be dead of an extent for the cleaner to take it.
	victimShare = 15
	// A step moves at most so much.
	cleanBytes   = 256 << 10
	cleanRecords = 256
)

// space counts bytes of extents.
type space struct{ total, live int64 }

func (p space) dead() int64 { return p.total - p.live }

// dirty reports whether more than share percent of the extents' bytes are dead.
func (s *Store) dirty(share int64) bool {
	p := s.space()
	return p.dead() > s.o.CleanSlack && p.dead()*100 > p.total*share
}

// space sums up all extents.
func (s *Store) space() space {
	return space{total: s.stats.extentBytes.Load(), live: s.stats.liveBytes.Load()}
}

// cleanPosition is how far the cleaner has come in an extent.
type cleanPosition struct {
	first page.ID
	birth page.Gen
	off   int64 // of the next record, in the file
}

// CleanStep moves some records out of the extent with the most dead bytes, in the collection that has most of them. It reports
// whether there was anything to do.
func (s *Store) CleanStep() (more bool, err error) {
	var worst *coll
	var most int64
	for _, c := range *s.colls.Load() {
		if c == nil || c.cleaned.Load() {
			continue
		}
		if d := c.dead.Load(); d > most {
			worst, most = c, d
		}
	}
	if worst == nil {
		return false, nil
	}
	commit, err := s.WriteFreeing(func(w *Writer) error { return w.cleanStep(worst.id) })
	if errors.Is(err, ErrCorrupt) {
		worst.cleaned.Store(true) // what is damaged is for reads and Check to tell
	}
	return true, errors.Join(err, commit.Wait())
}

func (w *Writer) cleanStep(id CollID) error {
	c := w.Lock(id)
	if c == nil { // dropped: its extents are cleared away whole
		if st := w.s.coll(id); st != nil {
			st.cleaned.Store(true)
		}
		return nil
	}
	x := c.victim()
	if x == nil {
		c.c.cleaned.Store(true) // until something in it dies, or is written
		return nil
	}
	return w.empty(c, x)
}

// empty moves some of the records that are live out of an extent, going on from where the last call for it ended.
func (w *Writer) empty(c *Collection, x *extent) error {
	at := c.c.cleaning
	if at.first != x.run.First || at.birth != x.birth {
		at = cleanPosition{first: x.run.First, birth: x.birth, off: int64(x.run.First) * page.Size}
	}
	c.edit()
	end := int64(x.run.End()) * page.Size
	file := w.s.mapping.Bytes()
	if end > int64(len(file)) {
		return nil
	}
	moved, bytes := 0, 0
	for at.off < end && moved < w.s.step(cleanRecords) && bytes < cleanBytes {
		rid, size, ok := slab.Scan(file[at.off:end])
		if !ok {
			at.off = (at.off + page.Size) &^ (page.Size - 1)
			continue
		}
		p, err := c.head.table.Get(w, rid)
		if err != nil {
			return err
		}
		if p != 0 && p.Offset() == at.off {
			if err := c.move(x, RecordID(rid), p); err != nil {
				return err
			}
			moved++
			bytes += size
		}
		at.off += int64(size)
	}
	c.cleaning = at
	probe.RecordsMoved.HitIf(moved > 0)
	w.s.stats.cleanedBytes.Add(int64(bytes))
	if at.off < end {
		return nil
	}
	w.s.stats.cleanedExtents.Add(1)
	if live := x.live + c.deltas[x]; live != 0 {
		return fmt.Errorf("collection %d: %d bytes of the extent at page %d are said to be live, and are not there: %w", c.id, live, x.run.First, ErrCorrupt)
	}
	return nil
}

// move gives a live record another place.
func (c *Collection) move(x *extent, id RecordID, p slab.Place) error {
	record, err := c.s.record(c.id, id, p)
	if err != nil {
		return err
	}
	to, err := c.place(id, record)
	if err != nil {
		return err
	}
	c.count(x, -int64(slab.Footprint(len(record))))
	return c.head.table.Set(c.w, uint64(id), to)
}

// victim is the extent with the largest part dead of those that may be cleaned.
func (c *Collection) victim() *extent {
	var best *extent
	var share int64
	for _, x := range c.c.extents {
		size := int64(x.run.Count) * page.Size
		if part := (size - x.live) * 100 / size; part >= victimShare && part > share && x.run != c.head.open.run && c.s.onDisk(x.run) {
			best, share = x, part
		}
	}
	return best
}

// onDisk reports whether no page of the run is in memory only. The empty pages at the end of a closed extent count as written.
func (s *Store) onDisk(r page.Run) bool {
	for id := r.First; id < r.End(); id++ {
		if f := s.frames.get(id); f != nil && f != slack {
			return false
		}
	}
	return true
}
