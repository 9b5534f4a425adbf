package btree

import (
	"bytes"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Check reads the whole tree and proves what the package doc says of pages, order, separators, levels and chains, and that
// the Head's counts are true. It ends on any input: every leaf holds keys greater than all before, so that none is entered
// twice, and there are no more pages than the Head says.
func Check(t Tree) error {
	if t.Root == 0 {
		if t.Head != (Head{}) {
			return fmt.Errorf("btree: a tree without a root has %d levels, %d entries, %d pages, %d overflow pages: %w",
				t.Height, t.Entries, t.Pages, t.Overflow, page.ErrCorrupt)
		}
		return nil
	}
	c := checker{t: t}
	if err := c.page(t.Root, int(t.Height)-1, nil, nil, true); err != nil {
		return err
	}
	if c.entries != t.Entries && t.Entries != EntriesUnknown || c.pages != t.Pages || c.overflow != t.Overflow {
		return corrupt(t.Root.ID(), fmt.Sprintf("is the root of %d entries, %d pages, %d overflow pages; its head says %d, %d, %d",
			c.entries, c.pages, c.overflow, t.Entries, t.Pages, t.Overflow))
	}
	return nil
}

type checker struct {
	t                        Tree
	entries, pages, overflow uint64
	last, key                []byte // of a leaf
}

func (c *checker) count(ref page.Ref) error {
	if c.pages++; c.pages > c.t.Pages {
		return corrupt(ref.ID(), "is beyond the number of pages that its tree has")
	}
	return nil
}

// page checks a page, whose keys must be ≥ lo and < hi, and all below. hi is nil if there is no bound.
func (c *checker) page(ref page.Ref, level int, lo, hi []byte, root bool) error {
	if err := c.count(ref); err != nil {
		return err
	}
	n, err := load(c.t.R, ref, level)
	if err != nil {
		return err
	}
	if root && level > 0 && n.count() == 0 {
		return corrupt(n.id(), "is a root with a single child")
	}
	if err := c.layout(n); err != nil {
		return err
	}
	if level == 0 {
		return c.leaf(n, lo, hi)
	}
	last := lo
	for i := range n.count() {
		it, key, err := c.entry(n, i, nil, last, hi)
		if err != nil {
			return err
		}
		if err := c.chain(&it); err != nil {
			return err
		}
		if err := c.child(n, i, level, last, key); err != nil {
			return err
		}
		last = key
	}
	return c.child(n, n.count(), level, last, hi)
}

func (c *checker) leaf(n *node, lo, hi []byte) error {
	c.last = append(c.last[:0], lo...)
	for i := range n.count() {
		it, key, err := c.entry(n, i, c.key[:0], c.last, hi)
		if err != nil {
			return err
		}
		if err := c.chain(&it); err != nil {
			return err
		}
		c.entries++
		c.last, c.key = key, c.last
	}
	return nil
}

// entry gives cell i and its key in buf, and checks that it is in order behind last and below hi. The first may equal its
// lower bound.
func (c *checker) entry(n *node, i int, buf, last, hi []byte) (item, []byte, error) {
	it, err := n.item(i)
	if err != nil {
		return it, nil, err
	}
	key, err := it.wholeKey(c.t.R, buf)
	if err != nil {
		return it, nil, err
	}
	if o := bytes.Compare(last, key); o > 0 || o == 0 && i > 0 || hi != nil && bytes.Compare(key, hi) >= 0 {
		return it, nil, n.corrupt(i, "key is out of order or bounds")
	}
	return it, key, nil
}

func (c *checker) child(n *node, i, level int, lo, hi []byte) error {
	ref, err := n.child(i)
	if err != nil {
		return err
	}
	return c.page(ref, level-1, lo, hi, false)
}

// layout checks that the cells of a page neither overlap nor leave the room they have, and that their sizes sum up.
func (c *checker) layout(n *node) error {
	var taken [page.Size]bool
	used := 0
	for i := range n.count() {
		it, err := n.item(i)
		if err != nil {
			return err
		}
		if len(it.suffix) >= 0x80/2 != (n[n.slot(i)] >= 0x80) {
			return n.corrupt(i, "key size is not in its shortest form")
		}
		size := it.size(n.prefixLen())
		at := n.slot(i)
		if at+size > page.Size-n.prefixLen() {
			return n.corrupt(i, "runs into the prefix")
		}
		for j := at; j < at+size; j++ {
			if taken[j] {
				return n.corrupt(i, "overlaps another")
			}
			taken[j] = true
		}
		used += size
	}
	if used != n.used() {
		return corrupt(n.id(), fmt.Sprintf("its cells have %d bytes, not %d", used, n.used()))
	}
	return nil
}

// chain reads all of a cell's overflow pages.
func (c *checker) chain(it *item) error {
	if !it.over() {
		return nil
	}
	for ch := it.openChain(c.t.R); ch.rest > 0; {
		c.overflow++
		if err := c.count(ch.next); err != nil {
			return err
		}
		if _, _, err := ch.page(); err != nil {
			return err
		}
	}
	return nil
}
