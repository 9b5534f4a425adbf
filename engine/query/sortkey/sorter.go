package sortkey

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/spill"
)

// MemoryMax is how many bytes a sort may hold unless it is told otherwise, MongoDB's default.
const MemoryMax = 100 << 20

// Item is a document in a Sorter: its key, the number that orders equal keys (its RecordID, or its turn in a pipeline), and its
// bytes.
type Item struct {
	Key []byte
	ID  uint64
	Doc bson.Raw
}

// SorterOptions bound a sort.
type SorterOptions struct {
	Keep   int64      // give back the first so many, with 0 all of them
	Memory int64      // bytes to hold at most; 0 is MemoryMax
	Disk   spill.Disk // takes sorted runs out of memory; nil: a sort that needs more memory is error 292
	// Tick is called now and then while runs are merged; an error ends the sort. It may be nil.
	Tick func() error
}

// Sorter holds documents and gives them back in order. First Add, then Sort once, then Next; Close at any time. It belongs to one
// goroutine.
//
// What does not fit the memory goes to the disk as sorted runs, which Next merges with each other and with what is in memory.
type Sorter struct {
	x      *Extractor // nil: keys come with AddKey
	keep   int
	memory int64
	disk   spill.Disk
	tick   func() error
	used   int64
	list   []entry // a heap with the last one on top once it is full, if keep > 0
	heap   bool
	store  store
	key    []byte
	levels [][]*run // what is on the disk
	merge  merger
	runs   int
	given  int64
	total  int64
}

// entry is an item: buf is the key and the document. head is the key's first bytes, which mostly decide.
type entry struct {
	head uint64
	id   uint64
	keyN int
	buf  []byte
}

// entrySize is about what an entry takes beside its bytes.
const entrySize = 64

func (e *entry) item() Item { return Item{e.buf[:e.keyN:e.keyN], e.id, bson.Raw(e.buf[e.keyN:])} }

func (e *entry) compare(head uint64, key []byte, id uint64) int {
	if c := cmp.Compare(e.head, head); c != 0 {
		return c
	}
	if c := bytes.Compare(e.buf[:e.keyN], key); c != 0 {
		return c
	}
	return cmp.Compare(e.id, id)
}

// head is the first eight bytes of a key, zeros behind its end: two keys never order otherwise than their heads.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// Sorter is a new Sorter in the order s.
func (s *Spec) Sorter(o SorterOptions) *Sorter {
	r := NewSorter(o)
	r.x = s.Extractor()
	return r
}

// NewSorter is a Sorter by keys that the caller has, for AddKey.
func NewSorter(o SorterOptions) *Sorter {
	r := &Sorter{memory: o.Memory, disk: o.Disk, tick: o.Tick}
	if o.Keep > 0 && o.Keep < 1<<31 {
		r.keep = int(o.Keep)
	}
	if r.memory == 0 {
		r.memory = MemoryMax
	}
	return r
}

// Add takes a document, whose bytes are copied if they are kept.
func (r *Sorter) Add(id uint64, doc bson.Raw) (err error) {
	if r.key, err = r.x.Append(r.key[:0], doc); err != nil {
		return err
	}
	return r.AddKey(r.key, id, doc)
}

// AddKey takes a document with its key, and copies both if they are kept.
func (r *Sorter) AddKey(key []byte, id uint64, doc bson.Raw) error {
	r.total++
	h := head(key)
	if r.keep == 0 || len(r.list) < r.keep {
		var buf []byte
		if n := len(key) + len(doc); r.keep == 0 {
			buf = r.store.take(n)
		} else {
			buf = make([]byte, 0, n) // will be written over
		}
		buf = append(append(buf, key...), doc...)
		r.list = append(r.list, entry{h, id, len(key), buf})
		r.used += int64(len(buf)) + entrySize
		return r.bound()
	}
	if !r.heap {
		r.heapify()
	}
	last := &r.list[0]
	if last.compare(h, key, id) <= 0 {
		return nil
	}
	old := int64(cap(last.buf))
	last.buf = append(append(last.buf[:0], key...), doc...)
	last.head, last.id, last.keyN = h, id, len(key)
	r.used += int64(cap(last.buf)) - old
	r.sink(0)
	return r.bound()
}

// bound sees to the memory.
func (r *Sorter) bound() error {
	if r.used <= r.memory {
		return nil
	}
	if r.disk == nil {
		return mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed.Errorf(
			"Sort exceeded memory limit of %d bytes, but did not opt in to external sorting.", r.memory)
	}
	r.order()
	w, err := newRun(r.disk)
	if err != nil {
		return err
	}
	r.runs++
	r.push(0, w)
	for i := range r.list {
		if err := w.append(r.list[i].item()); err != nil {
			return err
		}
	}
	clear(r.list)
	r.list, r.used, r.heap = r.list[:0], 0, false
	r.store.reset()
	return r.compact()
}

func (r *Sorter) order() {
	slices.SortFunc(r.list, func(a, b entry) int { return a.compare(b.head, b.buf[:b.keyN], b.id) })
}

// heapify makes a heap of the list, with the last item on top.
func (r *Sorter) heapify() {
	r.heap = true
	for i := len(r.list)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
}

func (r *Sorter) sink(i int) {
	after := func(a, b *entry) bool { return a.compare(b.head, b.buf[:b.keyN], b.id) > 0 }
	for {
		c := 2*i + 1
		if c >= len(r.list) {
			return
		}
		if c+1 < len(r.list) && after(&r.list[c+1], &r.list[c]) {
			c++
		}
		if !after(&r.list[c], &r.list[i]) {
			return
		}
		r.list[i], r.list[c] = r.list[c], r.list[i]
		i = c
	}
}

// Sort ends the adding.
func (r *Sorter) Sort() error {
	r.order()
	for _, level := range r.levels {
		for _, s := range level {
			if err := r.merge.add(s); err != nil {
				return err
			}
		}
	}
	return r.merge.add(&run{list: r.list})
}

// Next is the next document in order; it dies at the call after, or, if nothing was spilled, with Close. ok is false at the end.
func (r *Sorter) Next() (item Item, ok bool, err error) {
	if r.keep > 0 && r.given == int64(r.keep) {
		return Item{}, false, nil
	}
	item, ok, err = r.merge.next()
	if ok {
		r.given++
	}
	return item, ok, err
}

// Left is how many documents Next has still to give.
func (r *Sorter) Left() int64 {
	all := r.total
	if r.keep > 0 {
		all = min(all, int64(r.keep))
	}
	return all - r.given
}

// Count is how many documents were added.
func (r *Sorter) Count() int64 { return r.total }

// Spilled is how many runs have left the memory.
func (r *Sorter) Spilled() int { return r.runs }

// Close lets go of the runs.
func (r *Sorter) Close() error {
	var first error
	for _, level := range r.levels {
		if err := closeRuns(level); first == nil {
			first = err
		}
	}
	r.levels, r.merge, r.list, r.store = nil, merger{}, nil, store{}
	return first
}

// store is the memory of the documents: chunks that are filled one after the other, and used again after a spill.
type store struct {
	chunks [][]byte // of chunkMax bytes each, but for the first ones
	at     int      // the chunk that is being filled
}

const (
	chunkMin = 4 << 10
	chunkMax = 256 << 10
)

// take is an empty slice of capacity n. What is much larger than a chunk stands alone.
func (s *store) take(n int) []byte {
	if n > chunkMax/8 {
		return make([]byte, 0, n)
	}
	for ; s.at < len(s.chunks); s.at++ {
		if c := s.chunks[s.at]; cap(c)-len(c) >= n {
			s.chunks[s.at] = c[:len(c)+n]
			return c[len(c) : len(c) : len(c)+n]
		}
	}
	size := chunkMax
	if len(s.chunks) < 7 {
		size = max(chunkMin<<len(s.chunks), n)
	}
	s.chunks = append(s.chunks, make([]byte, n, size))
	return s.chunks[s.at][0:0:n]
}

func (s *store) reset() {
	for i, c := range s.chunks {
		s.chunks[i] = c[:0]
	}
	s.at = 0
}
