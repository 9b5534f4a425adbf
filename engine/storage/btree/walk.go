package btree

import "github.com/multiforadb/multiforadb/engine/storage/page"

// Walk visits all pages of the tree, each before those below it. Leaves are read only if the tree has overflow pages. It ends
// with the first error: visit's, or that a page is damaged. More visits than the tree has pages are damage too; a
// visitor that must know that no page is reached twice keeps account itself.
func (t Tree) Walk(visit func(ref page.Ref, level uint8, overflow bool) error) error {
	if t.Root == 0 {
		return nil
	}
	w := walker{t: t, visit: visit, left: t.Pages}
	return w.page(t.Root, int(t.Height)-1)
}

type walker struct {
	t     Tree
	visit func(ref page.Ref, level uint8, overflow bool) error
	left  uint64 // pages that may yet be visited
}

func (w *walker) meet(ref page.Ref, level int, overflow bool) error {
	if w.left == 0 {
		return corrupt(ref.ID(), "is beyond the number of pages that its tree has")
	}
	w.left--
	return w.visit(ref, uint8(level), overflow)
}

func (w *walker) page(ref page.Ref, level int) error {
	if err := w.meet(ref, level, false); err != nil {
		return err
	}
	if level == 0 && w.t.Overflow == 0 {
		return nil
	}
	n, err := load(w.t.R, ref, level)
	if err != nil {
		return err
	}
	for i := range n.count() {
		if level > 0 {
			if err := w.child(n, i, level); err != nil {
				return err
			}
		}
		it, err := n.item(i)
		if err != nil {
			return err
		}
		if err := w.chain(&it); err != nil {
			return err
		}
	}
	if level == 0 {
		return nil
	}
	return w.child(n, n.count(), level)
}

func (w *walker) child(n *node, i, level int) error {
	ref, err := n.child(i)
	if err != nil {
		return err
	}
	return w.page(ref, level-1)
}

func (w *walker) chain(it *item) error {
	if !it.over() {
		return nil
	}
	for c := it.openChain(w.t.R); c.rest > 0; {
		if err := w.meet(c.next, 0, true); err != nil {
			return err
		}
		if _, _, err := c.page(); err != nil {
			return err
		}
	}
	return nil
}
