package btree

import (
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Memory is a page.Editor without a file, for tests and measurements of what is built of pages. Writes come one after
// another, each between Begin and Commit or Rollback; a Snapshot reads what the last Commit left.
//
// It is strict about what an Editor's users must keep to, and panics when they do not: no page is read or retired after it was
// retired, none is retired twice, none read that no snapshot can reach, no reference outlives its page. Pages that
// nobody can reach are filled with 0xDD and used again. The two audits find what cannot be seen at once.
type Memory struct {
	frames  []*frame // by page.ID; nil for the meta pages
	free    []page.ID
	gen     page.Gen // of the write under way, or of the last one
	writing bool
	born    []page.ID // by the write under way
	retired []page.ID // not reclaimed yet; those of the write under way last
	before  int       // how many of them it found
	pins    []page.Gen
}

type frame struct {
	data    [page.Size]byte
	birth   page.Gen // 0: free
	retired page.Gen // 0: not yet
	sum     uint32   // of the content, once committed
}

// MemorySnapshot is a page.Reader of what a Commit left.
type MemorySnapshot struct {
	m   *Memory
	gen page.Gen
}

// NewMemory makes a Memory without pages.
func NewMemory() *Memory { return &Memory{frames: make([]*frame, 2), gen: 1 << page.GenCounterBits} }

// Begin begins a write.
func (m *Memory) Begin() {
	if m.writing {
		panic("btree: Memory: a write is under way")
	}
	m.writing = true
	m.gen++
	m.before = len(m.retired)
}

// Commit ends the write. The pages it made are immutable from now on.
func (m *Memory) Commit() {
	m.end()
	for _, id := range m.born {
		f := m.frames[id]
		f.sum = page.Checksum(f.data[:])
	}
	m.born = m.born[:0]
	m.reclaim()
}

// Rollback ends the write, and undoes it.
func (m *Memory) Rollback() {
	m.end()
	for _, id := range m.retired[m.before:] {
		m.frames[id].retired = 0
	}
	m.retired = m.retired[:m.before]
	for _, id := range m.born {
		m.release(id)
	}
	m.born = m.born[:0]
	m.reclaim()
}

func (m *Memory) end() {
	if !m.writing {
		panic("btree: Memory: no write is under way")
	}
	m.writing = false
}

// Snapshot pins what the last Commit left.
func (m *Memory) Snapshot() *MemorySnapshot {
	gen := m.gen
	if m.writing {
		gen--
	}
	m.pins = append(m.pins, gen)
	return &MemorySnapshot{m, gen}
}

// Release ends the pin.
func (s *MemorySnapshot) Release() {
	i := slices.Index(s.m.pins, s.gen)
	s.m.pins = slices.Delete(s.m.pins, i, i+1)
	if !s.m.writing {
		s.m.reclaim()
	}
}

func (s *MemorySnapshot) Page(ref page.Ref) ([]byte, error) {
	f, err := s.m.frame(ref)
	if err != nil {
		return nil, err
	}
	if f.birth > s.gen || f.retired != 0 && f.retired <= s.gen {
		panic(fmt.Sprintf("btree: Memory: page %v, born at %x, retired at %x, is read in snapshot %x", ref, f.birth, f.retired, s.gen))
	}
	return f.data[:], nil
}

// Page gives a page as the write under way sees it.
func (m *Memory) Page(ref page.Ref) ([]byte, error) {
	f, err := m.live(ref)
	if err != nil {
		return nil, err
	}
	return f.data[:], nil
}

func (m *Memory) New(t page.Type, level uint8) (page.Ref, []byte, error) {
	id, f := m.take()
	page.Init(f.data[:], t, level, id, m.gen)
	return page.MakeRef(id, m.gen), f.data[:], nil
}

func (m *Memory) Edit(ref page.Ref) (page.Ref, []byte, error) {
	f, err := m.live(ref)
	if err != nil {
		return 0, nil, err
	}
	if f.birth == m.gen && m.writing {
		return ref, f.data[:], nil
	}
	id, c := m.take()
	c.data = f.data
	page.Rebirth(c.data[:], id, m.gen)
	m.Retire(ref)
	return page.MakeRef(id, m.gen), c.data[:], nil
}

func (m *Memory) Retire(ref page.Ref) {
	f, err := m.live(ref)
	if err != nil {
		panic(err)
	}
	f.retired = m.gen
	m.retired = append(m.retired, ref.ID())
	if f.birth == m.gen {
		poison(f.data[:])
	}
}

func (m *Memory) Own(ref page.Ref) bool {
	f, err := m.live(ref)
	return err == nil && m.writing && f.birth == m.gen
}

// Pages is the number of pages that are not retired.
func (m *Memory) Pages() int { return len(m.frames) - 2 - len(m.free) - len(m.retired) }

// Audit checks that the trees are sound and that they reach every page exactly once.
func (m *Memory) Audit(heads ...Head) error {
	seen := make(map[page.ID]bool)
	for _, h := range heads {
		t := Tree{Head: h, R: m}
		if err := Check(t); err != nil {
			return err
		}
		err := t.Walk(func(ref page.Ref, level uint8, overflow bool) error {
			if seen[ref.ID()] {
				return fmt.Errorf("page %v is reached twice", ref)
			}
			seen[ref.ID()] = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(seen) != m.Pages() {
		return fmt.Errorf("%d pages are reached, %d are not retired", len(seen), m.Pages())
	}
	return nil
}

// AuditCommitted checks that no committed page has changed.
func (m *Memory) AuditCommitted() error {
	for id, f := range m.frames {
		if f != nil && f.birth != 0 && !(m.writing && f.birth == m.gen) && f.sum != page.Checksum(f.data[:]) {
			return fmt.Errorf("page %d was changed after it was committed", id)
		}
	}
	return nil
}

func (m *Memory) frame(ref page.Ref) (*frame, error) {
	id := ref.ID()
	if id < 2 || id >= page.ID(len(m.frames)) {
		return nil, corrupt(id, "does not exist")
	}
	f := m.frames[id]
	if !ref.Matches(f.birth) {
		panic(fmt.Sprintf("btree: Memory: reference %v to a page born at %x", ref, f.birth))
	}
	return f, nil
}

func (m *Memory) live(ref page.Ref) (*frame, error) {
	f, err := m.frame(ref)
	if err == nil && f.retired != 0 {
		panic(fmt.Sprintf("btree: Memory: page %v is used after it was retired", ref))
	}
	return f, err
}

func (m *Memory) take() (page.ID, *frame) {
	if !m.writing {
		panic("btree: Memory: no write is under way")
	}
	var id page.ID
	if k := len(m.free); k > 0 {
		id, m.free = m.free[k-1], m.free[:k-1]
		clear(m.frames[id].data[:])
	} else {
		id = page.ID(len(m.frames))
		m.frames = append(m.frames, new(frame))
	}
	f := m.frames[id]
	f.birth, f.retired = m.gen, 0
	m.born = append(m.born, id)
	return id, f
}

// reclaim frees the retired pages that no pin can reach.
func (m *Memory) reclaim() {
	m.retired = slices.DeleteFunc(m.retired, func(id page.ID) bool {
		f := m.frames[id]
		for _, pin := range m.pins {
			if f.birth <= pin && pin < f.retired {
				return false
			}
		}
		m.release(id)
		return true
	})
}

func (m *Memory) release(id page.ID) {
	f := m.frames[id]
	poison(f.data[:])
	f.birth, f.retired = 0, 0
	m.free = append(m.free, id)
}

func poison(b []byte) {
	for i := range b {
		b[i] = 0xDD
	}
}
