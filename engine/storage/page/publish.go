package page

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Stage tells which pages a batch that is in the next snapshot to be published has added to what the snapshot before
// reaches, and which it has taken away: first all of born, then all of retired. The batches come in their order, each once,
// whether the publish succeeds or not; a page whose number was used twice within one batch needs a call for each use.
//
// It panics if a page that is born is reached already, or one that is retired is not: then the caller has lost count.
func (a *Allocator) Stage(born, retired []Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.publishing {
		panic("page: staged while a publish is under way")
	}
	for _, run := range born {
		r := a.region(run)
		r.dirty = true
		r.spread(run, func(w int, mask uint64) {
			if bad := mask & r.next[w]; bad != 0 {
				panic(fmt.Sprintf("page %d: staged as born, but reached already", r.pageOf(w, bad)))
			}
			r.edit(r.next, w, mask, 0)
		})
	}
	for _, run := range retired {
		r := a.region(run)
		r.dirty = true
		r.spread(run, func(w int, mask uint64) {
			if bad := mask&^r.next[w] | mask&r.fixedIn(w); bad != 0 {
				panic(fmt.Sprintf("page %d: staged as retired, but not reached", r.pageOf(w, bad)))
			}
			r.edit(r.next, w, 0, mask)
		})
		a.room = min(a.room, a.geometry.regionOf(run.First))
	}
}

// Staged reports whether the snapshot that is staged reaches page id, which may have been cut off.
func (a *Allocator) Staged(id ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id >= a.end {
		return false
	}
	r := a.region(Run{First: id, Count: 1})
	i := int(id - r.first)
	return r.next[i/groupPages]>>(i%groupPages)&1 != 0
}

// HighWater is the number of pages that hold all that is staged.
func (a *Allocator) HighWater() ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.highWater()
}

func (a *Allocator) highWater() ID {
	for i := len(a.regions) - 1; i >= 0; i-- {
		r := a.regions[i]
		if top := r.top(r.next); top > 0 {
			return r.first + ID(top)
		}
	}
	return ID(a.geometry.fixedPages(0))
}

// WriteBitmaps writes the bitmaps of all regions in which the staged snapshot differs from the published one, and the
// directory pages that change by that, into slots that no durable meta uses; and it sets in m what m must say of them:
// Geometry, HighWater and Directory. m.Generation is set by the caller.
//
// m may be written only after the file has been synced. If anything fails before that, Abandon, and try again later. Once
// a write of m was begun, a failure is final.
func (a *Allocator) WriteBitmaps(m *Meta) error {
	a.mu.Lock()
	if a.publishing || m.Generation <= a.written {
		panic(fmt.Sprintf("page: publish of generation %d after %d", m.Generation, a.written))
	}
	a.publishing, a.pending = true, m.Generation
	m.Geometry, m.HighWater = a.geometry, a.highWater()
	slots := make([]Slot, a.geometry.regionsFor(m.HighWater))
	regions := a.regions
	a.mu.Unlock()

	size, err := a.file.Size()
	if err != nil {
		return fmt.Errorf("data file: %w", err)
	}
	if size < int64(m.HighWater)*Size {
		return fmt.Errorf("data file: %d bytes long, but %d pages are in use: %w", size, m.HighWater, ErrCorrupt)
	}
	b := make([]byte, Size)
	for i, r := range regions {
		switch {
		case i >= len(slots): // nothing in it is reached
			r.nextSlot = Slot{}
			continue
		case !r.dirty:
			r.nextSlot, slots[i] = r.curSlot, r.curSlot
			continue
		}
		// Nobody changes next while a publish is under way.
		putWords(b, r.next)
		r.nextSlot = Slot{Number: third(r.curSlot, r.oldSlot), Written: m.Generation, CRC: Checksum(b)}
		slots[i] = r.nextSlot
		if err := a.writePage(a.geometry.bitmapSlot(i, r.nextSlot.Number), b, "bitmap of region", i); err != nil {
			return err
		}
	}
	return a.writeDirectory(m, slots)
}

// writeDirectory records the slots of all bitmaps in m, or in directory pages that m records.
func (a *Allocator) writeDirectory(m *Meta, slots []Slot) error {
	m.Directory = Directory{Regions: len(slots), Slots: slots}
	a.nextDir = nil
	pages := a.geometry.dirPages(len(slots))
	if pages == 0 {
		return nil
	}
	for i := range pages {
		b := make([]byte, Size)
		first := i * int(a.geometry.PerPage)
		for k, s := range slots[first:min(first+int(a.geometry.PerPage), len(slots))] {
			s.put(b[k*slotSize:])
		}
		cur, old := slotOf(a.curDir, i), slotOf(a.oldDir, i)
		next := Slot{Number: cur.Number, Written: cur.Written, CRC: Checksum(b)}
		if next != cur || cur.Number == 0 {
			next.Number, next.Written = third(cur, old), m.Generation
			if err := a.writePage(a.geometry.dirSlot(i, next.Number), b, "directory page", i); err != nil {
				return err
			}
		}
		a.nextDir = append(a.nextDir, next)
	}
	m.Directory.Slots = a.nextDir
	return nil
}

func (a *Allocator) writePage(id ID, b []byte, name string, number int) error {
	if _, err := a.file.WriteAt(b, int64(id)*Size); err != nil {
		return fmt.Errorf("%s %d (page %d): %w", name, number, id, err)
	}
	return nil
}

// Published says that the meta whose bitmaps were written is durable. What only the meta before the last reached is now
// free.
func (a *Allocator) Published() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.publishing {
		panic("page: published, but nothing was written")
	}
	for i, r := range a.regions {
		r.oldSlot, r.curSlot = r.curSlot, r.nextSlot
		if !r.moved && !r.dirty {
			continue
		}
		r.moved, r.dirty = r.dirty, false
		for w := range r.cur {
			if r.old[w] != r.next[w] || r.cur[w] != r.next[w] {
				r.count(w, -1)
				r.old[w], r.cur[w] = r.cur[w], r.next[w]
				r.recount(w)
			}
		}
		a.room = min(a.room, i)
	}
	a.oldDir, a.curDir = a.curDir, a.nextDir
	a.publishing, a.written = false, a.pending
}

// Abandon gives a publish up that failed before its meta was begun to be written. What was staged stays staged.
func (a *Allocator) Abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.publishing = false
}

func slotOf(slots []Slot, i int) Slot {
	if i < len(slots) {
		return slots[i]
	}
	return Slot{}
}

// pageOf is the page of the lowest bit of mask in word w.
func (r *region) pageOf(w int, mask uint64) ID {
	return r.first + ID(w*groupPages+bits.TrailingZeros64(mask))
}

// recountAll makes free and the sums anew after maps were changed behind their back.
func (r *region) recountAll() {
	r.sum.sub(r.tally)
	r.tally = tally{}
	for w := range r.free {
		r.free[w] = 0
		r.free[w] = ^(r.used[w] | r.cur[w] | r.old[w] | r.next[w]) & r.below(w)
		r.count(w, +1)
	}
	r.forget(0)
}

// A bitmap's page has page k of the region in bit k%8 of byte k/8. What lies beyond the region is zero.

func putWords(b []byte, m []uint64) {
	clear(b)
	for w, x := range m {
		binary.LittleEndian.PutUint64(b[8*w:], x)
	}
}

func getWords(m []uint64, b []byte) {
	for w := range m {
		m[w] = binary.LittleEndian.Uint64(b[8*w:])
	}
}
