package btree

import (
	"sort"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Tidy makes a tree that has lost much smaller, and moves pages: a leaf that is not nearly full takes what it can from the next one,
// until nothing is left of that, and every page of which move says so is copied to where the Editor makes pages now. It begins with the leaf of the key from, and
// ends when it has looked at or made about budget pages; next is the key to go on from, nil when the whole tree was seen. A
// tree that may be edited between two calls is tidied as well as it then can be. After an error the write must be dropped.
func (c Config) Tidy(e page.Editor, h *Head, from []byte, budget int, move func(page.ID) bool) (next []byte, err error) {
	t := tidier{edit: edit{e: e, h: h, entries: c.max()}, move: move}
	for next = append([]byte{}, from...); h.Root != 0; {
		if _, err := t.descend(next, false); err != nil {
			return nil, err
		}
		again, err := t.leaf()
		if err != nil {
			return nil, err
		}
		if !again {
			if next, err = t.behind(); err != nil || next == nil {
				return nil, err
			}
		}
		if t.pages++; t.pages >= budget {
			return next, nil
		}
	}
	return nil, nil
}

type tidier struct {
	edit
	move  func(page.ID) bool
	pages int // looked at, and made
}

// leaf moves what must be moved of the path, and fills its leaf from the next one under the same branch. It is to be called again if
// that one was used up, and another stands in its place.
func (t *tidier) leaf() (again bool, err error) {
	cut, all, err := t.take()
	if err != nil {
		return false, err
	}
	if cut == 0 {
		if moves, err := t.moves(); err != nil || !moves {
			return false, err
		}
	}
	if err := t.ownPath(); err != nil {
		return false, err
	}
	t.pages += int(t.h.Height)
	if cut > 0 {
		p, err := t.pair(0, t.path[1].idx+1)
		switch {
		case err != nil:
			return false, err
		case all:
			if err := t.merge(p); err != nil {
				return false, err
			}
			return true, t.shrink(1)
		}
		if err := t.divide(p, cut); err != nil {
			return false, err
		}
	}
	for level := range int(t.h.Height) {
		if err := t.moveChains(t.path[level].n); err != nil {
			return false, err
		}
	}
	return false, nil
}

// tidyMin is how full a leaf is that takes nothing from the next one, if it cannot take all.
const tidyMin = page.Size * 3 / 4

// take looks how many of the entries of the leaf and the next one under the same branch fit into one page: 0 if it is not worth
// it, or not more than the leaf has.
func (t *tidier) take() (cut int, all bool, err error) {
	if t.h.Height == 1 || t.path[1].idx == t.path[1].n.count() {
		return 0, false, nil
	}
	p, err := t.pair(0, t.path[1].idx+1)
	if err != nil {
		return 0, false, err
	}
	fits := func(n int) bool {
		if n > t.entries || err != nil {
			return false
		}
		var size int
		size, err = p.seq.size(p.left.base(), 0, n)
		return size <= mergeMax
	}
	if fits(p.seq.len) {
		return p.seq.len, true, err
	}
	if p.left.live() >= tidyMin || p.left.count() >= t.entries/4*3 {
		return 0, false, err
	}
	cut = p.left.count()
	more := sort.Search(p.seq.len-cut-1, func(n int) bool { return !fits(cut + n + 1) })
	if more == 0 || err != nil {
		return 0, false, err
	}
	return cut + more, false, nil
}

// moves reports whether a page of the path, or an overflow page that one of them refers to, is to be moved.
func (t *tidier) moves() (bool, error) {
	for level := range int(t.h.Height) {
		st := &t.path[level]
		if t.move(st.ref.ID()) {
			return true, nil
		}
		for i := 0; t.h.Overflow > 0 && i < st.n.count(); i++ {
			it, err := st.n.item(i)
			if err != nil {
				return false, err
			}
			if moves, err := t.chainMoves(&it); err != nil || moves {
				return moves, err
			}
		}
	}
	return false, nil
}

// chainMoves reports whether one of the item's overflow pages is to be moved.
func (t *tidier) chainMoves(it *item) (bool, error) {
	if !it.over() {
		return false, nil
	}
	for c := it.openChain(t.e); c.rest > 0; {
		_, ref, err := c.page()
		if err != nil || t.move(ref.ID()) {
			return err == nil, err
		}
	}
	return false, nil
}

// moveChains writes those overflow pages of a page's cells anew of which one must be moved.
func (t *tidier) moveChains(n *node) error {
	for i := 0; t.h.Overflow > 0 && i < n.count(); i++ {
		it, err := n.item(i)
		if err != nil {
			return err
		}
		moves, err := t.chainMoves(&it)
		if err != nil {
			return err
		}
		if !moves {
			continue
		}
		rest, err := it.openChain(t.e).read(nil, 0, int(it.keyRest)+int(it.valueRest))
		if err != nil {
			return err
		}
		pages, err := t.retireChain(&it)
		if err != nil {
			return err
		}
		t.pages += pages
		var buf [entryMax]byte
		flat := it.flatten(buf[:0]) // the cell is about to be written over
		if flat.chain, err = t.writeChain(rest, nil); err != nil {
			return err
		}
		size := it.size(n.prefixLen())
		n.overwrite(i, &flat, size, size)
	}
	return nil
}

// behind is the separator behind the path's leaf, in memory of its own; nil if the leaf is the last.
func (t *tidier) behind() ([]byte, error) {
	for level := 1; level < int(t.h.Height); level++ {
		st := &t.path[level]
		if st.idx == st.n.count() {
			continue
		}
		it, err := st.n.item(st.idx)
		if err != nil {
			return nil, err
		}
		return it.wholeKey(t.e, nil)
	}
	return nil, nil
}
