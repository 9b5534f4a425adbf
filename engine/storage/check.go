package storage

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/slab"
)

// Report is what a check found.
type Report struct {
	Faults []string // each names its place; empty if the database is sound

	Collections int
	Trees       int
	Keys        uint64
	Records     uint64
	RecordBytes uint64
	TreePages   uint64
	ExtentPages uint64
	LiveBytes   uint64 // in extents: records with their headers and padding
}

// faultsMax bounds a report: a database that is damaged all over needs no longer list.
const faultsMax = 1000

func (r *Report) fault(format string, args ...any) {
	if len(r.Faults) < faultsMax {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// CheckDir opens the database in dir, checks what its newest checkpoint published, then what recovery made of that and the
// log, and closes it. An error means that it could not be opened at all; that, too, is a fault of the database or of the disk.
func CheckDir(e *env.Env, dir string, o Options) (*Report, error) {
	o.Manual = true
	var published *Report
	s, err := open(e, dir, o, func(s *Store) { published = s.Check() })
	if err != nil {
		return nil, err
	}
	r := s.Check()
	for _, f := range published.Faults {
		r.fault("in the published checkpoint: %s", f)
	}
	return r, s.release()
}

// Check proves the invariants of the newest durable state: every page is reachable exactly once or free, trees are in order,
// every slot of a record table finds its record inside one of its collection's extents and no two records overlap, the counts
// of heads and extents are true. It terminates on any damage. No client may be writing, and no other snapshot be pinned, or
// pages that these hold are reported as leaked.
func (s *Store) Check() *Report {
	s.keeper.work.Lock()
	defer s.keeper.work.Unlock()
	s.checkpointer.mu.Lock()
	defer s.checkpointer.mu.Unlock()
	c := &checker{s: s, owners: make(map[page.ID]string), report: new(Report)}
	sn := s.Snapshot()
	defer sn.Release()
	if err := sn.Guard(func() error { c.run(sn); return nil }); err != nil {
		c.report.fault("%v", err)
	}
	return c.report
}

type checker struct {
	s       *Store
	report  *Report
	owners  map[page.ID]string
	extents map[CollID][]*extent
}

// claim says that the run is reachable from owner.
func (c *checker) claim(r page.Run, owner string) {
	for id := r.First; id < r.End(); id++ {
		if other, taken := c.owners[id]; taken {
			c.report.fault("page %d: reachable from %s and from %s", id, other, owner)
			return
		}
		c.owners[id] = owner
	}
}

func (c *checker) run(sn *Snapshot) {
	s, r := c.s, c.report
	c.tree("heads tree", s.checkpointer.trees.heads)
	c.tree("space tree", s.checkpointer.trees.space)
	if err := c.loadExtents(sn); err != nil {
		r.fault("%v", err)
		return
	}
	err := sn.heads.all(func(id CollID, h *head) error {
		c.collection(id, h)
		delete(c.extents, id)
		return nil
	})
	if err != nil {
		r.fault("%v", err)
	}
	for _, id := range slices.Sorted(maps.Keys(c.extents)) {
		r.fault("collection %d: has extents, but no head", id)
	}
	faults, _ := s.alloc.Audit(page.MapUsed, func(yield func(page.Run)) error {
		// order: the audit marks them in a bitmap
		for id := range c.owners {
			yield(page.Run{First: id, Count: 1})
		}
		return nil
	})
	for _, f := range faults {
		r.fault("%v", f)
	}
}

// tree checks one tree, and claims its pages.
func (c *checker) tree(name string, h btree.Head) {
	t := btree.Tree{Head: h, R: c.s}
	c.report.Trees++
	c.report.Keys += h.Entries
	c.report.TreePages += h.Pages
	if err := btree.Check(t); err != nil {
		c.report.fault("%s: %v", name, err)
	}
	c.pages(name, h)
}

func (c *checker) pages(name string, h btree.Head) {
	n := uint64(0)
	err := btree.Tree{Head: h, R: c.s}.Walk(func(ref page.Ref, _ uint8, _ bool) error {
		c.claim(page.Run{First: ref.ID(), Count: 1}, name)
		if n++; n > h.Pages {
			return fmt.Errorf("more than %d pages: %w", h.Pages, ErrCorrupt)
		}
		return nil
	})
	if err != nil {
		c.report.fault("%s: %v", name, err)
	}
}

// loadExtents finds the extents as of the snapshot: what the published space tree says, and the batches since.
func (c *checker) loadExtents(sn *Snapshot) error {
	c.extents = make(map[CollID][]*extent)
	it := btree.Tree{Head: c.s.checkpointer.trees.space, R: c.s}.Iter()
	for ok := it.Seek(nil); ok; ok = it.Next() {
		id, x, err := decodeExtent(it.Key(), it.Value())
		if err != nil {
			return err
		}
		c.extents[id] = append(c.extents[id], x)
	}
	if err := it.Err(); err != nil {
		return err
	}
	for _, f := range c.s.foldsUpTo(sn.num) {
		for _, change := range f.extents {
			xs := c.extents[change.coll]
			i := slices.IndexFunc(xs, func(x *extent) bool { return x.run == change.run && x.birth == change.birth })
			switch {
			case change.gone && i >= 0:
				xs = slices.Delete(xs, i, i+1)
			case i >= 0:
				xs[i].live += change.live
			case !change.gone:
				xs = append(xs, &extent{run: change.run, birth: change.birth, live: change.live})
			}
			if c.extents[change.coll] = xs; len(xs) == 0 {
				delete(c.extents, change.coll)
			}
		}
	}
	return nil
}

func decodeExtent(key, value []byte) (CollID, *extent, error) {
	var pages, birth, live uint64
	if len(key) != 12 || !uvarints(value, &pages, &birth, &live) || pages == 0 || pages > 1<<31 || live > pages*page.Size {
		return 0, nil, fmt.Errorf("space tree: key %x: %w", key, ErrCorrupt)
	}
	run := page.Run{First: page.ID(binary.BigEndian.Uint64(key[4:])), Count: uint32(pages)}
	return CollID(binary.BigEndian.Uint32(key)), &extent{run: run, birth: page.Gen(birth), live: int64(live)}, nil
}

func (c *checker) collection(id CollID, h *head) {
	r := c.report
	name := fmt.Sprintf("collection %d", id)
	for i, g := range h.garbage {
		c.pages(fmt.Sprintf("%s, dropped tree %d", name, i), g)
	}
	for _, t := range h.trees {
		tree := fmt.Sprintf("%s, tree %d", name, t.id)
		if h.dropped {
			c.pages(tree, t.Head)
		} else {
			c.tree(tree, t.Head)
		}
	}
	tablePages := uint64(0)
	err := h.table.Walk(c.s, func(ref page.Ref, _ int) error {
		c.claim(page.Run{First: ref.ID(), Count: 1}, name+", record table")
		if tablePages++; tablePages > h.table.Pages {
			return fmt.Errorf("more than %d pages: %w", h.table.Pages, ErrCorrupt)
		}
		return nil
	})
	if err != nil {
		r.fault("%s: record table: %v", name, err)
	} else if tablePages != h.table.Pages {
		r.fault("%s: record table: %d pages, but the head says %d", name, tablePages, h.table.Pages)
	}
	r.TreePages += tablePages

	extents := c.extents[id]
	slices.SortFunc(extents, func(a, b *extent) int { return int(int64(a.run.First) - int64(b.run.First)) })
	for _, x := range extents {
		c.claim(x.run, fmt.Sprintf("%s, extent at page %d", name, x.run.First))
		r.ExtentPages += uint64(x.run.Count)
		r.LiveBytes += uint64(x.live)
	}
	if h.dropped {
		return
	}
	r.Collections++
	c.records(id, name, h, &coll{extents: extents})
}

// records checks that the record table, the records and the extents' counts agree.
func (c *checker) records(id CollID, name string, h *head, in *coll) {
	type place struct {
		off, end int64
		id       uint64
	}
	r := c.report
	var places []place
	var count, bytes uint64
	live := make(map[*extent]int64)
	for it := h.table.Iter(c.s, 0, false); ; {
		if !it.Next() {
			if err := it.Err(); err != nil {
				r.fault("%s: record table: %v", name, err)
			}
			break
		}
		record, err := c.s.record(id, RecordID(it.ID()), it.Place())
		if err != nil {
			r.fault("%v", err)
			continue
		}
		if RecordID(it.ID()) > h.nextID {
			r.fault("%s: record %d, but the head says that %d was the last", name, it.ID(), h.nextID)
		}
		count++
		bytes += uint64(len(record))
		off := it.Place().Offset()
		end := off + int64(slab.Footprint(len(record)))
		x := in.extent(page.ID(off / page.Size))
		if x == nil || end > int64(x.run.End())*page.Size {
			r.fault("%s: record %d at offset %d lies in none of its extents", name, it.ID(), off)
			continue
		}
		live[x] += end - off
		places = append(places, place{off, end, it.ID()})
	}
	r.Records += count
	r.RecordBytes += bytes
	if count != h.count || bytes != h.bytes {
		r.fault("%s: %d records of %d bytes, but the head says %d of %d", name, count, bytes, h.count, h.bytes)
	}
	for _, x := range in.extents {
		if x.live != live[x] {
			r.fault("%s: extent at page %d: %d live bytes, but its count says %d", name, x.run.First, live[x], x.live)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return int(a.off - b.off) })
	for i := 1; i < len(places); i++ {
		if a, b := places[i-1], places[i]; a.end > b.off {
			r.fault("%s: records %d and %d overlap at offset %d", name, a.id, b.id, b.off)
		}
	}
}
