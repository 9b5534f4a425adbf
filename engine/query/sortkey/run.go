package sortkey

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/spill"
)

// fanIn is how many runs are merged into a longer one, so that a sort of any size reads from few files at a time.
const fanIn = 32

// tickEvery is how many items are merged between two calls of SorterOptions.Tick.
const tickEvery = 256

// run is sorted items: in memory, or on the disk as records of
//
//	0      8      16    16+keySize
//	┌──────┬──────┬─────┬──────────┐
//	│ key  │ id   │ key │ document │   little endian
//	│ Size │      │     │          │
//	└──────┴──────┴─────┴──────────┘
//
// A record is valid if and only if keySize is within it.
type run struct {
	list   []entry
	log    *spill.Log
	reader *spill.Reader
	head   uint64 // of item, which is the next one
	item   Item
	buf    [runHeader]byte
}

const runHeader = 16

func newRun(d spill.Disk) (*run, error) {
	l, err := spill.Create(d)
	return &run{log: l}, err
}

func (s *run) append(i Item) error {
	binary.LittleEndian.PutUint64(s.buf[:], uint64(len(i.Key)))
	binary.LittleEndian.PutUint64(s.buf[8:], i.ID)
	_, err := s.log.Append(s.buf[:], i.Key, i.Doc)
	return err
}

// advance moves to the next item. The one before dies.
func (s *run) advance() (ok bool, err error) {
	if s.log == nil {
		if len(s.list) == 0 {
			return false, nil
		}
		s.head, s.item = s.list[0].head, s.list[0].item()
		s.list = s.list[1:]
		return true, nil
	}
	if s.reader == nil {
		if s.reader, err = s.log.Reader(); err != nil {
			return false, err
		}
	}
	b, err := s.reader.Next()
	if err != nil || b == nil {
		return false, err
	}
	k := runHeader + int(binary.LittleEndian.Uint64(b))
	s.item = Item{Key: b[runHeader:k:k], ID: binary.LittleEndian.Uint64(b[8:]), Doc: bson.Raw(b[k:])}
	s.head = head(s.item.Key)
	return true, nil
}

func (s *run) before(t *run) bool {
	if s.head != t.head {
		return s.head < t.head
	}
	c := bytes.Compare(s.item.Key, t.item.Key)
	return c < 0 || c == 0 && s.item.ID < t.item.ID
}

func closeRuns(list []*run) error {
	var first error
	for _, s := range list {
		if err := s.log.Close(); first == nil {
			first = err
		}
	}
	return first
}

// push puts a run on a level: level n has runs that were merged n times.
func (r *Sorter) push(n int, s *run) {
	for len(r.levels) <= n {
		r.levels = append(r.levels, nil)
	}
	r.levels[n] = append(r.levels[n], s)
}

// compact merges the runs of the levels that are full.
func (r *Sorter) compact() error {
	for n := 0; n < len(r.levels) && len(r.levels[n]) == fanIn; n++ {
		w, err := newRun(r.disk)
		if err != nil {
			return err
		}
		full := r.levels[n]
		r.levels[n] = nil
		r.push(n+1, w)
		err = concat(w, full, r.tick)
		if e := closeRuns(full); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func concat(w *run, runs []*run, tick func() error) error {
	var m merger
	for _, s := range runs {
		if err := m.add(s); err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		if n%tickEvery == 0 && tick != nil {
			if err := tick(); err != nil {
				return err
			}
		}
		item, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		if err := w.append(item); err != nil {
			return err
		}
	}
}

// merger gives the items of several runs in order.
type merger struct {
	heap []*run // with the one whose item is next on top
	used bool   // the top's item was given
}

// add puts a run under the merger, before the first next.
func (m *merger) add(s *run) error {
	ok, err := s.advance()
	if err != nil || !ok {
		return err
	}
	m.heap = append(m.heap, s)
	for i := len(m.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.heap[i].before(m.heap[up]) {
			break
		}
		m.heap[i], m.heap[up] = m.heap[up], m.heap[i]
		i = up
	}
	return nil
}

func (m *merger) next() (Item, bool, error) {
	if m.used {
		m.used = false
		ok, err := m.heap[0].advance()
		if err != nil {
			return Item{}, false, err
		}
		if !ok {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		}
		m.sink()
	}
	if len(m.heap) == 0 {
		return Item{}, false, nil
	}
	m.used = true
	return m.heap[0].item, true, nil
}

func (m *merger) sink() {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(m.heap) {
			return
		}
		if c+1 < len(m.heap) && m.heap[c+1].before(m.heap[c]) {
			c++
		}
		if !m.heap[c].before(m.heap[i]) {
			return
		}
		m.heap[i], m.heap[c] = m.heap[c], m.heap[i]
		i = c
	}
}
