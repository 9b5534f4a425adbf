package btree

import (
	"bytes"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Build makes a tree of entries that next gives in ascending order of their keys, until ok is false. The slices are used
// until next is called again. Pages are filled from the left; all are full but the last of each level.
func (c Config) Build(e page.Editor, next func() (key, value []byte, ok bool, err error)) (Head, error) {
	var h Head
	b := builder{edit: edit{e: e, h: &h, entries: c.max()}}
	for {
		key, value, ok, err := next()
		switch {
		case err != nil:
			return h, err
		case !ok:
			return h, nil
		case h.Entries > 0 && bytes.Compare(b.last, key) >= 0:
			return h, errOrder
		}
		if err := b.add(key, value); err != nil {
			return h, err
		}
		b.last = append(b.last[:0], key...)
	}
}

// builder keeps, as its path, the last page of each level: the only ones that still grow.
type builder struct {
	edit
	last []byte // the key before
}

func (b *builder) add(key, value []byte) error {
	it, err := b.item(key, value)
	if err != nil {
		return err
	}
	if b.h.Root == 0 {
		if err := b.plant(&it); err != nil {
			return err
		}
		b.path[0].ref = b.h.Root
		n, err := b.e.Page(b.h.Root)
		b.path[0].n = (*node)(n)
		return err
	}
	b.h.Entries++
	leaf := b.path[0].n
	if ok, err := place(leaf, leaf.count(), &it, b.entries); err != nil || ok {
		return err
	}
	ref, n, err := b.newNode(page.TypeLeaf, 0)
	if err != nil {
		return err
	}
	b.path[0] = step{n: n, ref: ref}
	s := single(&it)
	if err := s.write(n, 0, 1); err != nil {
		return err
	}
	up, err := b.separator(shortest(b.last, key), ref)
	if err != nil {
		return err
	}
	return b.raise(&up)
}

// raise appends a separator and its child to the branches. If a branch is full the child becomes the first of the next
// one, and the separator goes up with that.
func (b *builder) raise(up *item) error {
	for level := 1; ; level++ {
		if level == int(b.h.Height) {
			if err := b.grow(up); err != nil {
				return err
			}
			n, err := b.e.Page(b.h.Root)
			b.path[level] = step{n: (*node)(n), ref: b.h.Root}
			return err
		}
		n := b.path[level].n
		if ok, err := place(n, n.count(), up, b.entries); err != nil || ok {
			return err
		}
		ref, right, err := b.newNode(page.TypeBranch, level)
		if err != nil {
			return err
		}
		right.setFirst(up.child())
		b.path[level] = step{n: right, ref: ref}
		le.PutUint64(up.value, uint64(ref))
	}
}
