package query

import (
	"bytes"
	"container/heap"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// rows are the documents of a sort in memory. Rows that are equal stay in the order of their records, whatever scan
// found them, so that pages cut by skip and limit do not overlap.
type rows struct {
	pattern *SortX
	keep    int // 0: all
	memory  int // bytes; 0: no bound
	used    int
	list    []row
	at      int
	key     []byte
}

type row struct {
	key []byte // the sort key, then the document
	n   int    // of the sort key's bytes
	id  uint64
}

// rowSize is about what a row takes beside its bytes.
const rowSize = 48

func newRows(p *SortX, keep int64, memory int) *rows {
	r := &rows{pattern: p, memory: memory}
	if keep > 0 && keep < 1<<31 {
		r.keep = int(keep)
	}
	return r
}

func (a *row) compare(b *row) int {
	if c := bytes.Compare(a.key[:a.n], b.key[:b.n]); c != 0 {
		return c
	}
	switch {
	case a.id < b.id:
		return -1
	case a.id > b.id:
		return 1
	}
	return 0
}

// add takes a document; false if there is no room for it.
func (r *rows) add(id uint64, doc []byte) bool {
	r.key = r.pattern.Append(r.key[:0], doc)
	probe := row{key: r.key, n: len(r.key), id: id}
	full := r.keep > 0 && len(r.list) == r.keep
	if full && probe.compare(&r.list[0]) >= 0 {
		return true
	}
	probe.key = make([]byte, 0, len(r.key)+len(doc))
	probe.key = append(append(probe.key, r.key...), doc...)
	r.used += len(probe.key) + rowSize
	if full {
		r.used -= len(r.list[0].key) + rowSize
		r.list[0] = probe
		heap.Fix((*rowHeap)(r), 0)
	} else if r.keep > 0 {
		heap.Push((*rowHeap)(r), probe)
	} else {
		r.list = append(r.list, probe)
	}
	return r.memory == 0 || r.used <= r.memory
}

func (r *rows) sort() { slices.SortFunc(r.list, func(a, b row) int { return a.compare(&b) }) }

func (r *rows) next() (uint64, bson.Raw, bool) {
	if r.at == len(r.list) {
		return 0, nil, false
	}
	w := r.list[r.at]
	r.list[r.at] = row{}
	r.at++
	return w.id, bson.Raw(w.key[w.n:]), true
}

func (r *rows) left() int { return len(r.list) - r.at }

// rowHeap has the last row on top.
type rowHeap rows

func (h *rowHeap) Len() int           { return len(h.list) }
func (h *rowHeap) Less(i, j int) bool { return h.list[i].compare(&h.list[j]) > 0 }
func (h *rowHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *rowHeap) Push(x any)         { h.list = append(h.list, x.(row)) }
func (h *rowHeap) Pop() any {
	w := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return w
}
