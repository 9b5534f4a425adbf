package btree

import (
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// edit is one change of a tree under way: the editor, the head as it changes, and the pages from the root to the leaf.
type edit struct {
	e       page.Editor
	h       *Head
	entries int // most cells of a page
	path    [heightMax]step
}

// step is a page on the path, and the child (in a leaf: the cell) that the path goes on with.
type step struct {
	n   *node
	ref page.Ref
	idx int
}

// runMin is the length below which no run of insertions governs where a page is split.
const runMin = 3

// Put sets the value of key, and reports whether there was one. Neither slice is kept. After an error the write must be
// dropped: h and the pages may be in any state.
func (c Config) Put(e page.Editor, h *Head, key, value []byte) (replaced bool, err error) {
	ed := edit{e: e, h: h, entries: c.max()}
	it, err := ed.item(key, value)
	if err != nil {
		return false, err
	}
	var buf [entryMax]byte
	it = it.flatten(buf[:0]) // value may alias a page that is going to be edited
	if h.Root == 0 {
		return false, ed.plant(&it)
	}
	found, err := ed.descend(key, true)
	if err != nil {
		return false, err
	}
	if !found {
		h.Entries++
		return false, ed.add(0, ed.path[0].idx, &it)
	}
	return true, ed.replace(&it)
}

// item makes the item for an entry, and the overflow pages that it needs.
func (ed *edit) item(key, value []byte) (item, error) {
	if err := checkSizes(len(key), len(value)); err != nil {
		return item{}, err
	}
	it := item{suffix: key, value: value}
	var keyRest, valueRest []byte
	if len(key) > keyMax {
		it.suffix, keyRest = key[:keyInline], key[keyInline:]
	}
	if len(it.suffix)+len(value) > entryMax {
		it.value, valueRest = nil, value
	}
	it.keyRest, it.valueRest = uint32(len(keyRest)), uint32(len(valueRest))
	var err error
	it.chain, err = ed.writeChain(keyRest, valueRest)
	return it, err
}

// separator makes the item for a separator and the child behind it.
func (ed *edit) separator(key []byte, child page.Ref) (item, error) {
	probe.SeparatorOverflow.HitIf(len(key) > keyMax)
	return ed.item(key, le.AppendUint64(nil, uint64(child)))
}

func (ed *edit) newNode(t page.Type, level int) (page.Ref, *node, error) {
	ref, b, err := ed.e.New(t, uint8(level))
	if err != nil {
		return 0, nil, err
	}
	ed.h.Pages++
	n := (*node)(b)
	n.put16(heapAt, page.Size)
	return ref, n, nil
}

func (ed *edit) retire(ref page.Ref) {
	ed.e.Retire(ref)
	ed.h.Pages--
}

// plant makes the first page of a tree.
func (ed *edit) plant(it *item) error {
	ref, n, err := ed.newNode(page.TypeLeaf, 0)
	if err != nil {
		return err
	}
	ed.h.Root, ed.h.Height, ed.h.Entries = ref, 1, ed.h.Entries+1
	s := single(it)
	return s.write(n, 0, 1)
}

// descend sets the path to where key is or belongs, and reports whether it is there. With change, all pages of the path are
// made changeable.
func (ed *edit) descend(key []byte, change bool) (found bool, err error) {
	if ed.h.Height == 0 || ed.h.Height > heightMax {
		return false, corrupt(ed.h.Root.ID(), fmt.Sprintf("is the root of a tree with %d levels", ed.h.Height))
	}
	ref := ed.h.Root
	for level := int(ed.h.Height) - 1; ; level-- {
		st := &ed.path[level]
		st.ref = ref
		if change {
			err = ed.own(level)
		} else {
			st.n, err = load(ed.e, ref, level)
		}
		if err != nil {
			return false, err
		}
		pos, equal, err := st.n.search(ed.e, key)
		if err != nil {
			return false, err
		}
		if level == 0 {
			st.idx = pos
			return equal, nil
		}
		if equal {
			pos++
		}
		st.idx = pos
		if ref, err = st.n.child(pos); err != nil {
			return false, err
		}
	}
}

// own makes the path's page at level changeable; those above are.
func (ed *edit) own(level int) error {
	st := &ed.path[level]
	if st.ref.ID() == 0 {
		return corrupt(0, "is referred to as a page of a tree")
	}
	ref, b, err := ed.e.Edit(st.ref)
	if err != nil {
		return err
	}
	if st.n, err = sound(b, ref, level); err != nil || ref == st.ref {
		return err
	}
	st.ref = ref
	if level == int(ed.h.Height)-1 {
		ed.h.Root = ref
		return nil
	}
	parent := &ed.path[level+1]
	return parent.n.setChild(parent.idx, ref)
}

// replace gives the leaf's cell that the path leads to another value.
func (ed *edit) replace(it *item) error {
	n, i := ed.path[0].n, ed.path[0].idx
	old, err := n.item(i)
	if err != nil {
		return err
	}
	if _, err := ed.retireChain(&old); err != nil {
		return err
	}
	sizeOld, size := old.size(n.prefixLen()), it.size(n.prefixLen())
	if size <= sizeOld {
		n.overwrite(i, it, size, sizeOld)
		return nil
	}
	n.remove(i, sizeOld)
	return ed.add(0, i, it)
}

// add inserts a flat item before cell pos of the path's page at level, and splits pages from there upwards as it must.
func (ed *edit) add(level, pos int, it *item) error {
	for {
		n := ed.path[level].n
		ok, err := place(n, pos, it, ed.entries)
		if err != nil || ok {
			return err
		}
		up, err := ed.split(level, pos, it)
		if err != nil {
			return err
		}
		if level+1 == int(ed.h.Height) {
			return ed.grow(&up)
		}
		level++
		pos, it = ed.path[level].idx, &up
	}
}

// place inserts a flat item before cell pos, repacking the page if that makes room; else it reports false.
func place(n *node, pos int, it *item, entries int) (bool, error) {
	count := n.count()
	if count >= entries {
		return false, nil
	}
	if count > 0 && it.hasPrefix(n.prefix()) {
		if size := it.size(n.prefixLen()); n.free() >= size+slotSize {
			n.insert(pos, it, size)
			return true, nil
		}
	}
	return repack(n, pos, it)
}

// repack writes the page anew, with the item before cell pos, if all that fits.
func repack(n *node, pos int, it *item) (bool, error) {
	old := *n
	s := splice(&old, pos, pos, it)
	size, err := s.size(n.base(), 0, s.len)
	if err != nil || size > page.Size {
		return false, err
	}
	if err := s.write(n, 0, s.len); err != nil {
		return false, err
	}
	n.setRun(int(le.Uint16(old[runPosAt:])), old.run())
	n.noteRun(pos)
	return true, nil
}

// split moves a part of the path's page at level to a new one, with the item in one of them, and gives the separator for
// the new page.
func (ed *edit) split(level, pos int, it *item) (up item, err error) {
	probe.SplitDepth3.HitIf(level >= 2)
	n := ed.path[level].n
	old := *n
	s := splice(&old, pos, pos, it)
	cut, err := s.cut(n.base(), ed.entries, ed.wishes(level, pos, s.len))
	if err != nil {
		return item{}, err
	}
	t, skip := page.TypeLeaf, 0
	if level > 0 {
		t, skip = page.TypeBranch, 1
	}
	ref, right, err := ed.newNode(t, level)
	if err != nil {
		return item{}, err
	}
	if level > 0 {
		up, err = s.rise(right, cut, ref)
	} else {
		var key []byte
		if key, err = s.separator(ed.e, cut); err == nil {
			up, err = ed.separator(key, ref)
		}
	}
	if err != nil {
		return item{}, err
	}
	if err := s.write(n, 0, cut); err != nil {
		return item{}, err
	}
	if err := s.write(right, cut+skip, s.len); err != nil {
		return item{}, err
	}
	// The page that the run goes on in must know of it.
	n.setRun(int(le.Uint16(old[runPosAt:])), old.run())
	n.noteRun(pos)
	if run := n.run(); pos >= cut+skip {
		right.setRun(pos-cut-skip, run)
		n.setRun(0, 0)
	}
	return up, nil
}

// rise makes the child of the item at the cut the first of the branch right, whose reference is ref, and gives the item
// that goes up in its place. Its bytes are its own.
func (s *seq) rise(right *node, cut int, ref page.Ref) (up item, err error) {
	mid, err := s.at(cut)
	if err != nil {
		return item{}, err
	}
	right.setFirst(mid.child())
	mid.value = le.AppendUint64(nil, uint64(ref))
	return mid.flatten(nil), nil
}

// wishes says where the page at level should be cut, if not in the middle, when it is split for a new item at pos of m: the
// first of the two that leaves halves which fit; negative is none.
//
// A run of insertions that has filled a good part of the page governs it. At the page's end, the left page keeps all before
// the item: it is full, and nothing more would ever go there. In the middle, the run first parts from what lies
// beyond it; from then on it is at an end. Descending runs are the mirror image.
//
// At the right edge of the tree, insertions near the end that make no run are taken for a load that ascends with some
// disorder (several clients, clocks): the cut leaves room for stragglers in the right page, whereas those that met a full left page
// would split it again in the middle. The left edge is the mirror image.
func (ed *edit) wishes(level, pos, m int) [2]int {
	n := ed.path[level].n
	last, run := int(le.Uint16(n[runPosAt:])), n.run()
	before, behind := pos, pos+1 // cuts that make the item the first of the right page, the last of the left
	if level > 0 {
		before = max(pos-1, 1)
	}
	long := max(m/4, runMin)
	if run >= long && pos == last+1 {
		probe.SplitInRun.Hit()
		if pos == m-1 {
			return [2]int{before, -1}
		}
		return [2]int{behind, before}
	}
	if run <= -long && pos == last {
		if pos == 0 {
			return [2]int{behind, -1}
		}
		return [2]int{before, behind}
	}
	leftEdge, rightEdge := true, true
	for i := level + 1; i < int(ed.h.Height); i++ {
		leftEdge = leftEdge && ed.path[i].idx == 0
		rightEdge = rightEdge && ed.path[i].idx == ed.path[i].n.count()
	}
	switch {
	case rightEdge && pos >= m-1-m/8:
		return [2]int{min(before, m-1-m/16), -1}
	case leftEdge && pos <= m/8:
		return [2]int{max(behind, 1+m/16), -1}
	}
	return [2]int{-1, -1}
}

// grow puts a new root above the old one and the page that up leads to.
func (ed *edit) grow(up *item) error {
	if ed.h.Height >= heightMax {
		return fmt.Errorf("btree: the tree would have more than %d levels", heightMax)
	}
	ref, n, err := ed.newNode(page.TypeBranch, int(ed.h.Height))
	if err != nil {
		return err
	}
	n.setFirst(ed.h.Root)
	s := single(up)
	if err := s.write(n, 0, 1); err != nil {
		return err
	}
	ed.h.Root = ref
	ed.h.Height++
	probe.RootRaised.HitIf(ed.h.Height > 2)
	return nil
}
