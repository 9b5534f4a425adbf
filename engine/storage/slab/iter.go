package slab

import "github.com/multiforadb/multiforadb/engine/storage/page"

// Iter is a position in a record table. It begins before the first slot that it is to give.
//
//	it := table.Iter(r, 1, false)
//	for it.Next() { it.ID(); it.Place() }
//	it.Err()
type Iter struct {
	r       page.Reader
	table   Table
	reverse bool
	next    uint64 // the index (RecordID - 1) to look at next
	done    bool
	leaf    []byte // the page of level 0 that holds leafBase
	base    uint64
	id      uint64
	place   Place
	err     error
}

// Iter begins at record from, which need not exist, and goes up, or down if reverse. From 0 means from the end that the
// direction starts at.
func (t Table) Iter(r page.Reader, from uint64, reverse bool) Iter {
	it := Iter{r: r, table: t, reverse: reverse, done: t.Root == 0}
	if it.done {
		return it
	}
	last := ^uint64(0)
	if t.Height < heightMax-1 {
		last = span(int(t.Height)) - 1
	}
	switch {
	case from == 0 && reverse:
		it.next = last
	case from == 0:
	case from-1 > last && !reverse:
		it.done = true
	default:
		it.next = min(from-1, last)
	}
	return it
}

// Next goes to the next record and reports whether there is one.
func (it *Iter) Next() bool {
	for !it.done {
		if it.leaf == nil || it.next < it.base || it.next-it.base >= slotsPerPage {
			if !it.descend() {
				it.done = true
				return false
			}
		}
		v := slot(it.leaf, int(it.next-it.base))
		id := it.next + 1
		it.step(1)
		if v != 0 {
			it.id, it.place = id, Place(v)
			return true
		}
	}
	return false
}

// step moves next by n in the iterator's direction.
func (it *Iter) step(n uint64) {
	switch {
	case !it.reverse:
		if it.next += n; it.next < n {
			it.done = true
		}
	case it.next < n:
		it.done = true
	default:
		it.next -= n
	}
}

// descend finds the page of level 0 that holds next, or the nearest one in the iterator's direction, and moves next there.
func (it *Iter) descend() bool {
again:
	if it.done || !covers(it.table.Height, it.next) {
		return false
	}
	ref := it.table.Root
	for level := int(it.table.Height) - 1; ; level-- {
		b, err := read(it.r, ref, level)
		if err != nil {
			it.err = err
			return false
		}
		if level == 0 {
			it.leaf, it.base = b, it.next-it.next%slotsPerPage
			return true
		}
		s := span(level)
		i := int(it.next / s % slotsPerPage)
		v := slot(b, i)
		if v == 0 {
			// Skip the whole slot, and empty ones beside it.
			for {
				within := it.next % s
				if it.reverse {
					it.step(within + 1)
					i--
				} else {
					it.step(s - within)
					i++
				}
				if it.done {
					return false
				}
				if i < 0 || i >= slotsPerPage {
					goto again
				}
				if v = slot(b, i); v != 0 {
					break
				}
			}
		}
		ref = page.Ref(v)
	}
}

// ID and Place are those of the record that Next went to.
func (it *Iter) ID() uint64   { return it.id }
func (it *Iter) Place() Place { return it.place }

// Err is the first error that was met.
func (it *Iter) Err() error { return it.err }
