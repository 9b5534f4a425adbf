package fuzz

import (
	"errors"
	"fmt"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// FuzzTreeDecode damages the pages of a small tree, and uses the tree in every way. Each use ends, with what it is for or with
// an error that wraps ErrCorrupt; none panics.
//
// The input is: the shape of the tree, then patches of (page, offset in it, byte), six bytes each.
func FuzzTreeDecode(f *testing.F) {
	f.Add([]byte{0})
	for shape := range byte(8) {
		for field := range byte(24) {
			f.Add([]byte{shape, 0, 0, 0, 24 + field, 0xff, 1, 1, 0, 0, 24 + field, 7, 0})
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 || len(input) > 600 {
			return
		}
		pages := newTreeDamage(t, input[0])
		for patch := input[1:]; len(patch) >= 6; patch = patch[6:] {
			pages.patch(patch)
		}
		pages.use(t)
	})
}

// treeDamage is an Editor that believes anything: it holds pages by number only, and may be told to edit or retire any of them.
type treeDamage struct {
	pages map[page.ID]*[page.Size]byte
	order []page.ID // of the tree, root first
	last  page.ID
	head  btree.Head
}

func newTreeDamage(t *testing.T, shape byte) *treeDamage {
	m := btree.NewMemory()
	m.Begin()
	config := btree.Config{MaxEntries: []int{0, 4}[shape&1]}
	var head btree.Head
	for i := range 12 + 12*int(shape>>3&3) {
		key := fmt.Appendf(nil, "key-%03d", i*5)
		if shape&2 != 0 && i%3 == 0 {
			key = append(key, make([]byte, 1500)...)
		}
		if _, err := config.Put(m, &head, key, make([]byte, []int{5, 5000}[shape>>2&1&byte(i)])); err != nil {
			t.Fatal(err)
		}
	}
	d := &treeDamage{pages: map[page.ID]*[page.Size]byte{}, head: head, last: 1000}
	tree := btree.Tree{Head: head, R: m}
	err := tree.Walk(func(ref page.Ref, _ uint8, _ bool) error {
		b, err := m.Page(ref)
		if err != nil {
			return err
		}
		d.pages[ref.ID()] = (*[page.Size]byte)(append([]byte(nil), b...))
		d.order = append(d.order, ref.ID())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// patch changes a byte: near the page's begin, near its end, anywhere, or that of a slot; or it exchanges two pages.
func (d *treeDamage) patch(b []byte) {
	p := d.pages[d.order[int(b[0])%len(d.order)]]
	at := int(b[2])<<8 | int(b[3])
	switch b[1] % 5 {
	case 0:
		p[at%80] = b[4]
	case 1:
		p[page.Size-1-at%80] = b[4]
	case 2:
		p[at%page.Size] = b[4]
	case 3:
		p[at%80] ^= 1 << (b[4] % 8)
	case 4:
		q := d.pages[d.order[int(b[4])%len(d.order)]]
		*p, *q = *q, *p
	}
}

func (d *treeDamage) Page(ref page.Ref) ([]byte, error) {
	p := d.pages[ref.ID()]
	if p == nil {
		return nil, fmt.Errorf("page %d does not exist: %w", ref.ID(), page.ErrCorrupt)
	}
	return p[:], nil
}

func (d *treeDamage) New(t page.Type, level uint8) (page.Ref, []byte, error) {
	d.last++
	p := new([page.Size]byte)
	d.pages[d.last] = p
	page.Init(p[:], t, level, d.last, 1)
	return page.MakeRef(d.last, 1), p[:], nil
}

func (d *treeDamage) Edit(ref page.Ref) (page.Ref, []byte, error) {
	p, err := d.Page(ref)
	if err != nil || ref.ID() > 1000 {
		return ref, p, err
	}
	to, b, err := d.New(page.TypeOf(p), page.LevelOf(p))
	copy(b, p)
	page.Rebirth(b, to.ID(), 1)
	return to, b, err
}

func (d *treeDamage) Retire(page.Ref)       {}
func (d *treeDamage) Own(ref page.Ref) bool { return ref.ID() > 1000 }

func (d *treeDamage) use(t *testing.T) {
	tree := btree.Tree{Head: d.head, R: d}
	keys := [][]byte{nil, []byte("key"), []byte("key-050"), append([]byte("key-075"), make([]byte, 1500)...), []byte("z")}
	verdict := func(what string, err error) {
		if err != nil && !errors.Is(err, page.ErrCorrupt) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	check := btree.Check(tree)
	verdict("check", check)
	verdict("walk", tree.Walk(func(page.Ref, uint8, bool) error { return nil }))
	for _, key := range keys {
		_, _, err := tree.Get(key)
		verdict("get", err)
		it := tree.Iter()
		n := 0
		for ok := it.Seek(key); ok && n < 2000; ok = it.Next() {
			it.Key()
			it.Value()
			n++
		}
		verdict("seek", it.Err())
		if check == nil && (it.Err() != nil || uint64(n) > d.head.Entries) {
			t.Fatalf("check found nothing, but an iterator found %d entries: %v", n, it.Err())
		}
		for ok := it.SeekBefore(key); ok && n > 0; ok = it.Prev() {
			it.Key()
			it.Value()
			n--
		}
		verdict("seek before", it.Err())
		for _, hi := range keys {
			_, err := tree.EstimateRange(key, hi)
			verdict("estimate", err)
		}
	}
	if it := tree.Iter(); it.SeekLast() {
		it.Value()
		verdict("seek last", it.Err())
	}
	d.edit(keys, verdict)
}

// edit puts, deletes and drops, each beginning with the damaged tree.
func (d *treeDamage) edit(keys [][]byte, verdict func(string, error)) {
	original := make(map[page.ID][page.Size]byte)
	for id, p := range d.pages {
		original[id] = *p
	}
	restore := func() btree.Head {
		clear(d.pages)
		for id, p := range original {
			d.pages[id] = &p
		}
		return d.head
	}
	for _, config := range []btree.Config{{}, {MaxEntries: 4}} {
		for _, size := range []int{1, 900, 5000} {
			h := restore()
			for i, key := range keys {
				_, err := config.Put(d, &h, key, make([]byte, size))
				verdict("put", err)
				_, err = config.Delete(d, &h, keys[len(keys)-1-i])
				verdict("delete", err)
			}
		}
		h := restore()
		for i := range 30 {
			_, err := config.Delete(d, &h, fmt.Appendf(nil, "key-%03d", i*5))
			verdict("delete", err)
		}
	}
	h := restore()
	for range 100 {
		done, err := btree.DropStep(d, &h, 3)
		verdict("drop", err)
		if done || err != nil {
			break
		}
	}
}
