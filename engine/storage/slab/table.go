package slab

import (
	"encoding/binary"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// A table page (page.TypeTable) is the page header and slotsPerPage slots of 8 bytes. At level 0 a slot is a Place, above it
// is the page.Ref of a child; 0 is "nothing below". The two reserved bytes of the header count the slots that are not 0; a
// page whose count is 0 is not kept, so that a table whose old records are gone gives its old pages back.
const (
	slotsPerPage = (page.Size - page.HeaderSize) / 8
	usedOffset   = 6
	heightMax    = 8 // 509^8 exceeds every RecordID
)

// Table is what must be remembered of a record table. The zero Table is empty.
type Table struct {
	Root   page.Ref
	Height uint8
	Pages  uint64
}

func used(b []byte) int       { return int(binary.LittleEndian.Uint16(b[usedOffset:])) }
func setUsed(b []byte, n int) { binary.LittleEndian.PutUint16(b[usedOffset:], uint16(n)) }
func slot(b []byte, i int) uint64 {
	return binary.LittleEndian.Uint64(b[page.HeaderSize+8*i:])
}
func setSlot(b []byte, i int, v uint64) {
	old := slot(b, i)
	binary.LittleEndian.PutUint64(b[page.HeaderSize+8*i:], v)
	switch {
	case old == 0 && v != 0:
		setUsed(b, used(b)+1)
	case old != 0 && v == 0:
		setUsed(b, used(b)-1)
	}
}

// span is the number of ids below one slot of a page at level.
func span(level int) uint64 {
	n := uint64(1)
	for range level {
		n *= slotsPerPage
	}
	return n
}

// covers reports whether a table of that height has a slot for index (RecordID - 1).
func covers(height uint8, index uint64) bool {
	return height >= heightMax-1 || height > 0 && index < span(int(height))
}

func read(r page.Reader, ref page.Ref, level int) ([]byte, error) {
	b, err := r.Page(ref)
	if err != nil {
		return nil, err
	}
	if page.TypeOf(b) != page.TypeTable || int(page.LevelOf(b)) != level {
		return nil, fmt.Errorf("page %d: not a record table page of level %d: %w", ref.ID(), level, page.ErrCorrupt)
	}
	return b, nil
}

// Get gives the place of record id, or 0.
func (t *Table) Get(r page.Reader, id uint64) (Place, error) {
	index := id - 1
	if id == 0 || !covers(t.Height, index) {
		return 0, nil
	}
	ref := t.Root
	for level := int(t.Height) - 1; ; level-- {
		b, err := read(r, ref, level)
		if err != nil {
			return 0, err
		}
		s := span(level)
		v := slot(b, int(index/s%slotsPerPage))
		if v == 0 || level == 0 {
			return Place(v), nil
		}
		ref = page.Ref(v)
	}
}

// Set puts p, which is not 0, into the slot of record id.
func (t *Table) Set(e page.Editor, id uint64, p Place) error {
	index := id - 1
	if t.Height == 0 {
		// As high as it must be at once: a page below that holds nothing would never be emptied.
		for !covers(t.Height, index) {
			t.Height++
		}
		ref, _, err := e.New(page.TypeTable, t.Height-1)
		if err != nil {
			return err
		}
		t.Root, t.Pages = ref, 1
	}
	for !covers(t.Height, index) {
		ref, b, err := e.New(page.TypeTable, t.Height)
		if err != nil {
			return err
		}
		setSlot(b, 0, uint64(t.Root))
		t.Root, t.Height, t.Pages = ref, t.Height+1, t.Pages+1
	}
	root, err := t.set(e, t.Root, int(t.Height)-1, index, p)
	t.Root = root
	return err
}

func (t *Table) set(e page.Editor, ref page.Ref, level int, index uint64, p Place) (page.Ref, error) {
	if _, err := read(e, ref, level); err != nil {
		return 0, err
	}
	ref, b, err := e.Edit(ref)
	if err != nil {
		return 0, err
	}
	i := int(index / span(level) % slotsPerPage)
	if level == 0 {
		setSlot(b, i, uint64(p))
		return ref, nil
	}
	child := page.Ref(slot(b, i))
	if child == 0 {
		if child, _, err = e.New(page.TypeTable, uint8(level-1)); err != nil {
			return 0, err
		}
		t.Pages++
	}
	if child, err = t.set(e, child, level-1, index, p); err != nil {
		return 0, err
	}
	setSlot(b, i, uint64(child))
	return ref, nil
}

// Clear empties the slot of record id, which is filled. Pages that become empty are retired.
func (t *Table) Clear(e page.Editor, id uint64) error {
	if !covers(t.Height, id-1) {
		return fmt.Errorf("record %d: not in its table: %w", id, page.ErrCorrupt)
	}
	root, err := t.clear(e, t.Root, int(t.Height)-1, id-1)
	if err != nil {
		return err
	}
	if t.Root = root; root == 0 {
		*t = Table{}
	}
	return nil
}

func (t *Table) clear(e page.Editor, ref page.Ref, level int, index uint64) (page.Ref, error) {
	b, err := read(e, ref, level)
	if err != nil {
		return 0, err
	}
	i := int(index / span(level) % slotsPerPage)
	v := slot(b, i)
	if v == 0 {
		return 0, fmt.Errorf("record %d: not in its table: %w", index+1, page.ErrCorrupt)
	}
	if level > 0 {
		child, err := t.clear(e, page.Ref(v), level-1, index)
		if err != nil {
			return 0, err
		}
		v = uint64(child)
	} else {
		v = 0
	}
	if v == 0 && used(b) <= 1 {
		e.Retire(ref)
		t.Pages--
		return 0, nil
	}
	ref, b, err = e.Edit(ref)
	if err != nil {
		return 0, err
	}
	setSlot(b, i, v)
	return ref, nil
}

// Move copies the pages of which move says so to where the Editor makes pages now. It begins with those of record from, and ends when
// it has looked at or made about budget pages, those of level 0 counted only if they are moved; next is the record to go on
// from, 0 at the end.
func (t *Table) Move(e page.Editor, from uint64, budget int, move func(page.ID) bool) (next uint64, err error) {
	if from = max(from, 1); !covers(t.Height, from-1) {
		return 0, nil
	}
	m := mover{e: e, move: move, left: budget + int(t.Height)}
	root, err := m.page(t.Root, int(t.Height)-1, from-1, 0)
	t.Root = root
	return m.next, err
}

type mover struct {
	e    page.Editor
	move func(page.ID) bool
	left int
	next uint64 // where it stopped
}

// page moves what must be moved below ref, the page whose first slot is for index base, from index from on, and gives what stands
// in its place.
func (m *mover) page(ref page.Ref, level int, from, base uint64) (page.Ref, error) {
	moves := m.move(ref.ID())
	if level == 0 && !moves {
		return ref, nil
	}
	b, err := read(m.e, ref, level)
	if err != nil {
		return 0, err
	}
	m.left--
	if moves {
		if ref, b, err = m.e.Edit(ref); err != nil {
			return 0, err
		}
	}
	if level == 0 {
		return ref, nil
	}
	s := span(level)
	i := uint64(0)
	if from > base {
		i = (from - base) / s
	}
	for ; i < slotsPerPage && m.next == 0; i++ {
		child := page.Ref(slot(b, int(i)))
		if child == 0 {
			continue
		}
		if m.left <= 0 {
			m.next = base + i*s + 1
			break
		}
		moved, err := m.page(child, level-1, from, base+i*s)
		if err != nil {
			return 0, err
		}
		if moved != child {
			if ref, b, err = m.e.Edit(ref); err != nil {
				return 0, err
			}
			setSlot(b, int(i), uint64(moved))
		}
	}
	return ref, nil
}

// DropStep retires at least one and about pages pages from the table's end. It reports whether the table is empty then.
func (t *Table) DropStep(e page.Editor, pages int) (done bool, err error) {
	for n := 0; t.Root != 0; n++ {
		if n >= pages {
			return false, nil
		}
		root, err := t.dropLast(e, t.Root, int(t.Height)-1)
		if err != nil {
			return false, err
		}
		t.Root = root
	}
	*t = Table{}
	return true, nil
}

// dropLast retires the last page of level 0 below ref, and with it the pages that this empties.
func (t *Table) dropLast(e page.Editor, ref page.Ref, level int) (page.Ref, error) {
	if level == 0 {
		e.Retire(ref)
		t.Pages--
		return 0, nil
	}
	if _, err := read(e, ref, level); err != nil {
		return 0, err
	}
	ref, b, err := e.Edit(ref)
	if err != nil {
		return 0, err
	}
	for i := slotsPerPage - 1; i >= 0; i-- {
		v := slot(b, i)
		if v == 0 {
			continue
		}
		child, err := t.dropLast(e, page.Ref(v), level-1)
		if err != nil {
			return 0, err
		}
		setSlot(b, i, uint64(child))
		if child != 0 {
			return ref, nil
		}
		break
	}
	if used(b) > 0 {
		return ref, nil
	}
	e.Retire(ref)
	t.Pages--
	return 0, nil
}

// Walk visits the reference of every page, reading only those above level 0.
func (t *Table) Walk(r page.Reader, visit func(ref page.Ref, level int) error) error {
	if t.Root == 0 {
		return nil
	}
	return walk(r, t.Root, int(t.Height)-1, visit)
}

func walk(r page.Reader, ref page.Ref, level int, visit func(page.Ref, int) error) error {
	if err := visit(ref, level); err != nil || level == 0 {
		return err
	}
	b, err := read(r, ref, level)
	if err != nil {
		return err
	}
	for i := range slotsPerPage {
		if v := slot(b, i); v != 0 {
			if err := walk(r, page.Ref(v), level-1, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
