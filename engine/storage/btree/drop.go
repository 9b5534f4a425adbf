package btree

import (
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// DropStep retires about maxPages pages of a tree from its right side: the last entry's overflow pages may make it more,
// and the pages from the root to the cut are copied. What is left is a valid, smaller tree, to be read or dropped further
// but no longer edited: the number of its entries is unknown, since leaves are read only if there are overflow pages. It is done when
// nothing is left; h is then the zero Head. After an error the write must be dropped.
func DropStep(e page.Editor, h *Head, maxPages int) (done bool, err error) {
	if h.Root != 0 {
		if h.Height == 0 || h.Height > heightMax {
			return false, corrupt(h.Root.ID(), "is the root of a tree with an impossible height")
		}
		d := dropper{edit: edit{e: e, h: h}, room: max(maxPages, 1)}
		h.Entries = EntriesUnknown
		if h.Root, err = d.prune(h.Root, int(h.Height)-1); err != nil {
			return false, err
		}
		if h.Root != 0 {
			return false, d.lower()
		}
	}
	probe.TreeCleared.Hit()
	*h = Head{}
	return true, nil
}

type dropper struct {
	edit
	room int // pages that may yet be retired
}

func (d *dropper) drop(ref page.Ref) {
	d.retire(ref)
	d.room--
}

func (d *dropper) dropItem(n *node, i int) error {
	it, err := n.item(i)
	if err != nil {
		return err
	}
	pages, err := d.retireChain(&it)
	d.room -= pages
	n.remove(i, it.size(n.prefixLen()))
	return err
}

// prune drops as much of the subtree as there is room for, and gives what now stands in its place: 0 if nothing is left.
func (d *dropper) prune(ref page.Ref, level int) (page.Ref, error) {
	if level == 0 && d.h.Overflow == 0 {
		d.drop(ref)
		return 0, nil
	}
	n, err := load(d.e, ref, level)
	if err != nil {
		return 0, err
	}
	if level == 0 && !n.chained() {
		d.drop(ref)
		return 0, nil
	}
	if level == 1 && d.h.Overflow == 0 && n.count()+2 <= d.room {
		return 0, d.dropWhole(n, ref)
	}
	ref, b, err := d.e.Edit(ref)
	if err != nil {
		return 0, err
	}
	n = (*node)(b)
	for d.room > 0 {
		last := n.count()
		if level > 0 {
			child, err := n.child(last)
			if err != nil {
				return 0, err
			}
			left, err := d.prune(child, level-1)
			if err != nil {
				return 0, err
			}
			if left != 0 {
				return ref, n.setChild(last, left)
			}
		}
		if last == 0 {
			d.drop(ref)
			return 0, nil
		}
		if err := d.dropItem(n, last-1); err != nil {
			return 0, err
		}
		if level == 0 && last == 1 {
			d.drop(ref)
			return 0, nil
		}
	}
	return ref, nil
}

// dropWhole retires a branch above leaves that need not be read; so the branch need not be copied either.
func (d *dropper) dropWhole(n *node, ref page.Ref) error {
	for i := range n.count() + 1 {
		child, err := n.child(i)
		if err != nil {
			return err
		}
		d.drop(child)
	}
	d.drop(ref)
	return nil
}

// chained reports whether a cell may have overflow pages.
func (n *node) chained() bool {
	for i := range n.count() {
		if _, over, ok := n.suffix(n.base(), i); over || !ok {
			return true
		}
	}
	return false
}
