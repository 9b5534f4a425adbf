package btree

import (
	"math"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

const (
	liveMin  = page.Size * 2 / 5  // a page with less is underfull
	mergeMax = page.Size * 9 / 10 // what a merged page may hold, so that the next insertions do not split it again
)

// Delete removes key, and reports whether it was there; if not, nothing was changed. After an error the write must be
// dropped: h and the pages may be in any state.
func (c Config) Delete(e page.Editor, h *Head, key []byte) (found bool, err error) {
	if h.Root == 0 {
		return false, nil
	}
	ed := edit{e: e, h: h, entries: c.max()}
	if found, err = ed.descend(key, false); err != nil || !found {
		return false, err
	}
	if err := ed.ownPath(); err != nil {
		return false, err
	}
	if err := ed.removeItem(ed.path[0].n, ed.path[0].idx); err != nil {
		return false, err
	}
	h.Entries--
	return true, ed.shrink(0)
}

// ownPath makes all pages of the path changeable.
func (ed *edit) ownPath() (err error) {
	for level := int(ed.h.Height) - 1; level >= 0; level-- {
		if err := ed.own(level); err != nil {
			return err
		}
		if level > 0 {
			ed.path[level-1].ref, err = ed.path[level].n.child(ed.path[level].idx)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// removeItem takes a cell out, and retires its overflow pages.
func (ed *edit) removeItem(n *node, i int) error {
	it, err := n.item(i)
	if err != nil {
		return err
	}
	if _, err := ed.retireChain(&it); err != nil {
		return err
	}
	n.remove(i, it.size(n.prefixLen()))
	return nil
}

// removeChild takes child i, which is gone, out of a branch, and reports whether others are left.
func (ed *edit) removeChild(n *node, i int) (left bool, err error) {
	if n.count() == 0 {
		return false, nil
	}
	if i == 0 {
		next, err := n.child(1)
		if err != nil {
			return true, err
		}
		n.setFirst(next)
		i = 1
	}
	return true, ed.removeItem(n, i-1)
}

// shrink removes, merges and refills pages of the path, from level on upwards, after something was taken out of the one there.
func (ed *edit) shrink(level int) error {
	empty := level == 0 && ed.path[0].n.count() == 0
	for ; level < int(ed.h.Height)-1; level++ {
		st, parent := &ed.path[level], &ed.path[level+1]
		if empty {
			ed.retire(st.ref)
			left, err := ed.removeChild(parent.n, parent.idx)
			if err != nil {
				return err
			}
			empty = !left
			continue
		}
		if !ed.underfull(st.n) {
			return nil
		}
		if merged, err := ed.mend(level); err != nil || !merged {
			return err
		}
	}
	if empty {
		ed.retire(ed.h.Root)
		ed.h.Root, ed.h.Height = 0, 0
		return nil
	}
	return ed.lower()
}

// lower takes roots away that have only one child.
func (ed *edit) lower() error {
	for ed.h.Height > 1 {
		n, err := load(ed.e, ed.h.Root, int(ed.h.Height)-1)
		if err != nil || n.count() > 0 {
			return err
		}
		child, err := n.child(0)
		if err != nil {
			return err
		}
		ed.retire(ed.h.Root)
		probe.RootLowered.Hit()
		ed.h.Root = child
		ed.h.Height--
	}
	return nil
}

// underfull looks at bytes, and at cells where their number is bounded.
func (ed *edit) underfull(n *node) bool {
	return n.live() < liveMin && (ed.entries == math.MaxInt || n.count() < ed.entries/3+1)
}

// pair is the path's page at level and a sibling of it, as one sequence of items. Both may be written: it holds copies.
type pair struct {
	level       int
	ref         page.Ref // of the sibling
	sep         int      // the parent's separator between the two, and the left one's number among the children
	own         bool     // the path's page is the left one
	left, right node
	mid         item // in branches: the separator, with the right page's first child
	seq         seq
}

// mend merges the path's page at level with a sibling or, if neither has room, takes cells from the fuller one. It reports
// whether the parent has lost a child.
func (ed *edit) mend(level int) (merged bool, err error) {
	parent := &ed.path[level+1]
	var fuller *pair
	most := 0
	for _, i := range [2]int{parent.idx - 1, parent.idx + 1} {
		if i < 0 || i > parent.n.count() {
			continue
		}
		p, err := ed.pair(level, i)
		if err != nil {
			return false, err
		}
		size, err := p.seq.size(p.left.base(), 0, p.seq.len)
		if err != nil {
			return false, err
		}
		if size <= mergeMax && p.seq.len <= ed.entries {
			return true, ed.merge(p)
		}
		if size > most {
			fuller, most = p, size
		}
	}
	if fuller == nil {
		return false, nil // an only child
	}
	return false, ed.refill(fuller)
}

// pair joins the path's page at level with the parent's child i, its neighbour.
func (ed *edit) pair(level, i int) (*pair, error) {
	parent := &ed.path[level+1]
	ref, err := parent.n.child(i)
	if err != nil {
		return nil, err
	}
	sibling, err := load(ed.e, ref, level)
	if err != nil {
		return nil, err
	}
	n := ed.path[level].n
	if n == sibling {
		return nil, corrupt(ref.ID(), "is twice a child of the same branch")
	}
	p := &pair{level: level, ref: ref, sep: min(i, parent.idx), own: i > parent.idx}
	if p.own {
		p.left, p.right = *n, *sibling
	} else {
		p.left, p.right = *sibling, *n
	}
	var mid *item
	if level > 0 {
		sep, err := parent.n.item(p.sep)
		if err != nil {
			return nil, err
		}
		sep.value = p.right[firstAt : firstAt+childSize]
		p.mid = sep.flatten(nil)
		mid = &p.mid
	}
	p.seq = join(&p.left, &p.right, mid)
	return p, nil
}

// merge writes the items of both pages into the path's page, and takes the sibling out of the parent.
func (ed *edit) merge(p *pair) error {
	probe.LeavesMerged.HitIf(p.level == 0)
	probe.BranchesMerged.HitIf(p.level > 0)
	st, parent := &ed.path[p.level], &ed.path[p.level+1]
	if err := p.seq.write(st.n, 0, p.seq.len); err != nil {
		return err
	}
	ed.retire(p.ref)
	if p.level > 0 { // the separator moved down, with the overflow pages it may have
		copy(st.n[firstAt:], p.left[firstAt:firstAt+childSize])
		sep, err := parent.n.item(p.sep)
		if err != nil {
			return err
		}
		parent.n.remove(p.sep, sep.size(parent.n.prefixLen()))
	} else if err := ed.removeItem(parent.n, p.sep); err != nil {
		return err
	}
	return parent.n.setChild(p.sep, st.ref)
}

// refill divides the items of both pages evenly.
func (ed *edit) refill(p *pair) error {
	cut, err := p.seq.cut(p.left.base(), ed.entries, [2]int{-1, -1})
	if err != nil || cut == p.left.count() {
		return err
	}
	return ed.divide(p, cut)
}

// divide gives the left page the items before the cut and the right one the others, if the parent has room for the separator that
// then stands between them.
func (ed *edit) divide(p *pair, cut int) error {
	st, parent := &ed.path[p.level], &ed.path[p.level+1]
	up, err := ed.between(p, cut)
	if err != nil {
		return err
	}
	old := *parent.n
	s := splice(&old, p.sep, p.sep+1, &up)
	size, err := s.size(branchBase, 0, s.len)
	if err != nil {
		return err
	}
	if size > page.Size {
		if p.level == 0 {
			_, err = ed.retireChain(&up)
		}
		return err
	}
	if p.level == 0 {
		sep, err := old.item(p.sep)
		if err != nil {
			return err
		}
		if _, err := ed.retireChain(&sep); err != nil {
			return err
		}
	}
	ref, b, err := ed.e.Edit(p.ref)
	if err != nil {
		return err
	}
	left, right, leftRef, rightRef := (*node)(b), st.n, ref, st.ref
	if p.own {
		left, right, leftRef, rightRef = right, left, rightRef, leftRef
	}
	skip := 0
	if p.level > 0 {
		skip = 1
		mid, err := p.seq.at(cut)
		if err != nil {
			return err
		}
		right.setFirst(mid.child())
	}
	if err := p.seq.write(left, 0, cut); err != nil {
		return err
	}
	if err := p.seq.write(right, cut+skip, p.seq.len); err != nil {
		return err
	}
	probe.PageRefilled.Hit()
	le.PutUint64(up.value, uint64(rightRef))
	if err := s.write(parent.n, 0, s.len); err != nil {
		return err
	}
	return parent.n.setChild(p.sep, leftRef)
}

// between makes the separator for pages that are divided at the cut; its child is filled in later.
func (ed *edit) between(p *pair, cut int) (item, error) {
	if p.level == 0 {
		key, err := p.seq.separator(ed.e, cut)
		if err != nil {
			return item{}, err
		}
		return ed.separator(key, 0)
	}
	mid, err := p.seq.at(cut)
	if err != nil {
		return item{}, err
	}
	return mid.flatten(nil), nil
}
