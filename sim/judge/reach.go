package judge

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/slab"
	"github.com/multiforadb/multiforadb/simfs"
)

// disk reads pages of an image, verifying each.
type disk struct {
	img  *simfs.FS
	data string
}

func (d disk) Page(ref page.Ref) ([]byte, error) {
	b, err := d.img.Peek(d.data, int64(ref.ID())*page.Size, page.Size)
	if err != nil {
		return nil, err
	}
	if len(b) < page.Size {
		return nil, fmt.Errorf("page %d: beyond the end of the file", ref.ID())
	}
	return b, page.Verify(b, ref)
}

// reach collects what a meta page reaches, reading all of it.
type reach struct {
	disk
	runs []page.Run
}

// head is what the heads tree says of one collection.
type head struct {
	dropped bool
	count   uint64
	table   slab.Table
	trees   []btree.Head
	tail    page.Run // what is empty of the open extent
}

func (r *reach) meta(m *page.Meta) error {
	heads, err := r.heads(m)
	if err != nil {
		return fmt.Errorf("heads tree: %w", err)
	}
	extents, err := r.extents(m)
	if err != nil {
		return fmt.Errorf("space tree: %w", err)
	}
	for id := range extents {
		if heads[id] == nil {
			return fmt.Errorf("collection %d has extents, but no head", id)
		}
	}
	ids := make([]uint32, 0, len(heads))
	for id := range heads {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := r.collection(id, heads[id], extents[id]); err != nil {
			return fmt.Errorf("collection %d: %w", id, err)
		}
	}
	return nil
}

// tree claims and verifies the pages of a tree.
func (r *reach) tree(h btree.Head) error {
	return btree.Tree{Head: h, R: r}.Walk(func(ref page.Ref, _ uint8, _ bool) error {
		r.runs = append(r.runs, page.Run{First: ref.ID(), Count: 1})
		_, err := r.Page(ref)
		return err
	})
}

// entries claims a tree's pages and visits its entries.
func (r *reach) entries(t page.TreeHead, visit func(key, value []byte) error) error {
	h := btree.Head{Root: t.Root, Height: t.Height, Entries: t.Entries, Pages: t.Pages, Overflow: t.Overflow}
	if err := r.tree(h); err != nil {
		return err
	}
	it := btree.Tree{Head: h, R: r}.Iter()
	for ok := it.Seek(nil); ok; ok = it.Next() {
		if err := visit(it.Key(), it.Value()); err != nil {
			return fmt.Errorf("key %x: %w", it.Key(), err)
		}
	}
	return it.Err()
}

func (r *reach) heads(m *page.Meta) (map[uint32]*head, error) {
	heads := map[uint32]*head{}
	err := r.entries(m.Heads, func(key, value []byte) error {
		if len(key) < 5 {
			return fmt.Errorf("too short")
		}
		id, kind := binary.BigEndian.Uint32(key), key[4]
		if kind == 0 {
			v, err := uvarints(value, 11)
			if err != nil {
				return err
			}
			full := (v[10] + page.Size - 1) / page.Size
			heads[id] = &head{dropped: v[0]&1 != 0, table: slab.Table{Root: page.Ref(v[1]), Height: uint8(v[2]), Pages: v[3]}, count: v[5],
				tail: page.Run{First: page.ID(v[7] + full), Count: uint32(v[8] - full)}}
			return nil
		}
		h := heads[id]
		switch {
		case h == nil:
			return fmt.Errorf("before its collection's first entry")
		case kind == 2 || kind == 3:
			v, err := uvarints(value, 5)
			if err != nil {
				return err
			}
			h.trees = append(h.trees, btree.Head{Root: page.Ref(v[0]), Height: uint8(v[1]), Entries: v[2], Pages: v[3], Overflow: v[4]})
		case kind > 3:
			return fmt.Errorf("of an unknown kind")
		}
		return nil
	})
	return heads, err
}

func (r *reach) extents(m *page.Meta) (map[uint32][]page.Run, error) {
	extents := map[uint32][]page.Run{}
	err := r.entries(m.Space, func(key, value []byte) error {
		v, err := uvarints(value, 3)
		if err != nil || len(key) != 12 {
			return fmt.Errorf("malformed")
		}
		id := binary.BigEndian.Uint32(key)
		run := page.Run{First: page.ID(binary.BigEndian.Uint64(key[4:])), Count: uint32(v[0])}
		extents[id] = append(extents[id], run)
		r.runs = append(r.runs, run)
		return nil
	})
	return extents, err
}

// collection claims the pages of a collection's trees and table, and reads its records.
func (r *reach) collection(id uint32, h *head, extents []page.Run) error {
	for _, t := range h.trees {
		if err := r.tree(t); err != nil {
			return err
		}
	}
	err := h.table.Walk(r, func(ref page.Ref, _ int) error {
		r.runs = append(r.runs, page.Run{First: ref.ID(), Count: 1})
		_, err := r.Page(ref)
		return err
	})
	if err != nil || h.dropped {
		return err
	}
	it, n := h.table.Iter(r, 0, false), uint64(0)
	for ; it.Next(); n++ {
		if err := r.record(id, it.ID(), it.Place(), extents); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	if n != h.count {
		return fmt.Errorf("%d records, but the head says %d", n, h.count)
	}
	return nil
}

func (r *reach) record(coll uint32, id uint64, p slab.Place, extents []page.Run) error {
	off := p.Offset()
	at := page.ID(off / page.Size)
	i := slices.IndexFunc(extents, func(x page.Run) bool { return x.First <= at && at < x.End() })
	if i < 0 {
		return fmt.Errorf("record %d at offset %d lies in none of its extents", id, off)
	}
	room := int64(extents[i].End())*page.Size - off
	b, err := r.img.Peek(r.data, off, min(room, slab.HeaderSize))
	if err == nil && len(b) == slab.HeaderSize {
		b, err = r.img.Peek(r.data, off, min(room, slab.HeaderSize+int64(binary.LittleEndian.Uint32(b[4:]))))
	}
	if err == nil {
		_, err = slab.Read(b, coll, id, p, true)
	}
	return err
}

// uvarints reads exactly n numbers.
func uvarints(b []byte, n int) ([]uint64, error) {
	vs := make([]uint64, n)
	for i := range vs {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, fmt.Errorf("holds fewer than %d numbers", n)
		}
		vs[i], b = v, b[k:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("holds more than %d numbers", n)
	}
	return vs, nil
}
