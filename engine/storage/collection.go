package storage

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/slab"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
)

// coll is what the process keeps of a collection beside its heads.
type coll struct {
	id   CollID
	lock env.Mutex // the writer lock; held around everything below that does not say otherwise

	head     atomic.Pointer[head] // changes under the gate; nil before it is installed and after it is cleared away
	appended bool                 // under the gate: touched since the last seal for a checkpoint
	last     *batch               // the last batch that changed it

	extents []*extent // at head, by first page
	buffer  *frame    // where records are appended: from some page on to the end of the open extent

	cleaning cleanPosition
	dead     atomic.Int64 // bytes of its extents that are not live
	cleaned  atomic.Bool  // there was nothing to clean, and nothing has died since
}

// extent is a run of pages that holds records of one collection.
type extent struct {
	run   page.Run
	birth page.Gen
	live  int64 // bytes of the records that head reaches, with their headers and padding
}

func newColl(e *env.Env, id CollID) *coll {
	c := &coll{id: id}
	c.lock.InitOrdered(e, env.RankCollection, "collection", uint64(id))
	return c
}

// extent finds the one that holds page id.
func (c *coll) extent(id page.ID) *extent {
	i, found := slices.BinarySearchFunc(c.extents, id, func(x *extent, id page.ID) int {
		switch {
		case x.run.End() <= id:
			return -1
		case x.run.First > id:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return c.extents[i]
}

func (c *coll) addExtent(x *extent) {
	i, _ := slices.BinarySearchFunc(c.extents, x, func(a, b *extent) int { return int(int64(a.run.First) - int64(b.run.First)) })
	c.extents = slices.Insert(c.extents, i, x)
}

func (c *coll) removeExtent(x *extent) {
	if i := slices.Index(c.extents, x); i >= 0 {
		c.extents = slices.Delete(c.extents, i, i+1)
	}
}

// Collection is one collection's state as of a snapshot or, inside Write, as the write has left it so far.
type Collection struct {
	s    *Store
	id   CollID
	head *head

	// In a Writer only:
	w       *Writer
	c       *coll
	base    *head // what head was taken from
	changed bool  // head is the Writer's own copy

	fresh  []*extent         // made by this write
	deltas map[*extent]int64 // live bytes gained and lost
	gone   []*extent         // given up by this write
	slack  []page.Run        // ends of extents that the next record did not fit into
	spans  []span            // bytes appended
	buffer *frame            // the coll's, or a fresh one

	cleaning cleanPosition // how far the cleaner has come
}

// span is a range of bytes of the data file that records were appended to, and where they are meanwhile.
type span struct {
	f        *frame
	from, to int64
}

func (c *Collection) ID() CollID { return c.id }

// Desc is the descriptor that the caller keeps with the collection, opaque here. Equal slices of one head are identical:
// &Desc()[0] may serve as the key of a cache as long as the cache keeps the slice.
func (c *Collection) Desc() []byte { return c.head.desc }

// Count is the number of records.
func (c *Collection) Count() uint64 { return c.head.count }

// Bytes is the sum of the records' sizes.
func (c *Collection) Bytes() uint64 { return c.head.bytes }

// Tree gives a tree to read. It is false if there is none of that number.
func (c *Collection) Tree(id TreeID) (btree.Tree, bool) {
	t := c.head.tree(id)
	if t == nil {
		return btree.Tree{}, false
	}
	return btree.Tree{Head: t.Head, R: c.s}, true
}

// Trees are the numbers of all trees, in order.
func (c *Collection) Trees() []TreeID {
	ids := make([]TreeID, len(c.head.trees))
	for i := range ids {
		ids[i] = c.head.trees[i].id
	}
	return ids
}

// edit makes the head the Writer's own.
func (c *Collection) edit() *head {
	if !c.changed {
		c.head, c.changed = c.head.clone(), true
		c.buffer = c.c.buffer
	}
	c.w.edits++
	return c.head
}

// The edits below are for collections that this Writer has locked. An error means that the write must be given up: return
// it from f.

// Drop removes the collection with all it holds. Its pages come back in steps, later.
func (c *Collection) Drop() error {
	h := c.edit()
	h.dropped = true
	h.desc, h.count, h.bytes = nil, 0, 0
	c.w.log = wal.AppendDropCollection(c.w.log, uint32(c.id))
	return nil
}

// SetDesc replaces the descriptor. The slice is kept.
func (c *Collection) SetDesc(desc []byte) error {
	c.edit().desc = desc
	c.w.log = wal.AppendSetDesc(c.w.log, uint32(c.id), desc)
	return nil
}

// CreateTree makes an empty tree.
func (c *Collection) CreateTree(id TreeID) error {
	h := c.edit()
	if h.tree(id) != nil {
		return fmt.Errorf("collection %d: tree %d exists already", c.id, id)
	}
	i := 0
	for i < len(h.trees) && h.trees[i].id < id {
		i++
	}
	h.trees = slices.Insert(h.trees, i, namedTree{id: id})
	c.w.log = wal.AppendCreateTree(c.w.log, uint32(c.id), uint32(id))
	return nil
}

// DropTree removes a tree. Its pages come back in steps, later.
func (c *Collection) DropTree(id TreeID) error {
	h := c.edit()
	t := h.tree(id)
	if t == nil {
		return c.noTree(id)
	}
	if t.Root != 0 {
		h.garbage = append(h.garbage, t.Head)
	}
	h.trees = slices.DeleteFunc(h.trees, func(t namedTree) bool { return t.id == id })
	c.w.log = wal.AppendDropTree(c.w.log, uint32(c.id), uint32(id))
	return nil
}

func (c *Collection) noTree(id TreeID) error {
	return fmt.Errorf("collection %d: no tree %d", c.id, id)
}

// Put sets the value of a key.
func (c *Collection) Put(t TreeID, key, value []byte) error {
	tree := c.edit().tree(t)
	if tree == nil {
		return c.noTree(t)
	}
	if _, err := c.s.o.Tree.Put(c.w, &tree.Head, key, value); err != nil {
		return err
	}
	c.w.log = wal.AppendTreePut(c.w.log, uint32(c.id), uint32(t), key, value)
	return nil
}

// Delete reports whether there was such a key.
func (c *Collection) Delete(t TreeID, key []byte) (bool, error) {
	tree := c.edit().tree(t)
	if tree == nil {
		return false, c.noTree(t)
	}
	found, err := c.s.o.Tree.Delete(c.w, &tree.Head, key)
	if err != nil || !found {
		return false, err
	}
	c.w.log = wal.AppendTreeDelete(c.w.log, uint32(c.id), uint32(t), key)
	return true, nil
}

// Record gives a record's bytes, or ErrNoRecord.
func (c *Collection) Record(id RecordID) ([]byte, error) {
	p, err := c.head.table.Get(c.s, uint64(id))
	if err != nil {
		return nil, err
	}
	if p == 0 {
		return nil, ErrNoRecord
	}
	if first := page.ID(p.Offset() / page.Size); !c.s.asked.has(first) {
		c.s.asked.set(first)
		size := slab.Footprint(int(c.head.bytes / max(c.head.count, 1))) // of most records
		c.s.prefetch(p.Offset(), int64(size))
	}
	return c.s.record(c.id, id, p)
}

// record reads a record where p says it is.
func (s *Store) record(coll CollID, id RecordID, p slab.Place) ([]byte, error) {
	off := p.Offset()
	if f := s.frames.get(page.ID(off / page.Size)); f != nil {
		return slab.Read(f.from(off), uint32(coll), uint64(id), p, false)
	}
	file := s.mapping.Bytes()
	if off >= int64(len(file)) {
		file = nil
	} else {
		file = file[off:]
	}
	return slab.Read(file, uint32(coll), uint64(id), p, true)
}

// Insert stores a new record and gives it its number.
func (c *Collection) Insert(record []byte) (RecordID, error) {
	id := c.edit().nextID + 1
	return id, c.put(id, record)
}

// Replace changes a record, which must exist.
func (c *Collection) Replace(id RecordID, record []byte) error {
	if err := c.forget(id); err != nil {
		return err
	}
	return c.put(id, record)
}

// Remove deletes a record, which must exist.
func (c *Collection) Remove(id RecordID) error {
	if err := c.forget(id); err != nil {
		return err
	}
	if err := c.head.table.Clear(c.w, uint64(id)); err != nil {
		return err
	}
	c.w.log = wal.AppendRecordDelete(c.w.log, uint32(c.id), uint64(id))
	return nil
}

// put writes a record under a number that is new, or has been forgotten.
func (c *Collection) put(id RecordID, record []byte) error {
	if len(record) > slab.SizeMax {
		return fmt.Errorf("collection %d: a record of %d bytes is too large", c.id, len(record))
	}
	h := c.edit()
	p, err := c.place(id, record)
	if err != nil {
		return err
	}
	if err := h.table.Set(c.w, uint64(id), p); err != nil {
		return err
	}
	h.nextID = max(h.nextID, id)
	h.count++
	h.bytes += uint64(len(record))
	c.w.log = wal.AppendRecordPut(c.w.log, uint32(c.id), uint64(id), record)
	return nil
}

// forget takes a record off the books; its slot still names it.
func (c *Collection) forget(id RecordID) error {
	h := c.edit()
	p, err := h.table.Get(c.w, uint64(id))
	if err != nil {
		return err
	}
	if p == 0 {
		return ErrNoRecord
	}
	old, err := c.s.record(c.id, id, p)
	if err != nil {
		return err
	}
	x, err := c.extentOf(p)
	if err != nil {
		return err
	}
	c.count(x, -int64(slab.Footprint(len(old))))
	h.count--
	h.bytes -= uint64(len(old))
	return nil
}

func (c *Collection) count(x *extent, delta int64) {
	if c.deltas == nil {
		c.deltas = make(map[*extent]int64)
	}
	c.deltas[x] += delta
}

func (c *Collection) extentOf(p slab.Place) (*extent, error) {
	id := page.ID(p.Offset() / page.Size)
	if x := c.c.extent(id); x != nil {
		return x, nil
	}
	for _, x := range c.fresh {
		if x.run.First <= id && id < x.run.End() {
			return x, nil
		}
	}
	return nil, fmt.Errorf("collection %d: a record at offset %d lies in none of its extents: %w", c.id, p.Offset(), ErrCorrupt)
}

const (
	extentPagesMin = 4   // 16 KiB
	extentPagesMax = 256 // 1 MiB
)

// place appends a record to the open extent, or to a new one if it does not fit. The bytes are beyond what any snapshot
// reaches, so nobody sees them before the write is installed, and a dropped write need not erase them.
func (c *Collection) place(id RecordID, record []byte) (slab.Place, error) {
	h := c.head
	size := slab.Footprint(len(record))
	if int64(h.open.fill)+int64(size) > int64(h.open.run.Count)*page.Size {
		if err := c.openExtent(size); err != nil {
			return 0, err
		}
	}
	off := int64(h.open.run.First)*page.Size + int64(h.open.fill)
	if c.buffer == nil || off < int64(c.buffer.first)*page.Size || off >= int64(c.buffer.first)*page.Size+int64(len(c.buffer.buf)) {
		// The open extent of a database that was opened again: only its empty pages are in memory.
		first := page.ID(off / page.Size)
		c.buffer = &frame{first: first, records: true, buf: make([]byte, int(h.open.run.End()-first)*page.Size)}
		c.s.frames.put(c.buffer)
	}
	p := slab.Write(c.buffer.from(off)[:size], uint32(c.id), uint64(id), off, record)
	h.open.fill += uint32(size)
	x, err := c.extentOf(p)
	if err != nil {
		return 0, err
	}
	c.count(x, int64(size))
	if n := len(c.spans); n > 0 && c.spans[n-1].f == c.buffer && c.spans[n-1].to == off {
		c.spans[n-1].to += int64(size)
	} else {
		c.spans = append(c.spans, span{c.buffer, off, off + int64(size)})
	}
	return p, nil
}

// openExtent takes a new extent for a record of size bytes. It is about a quarter of what the collection holds, within
// bounds, so that a small collection is not mostly open extent; its length is that of a whole number of such records, so that
// records of one size leave little over.
func (c *Collection) openExtent(size int) error {
	pages := uint32(min(max(c.head.bytes/4/page.Size, extentPagesMin), extentPagesMax))
	n := max(int(pages)*page.Size/size, 1)
	pages = uint32((n*size + page.Size - 1) / page.Size)
	run, ok := c.w.ticket.Run(pages)
	if !ok {
		c.w.short.runs = append(c.w.short.runs, pages)
		return errShort
	}
	c.w.took.runs = append(c.w.took.runs, pages)
	x := &extent{run: run, birth: c.w.gen}
	c.fresh = append(c.fresh, x)
	c.count(x, 0) // what a checkpoint is told of, though nothing be put into it yet
	if old := c.head.open; old.run.Count > 0 {
		empty := old.run.First + page.ID((old.fill+page.Size-1)/page.Size)
		c.slack = append(c.slack, page.Run{First: empty, Count: uint32(old.run.End() - empty)})
		// If it holds nothing any more, sealing it off is what frees it: see settle.
		if o, err := c.extentOf(slab.Place(uint64(old.run.First) * page.Size / slab.Align)); err == nil {
			c.count(o, 0)
		}
	}
	c.head.open = openExtent{run: run, birth: x.birth}
	c.buffer = &frame{first: run.First, records: true, buf: make([]byte, int(run.Count)*page.Size)}
	c.s.frames.put(c.buffer)
	return nil
}

// extentsChanged lists the extents whose live bytes the write changed, in the order of the file.
func (c *Collection) extentsChanged() []*extent {
	return slices.SortedFunc(maps.Keys(c.deltas), func(a, b *extent) int { return int(int64(a.run.First) - int64(b.run.First)) })
}

// settle finds the extents that the write has emptied. It is the last step before the write is installed.
func (c *Collection) settle() {
	for _, x := range c.extentsChanged() {
		d := c.deltas[x]
		if x.live+d == 0 && x.run != c.head.open.run {
			probe.ExtentEmptied.Hit()
			c.gone = append(c.gone, x)
		}
	}
	for _, x := range c.gone {
		c.w.retired = append(c.w.retired, retired{x.run, x.birth})
	}
}

// RecordIter is a position among the records of a collection.
//
//	it := c.Records(0, false)
//	for it.Next() { use(it.ID(), it.Bytes()) }
//	return it.Err()
type RecordIter struct {
	s      *Store
	coll   CollID
	it     slab.Iter
	record []byte
	err    error
}

// Records iterates in the order of RecordIDs, beginning at from (0: at the end that the direction starts from).
func (c *Collection) Records(from RecordID, reverse bool) *RecordIter {
	return &RecordIter{s: c.s, coll: c.id, it: c.head.table.Iter(c.s, uint64(from), reverse)}
}

// Next goes to the next record and reports whether there is one.
func (it *RecordIter) Next() bool {
	if it.err != nil || !it.it.Next() {
		return false
	}
	it.record, it.err = it.s.record(it.coll, it.ID(), it.it.Place())
	return it.err == nil
}

// ID is the record's number.
func (it *RecordIter) ID() RecordID { return RecordID(it.it.ID()) }

// Bytes is the record. It lives as long as the snapshot.
func (it *RecordIter) Bytes() []byte { return it.record }

// Err is the first error that was met.
func (it *RecordIter) Err() error {
	if it.err != nil {
		return it.err
	}
	return it.it.Err()
}
