package sortkey

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
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

// Spill takes sorted runs out of memory. Merging them is the Sorter's.
type Spill interface {
	// Write keeps the items that next gives until it says false. An item dies at the next call of next.
	Write(next func() (Item, bool)) (Run, error)
}

// Run gives back the items of one Spill.Write in the order they came.
type Run interface {
	// Next is the next item, which dies at the call after; ok is false at the end.
	Next() (item Item, ok bool, err error)
	// Close frees what the run holds. It may come before the end, and is called once.
	Close() error
}

// SorterOptions bound a sort.
type SorterOptions struct {
	Keep   int64 // give back the first so many, with 0 all of them
	Memory int64 // bytes to hold at most; 0 is MemoryMax
	Spill  Spill // nil: a sort that needs more memory is error 292
}

// Sorter holds documents and gives them back in order. First Add, then Sort once, then Next; Close at any time. It belongs to one
// goroutine.
type Sorter struct {
	x       *Extractor
	keep    int
	memory  int64
	spill   Spill
	used    int64
	list    []entry // a heap with the last one on top once it is full, if keep > 0
	heap    bool
	at      int
	key     []byte
	runs    []*source
	sources []*source
	given   int64
	total   int64
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
	r := &Sorter{x: s.Extractor(), memory: o.Memory, spill: o.Spill}
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
	r.total++
	h := head(r.key)
	if r.keep == 0 || len(r.list) < r.keep {
		buf := append(append(make([]byte, 0, len(r.key)+len(doc)), r.key...), doc...)
		r.list = append(r.list, entry{h, id, len(r.key), buf})
		r.used += int64(len(buf)) + entrySize
		return r.bound()
	}
	if !r.heap {
		r.heapify()
	}
	last := &r.list[0]
	if last.compare(h, r.key, id) <= 0 {
		return nil
	}
	old := int64(cap(last.buf))
	last.buf = append(append(last.buf[:0], r.key...), doc...)
	last.head, last.id, last.keyN = h, id, len(r.key)
	r.used += int64(cap(last.buf)) - old
	r.sink(0)
	return r.bound()
}

// bound sees to the memory.
func (r *Sorter) bound() error {
	if r.used <= r.memory {
		return nil
	}
	if r.spill == nil {
		return mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed.Errorf(
			"sort exceeded its memory limit of %d bytes, and was not allowed to use the disk (allowDiskUse)", r.memory)
	}
	r.order()
	i := 0
	run, err := r.spill.Write(func() (Item, bool) {
		if i == len(r.list) {
			return Item{}, false
		}
		i++
		return r.list[i-1].item(), true
	})
	if err != nil {
		return err
	}
	r.runs = append(r.runs, &source{run: run})
	clear(r.list)
	r.list, r.used, r.heap = r.list[:0], 0, false
	return nil
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
	for _, s := range r.runs {
		if ok, err := s.next(); err != nil {
			return err
		} else if ok {
			r.sources = append(r.sources, s)
		}
	}
	return nil
}

// Next is the next document in order; it dies at the call after. ok is false at the end.
func (r *Sorter) Next() (item Item, ok bool, err error) {
	if r.keep > 0 && r.given == int64(r.keep) {
		return Item{}, false, nil
	}
	best := -1
	if r.at < len(r.list) {
		item, ok = r.list[r.at].item(), true
	}
	for i, s := range r.sources {
		if !s.fresh {
			more, err := s.next()
			if err != nil {
				return Item{}, false, err
			}
			if !more {
				continue
			}
		}
		if !ok || before(&s.item, &item) {
			item, ok, best = s.item, true, i
		}
	}
	switch {
	case !ok:
		return Item{}, false, nil
	case best < 0:
		r.list[r.at].buf = nil // the item holds it as long as it lives
		r.at++
	default:
		r.sources[best].fresh = false
	}
	r.given++
	return item, true, nil
}

func before(a, b *Item) bool {
	c := bytes.Compare(a.Key, b.Key)
	return c < 0 || c == 0 && a.ID < b.ID
}

// Left is how many documents Next has still to give.
func (r *Sorter) Left() int64 {
	all := r.total
	if r.keep > 0 {
		all = min(all, int64(r.keep))
	}
	return all - r.given
}

// Spilled is how many runs have left the memory.
func (r *Sorter) Spilled() int { return len(r.runs) }

// Close lets go of the runs.
func (r *Sorter) Close() error {
	var first error
	for _, s := range r.runs {
		if err := s.run.Close(); first == nil {
			first = err
		}
	}
	r.runs, r.sources, r.list = nil, nil, nil
	return first
}

// source is a run being merged. item is its next item if fresh.
type source struct {
	run   Run
	item  Item
	fresh bool
	ended bool
}

func (s *source) next() (bool, error) {
	if s.ended {
		return false, nil
	}
	item, ok, err := s.run.Next()
	s.item, s.fresh, s.ended = item, ok, !ok
	return ok, err
}
