package page

import (
	"errors"
	"fmt"
	"io"

	"github.com/multiforadb/multiforadb/engine/env"
)

// Allocator knows which page of the data file is free.
//
// A page is free if and only if nothing in memory holds it and neither durable meta page, nor the one that is being
// published, reaches it. The first is said by [Allocator.Reserve] and [Allocator.Free], the second by the bitmaps of those
// metas. So freeing is one call: a page that was never published is free at once, and one that was is free as soon as two
// more publishes have replaced both metas that reach it. And a crash frees by itself what had not been published.
//
// A page is taken for use by a [Ticket] only after storage was allocated for it. After an open, nothing is known of the
// storage under free pages, and it is allocated again.
//
// A publish is, in this order:
//
//	Stage …            the pages that the snapshot has gained and lost since the one before
//	WriteBitmaps       into the slots that neither durable meta uses; fills in the meta
//	sync the file      which makes the file's size durable as well
//	Meta.Write, sync
//	Published          or, if the meta was not begun to be written, Abandon
//
// There is one publish at a time; all other methods may be called meanwhile, by any goroutine.
type Allocator struct {
	geometry Geometry
	file     env.File

	mu      env.Mutex
	changed env.Cond // backing has become false
	backing bool     // a task is allocating storage, or gives it back: the only one that touches pages that are not backed
	regions []*region
	end     ID // of the file, as far as it is used
	sum     tally
	reserve int // backed free pages that only privileged tickets may take
	room    int // no region before it has room in a group

	holeless bool // the file system cannot make holes

	publishing       bool
	curDir, oldDir   []Slot // directory pages of the newest durable meta and of the other one
	nextDir          []Slot
	written, pending uint64 // generations of the last WriteBitmaps and of the publish under way
}

// Create makes the allocator of a new, empty file.
func Create(e *env.Env, f env.File, g Geometry) (*Allocator, error) {
	if err := g.valid(); err != nil {
		return nil, fmt.Errorf("data file: %w", err)
	}
	a := newAllocator(e, f, g)
	if err := f.Allocate(0, groupPages*Size); err != nil {
		return nil, fmt.Errorf("data file: %w", err)
	}
	a.setEnd(groupPages)
	a.setBacked(0)
	return a, nil
}

// Load makes the allocator of a file whose meta pages are c's; both are durable (see [Settle]). What Chosen reaches is in use.
func Load(e *env.Env, f env.File, c Choice) (*Allocator, error) {
	if c.Fallback == nil {
		panic("page: Load before Settle")
	}
	g, end := c.Chosen.Geometry, max(c.Chosen.HighWater, c.Fallback.HighWater)
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("data file: %w", err)
	}
	// Before any memory is taken: what a meta says of the size must be so.
	if size/Size < int64(end) {
		return nil, fmt.Errorf("data file: %d bytes long, the meta page counts on %d pages of %d: %w", size, end, Size, ErrCorrupt)
	}
	a := newAllocator(e, f, g)
	// What lies beyond both high-water marks is allocated anew when the file grows.
	a.setEnd(end)
	chosen, curDir, err := readSlots(f, &c.Chosen)
	if err != nil {
		return nil, err
	}
	fallback, oldDir, err := readSlots(f, c.Fallback)
	if err != nil {
		return nil, err
	}
	a.curDir, a.oldDir = curDir, oldDir
	for i, r := range a.regions {
		if r.curSlot, err = a.loadBitmap(r.cur, chosen, i, c.Chosen.HighWater); err != nil {
			return nil, err
		}
		if r.oldSlot, err = a.loadBitmap(r.old, fallback, i, c.Fallback.HighWater); err != nil {
			return nil, err
		}
		copy(r.used, r.cur)
		copy(r.next, r.cur)
		copy(r.backed, r.cur)
		r.moved = true
		r.recountAll()
		r.guessGroups()
	}
	a.written = c.Chosen.Generation
	return a, nil
}

func newAllocator(e *env.Env, f env.File, g Geometry) *Allocator {
	a := &Allocator{geometry: g, file: f}
	a.mu.Init(e, env.RankAlloc, "alloc")
	a.changed.Init(e, &a.mu, "alloc.changed")
	return a
}

// readSlots gives the slot of every region's bitmap as m knows it, and those of the directory pages if there are any.
func readSlots(f env.File, m *Meta) (bitmaps, dirs []Slot, err error) {
	d := m.Directory
	if len(d.Slots) == d.Regions && m.Geometry.dirPages(d.Regions) == 0 {
		return d.Slots, nil, nil
	}
	b := make([]byte, Size)
	for i, s := range d.Slots {
		name := fmt.Sprintf("directory page %d, slot %d", i, s.Number)
		if err := readChecked(f, m.Geometry.dirSlot(i, s.Number), s.CRC, name, b); err != nil {
			return nil, nil, err
		}
		n := min(int(m.Geometry.PerPage), d.Regions-len(bitmaps))
		for k := range n {
			slot := slotAt(b[k*slotSize:])
			if err := slot.check(s.Written); err != nil {
				return nil, nil, fmt.Errorf("%s: region %d: %w: %w", name, len(bitmaps), err, ErrCorrupt)
			}
			bitmaps = append(bitmaps, slot)
		}
	}
	return bitmaps, d.Slots, nil
}

// loadBitmap reads the bitmap of a region into m, in which the fixed pages are set.
func (a *Allocator) loadBitmap(m []uint64, slots []Slot, number int, highWater ID) (Slot, error) {
	if number >= len(slots) || slots[number].Number == 0 {
		return Slot{}, nil
	}
	slot, g := slots[number], a.geometry
	name := fmt.Sprintf("bitmap of region %d, slot %d", number, slot.Number)
	b := make([]byte, Size)
	if err := readChecked(a.file, g.bitmapSlot(number, slot.Number), slot.CRC, name, b); err != nil {
		return Slot{}, err
	}
	fixed := m[0]
	getWords(m, b)
	r := a.regions[number]
	if m[0]&fixed != fixed || !allZero(b[len(m)*8:]) || r.first+ID(r.top(m)) > highWater {
		return Slot{}, fmt.Errorf("%s: marks pages that cannot be marked: %w", name, ErrCorrupt)
	}
	return slot, nil
}

func readChecked(f env.File, id ID, crc uint32, name string, b []byte) error {
	if n, err := f.ReadAt(b, int64(id)*Size); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return fmt.Errorf("%s (page %d): %w", name, id, err)
	}
	if Checksum(b) != crc {
		return fmt.Errorf("%s (page %d): checksum mismatch: %w", name, id, ErrCorrupt)
	}
	return nil
}

// Free says that nothing live reaches the pages any more: no head, no snapshot, no ticket. It panics if one of them
// is free already.
func (a *Allocator) Free(run Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free(run)
}

// free is Free with the lock held.
func (a *Allocator) free(run Run) {
	r := a.region(run)
	r.spread(run, func(w int, mask uint64) {
		if bad := mask&^r.used[w] | mask&r.fixedIn(w); bad != 0 {
			panic(fmt.Sprintf("page %d: freed, but not in use", r.pageOf(w, bad)))
		}
		r.edit(r.used, w, 0, mask)
	})
	a.room = min(a.room, a.geometry.regionOf(run.First))
}

// Reached reports whether a durable meta page reaches a page of the run. Such a page must not be written.
func (a *Allocator) Reached(run Run) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	reached := false
	r := a.region(run)
	r.spread(run, func(w int, mask uint64) { reached = reached || mask&(r.cur[w]|r.old[w]) != 0 })
	return reached
}

// region is the region that the run lies in.
func (a *Allocator) region(run Run) *region {
	if run.Count == 0 || run.First >= a.end || run.End() > a.end ||
		a.geometry.regionOf(run.First) != a.geometry.regionOf(run.End()-1) {
		panic(fmt.Sprintf("page %d: a run of %d pages, in a file of %d", run.First, run.Count, a.end))
	}
	return a.regions[a.geometry.regionOf(run.First)]
}

// MaxRun is the longest run that can be allocated.
func (a *Allocator) MaxRun() uint32 {
	return a.geometry.RegionPages - uint32(a.geometry.fixedPages(1))
}

// SetReserve sets how many free pages that have storage are kept for privileged tickets.
func (a *Allocator) SetReserve(pages int) {
	a.mu.Lock()
	a.reserve = pages
	a.mu.Unlock()
}

// Stats counts pages.
type Stats struct {
	File     uint64 // that the file has, as far as it is used: the sum of Used, Pending and Free
	Used     uint64 // held in memory, the allocator's own included
	Pending  uint64 // reached by a meta page only: free after a publish or two
	Free     uint64
	Unbacked uint64 // free ones not known to have storage
	Holes    uint64 // free ones known to have none, since they were punched
	Reserve  uint64
	Regions  uint64
}

func (a *Allocator) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	used := a.sum.used
	for i := len(a.regions) - 1; i >= 0 && a.regions[i].limit == 0; i-- {
		used -= a.geometry.fixedPages(i) // beyond the end of the file
	}
	return Stats{
		File:     uint64(a.end),
		Used:     uint64(used),
		Pending:  uint64(a.sum.pending),
		Free:     uint64(a.sum.free),
		Unbacked: uint64(a.sum.free - a.sum.backed),
		Holes:    uint64(a.sum.free - a.sum.stored),
		Reserve:  uint64(a.reserve),
		Regions:  uint64(len(a.regions)),
	}
}

// Truncatable is the number of pages that the file must keep: all beyond it are free.
func (a *Allocator) Truncatable() ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.truncatable()
}

func (a *Allocator) truncatable() ID {
	for i := len(a.regions) - 1; i >= 0; i-- {
		r := a.regions[i]
		if top := r.top(r.used, r.cur, r.old, r.next); top > 0 {
			return r.first + ID(top)
		}
	}
	return ID(a.geometry.fixedPages(0))
}

// Trim cuts the free pages at the end off the file. Both meta pages must be durable: one that a power cut may still take
// back could count on pages that were cut off.
func (a *Allocator) Trim() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.startBacking()
	defer a.endBacking()
	end := a.truncatable()
	a.setEnd(end)
	a.mu.Unlock()
	size, err := a.file.Size()
	if err == nil && size > int64(end)*Size {
		err = a.file.Truncate(int64(end) * Size)
	}
	a.mu.Lock()
	if err != nil {
		return fmt.Errorf("data file: %w", err)
	}
	return nil
}

// startBacking waits until no other task changes what is backed.
func (a *Allocator) startBacking() {
	for a.backing {
		a.changed.Wait()
	}
	a.backing = true
}

func (a *Allocator) endBacking() {
	a.backing = false
	a.changed.Broadcast()
}

// setEnd moves the end of the file. Regions stay once they are there: their slots are known.
func (a *Allocator) setEnd(end ID) {
	old := a.end
	a.end = end
	for n := a.geometry.regionsFor(end); len(a.regions) < n; {
		a.regions = append(a.regions, newRegion(a.geometry, len(a.regions), 0, &a.sum))
	}
	if end == old {
		return
	}
	last := a.geometry.regionOf(max(end, old) - 1)
	for i := a.geometry.regionOf(min(end, old)); i <= last; i++ {
		a.regions[i].setLimit(int(min(max(end, a.regions[i].first)-a.regions[i].first, ID(a.geometry.RegionPages))))
	}
	a.room = min(a.room, a.geometry.regionOf(min(end, old)))
}

// setBacked says that the pages of the file's word, counted in groups from its start, have storage.
func (a *Allocator) setBacked(word ID) {
	r, w := a.word(word)
	r.setBacked(w)
	a.room = min(a.room, a.geometry.regionOf(r.first))
}

// word finds a group by its number in the file.
func (a *Allocator) word(word ID) (*region, int) {
	perRegion := ID(a.geometry.RegionPages / groupPages)
	return a.regions[word/perRegion], int(word % perRegion)
}
