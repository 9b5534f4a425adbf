package storage

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/slab"
)

// head is all that must be remembered of a collection at one point of the order of writes, but for how many bytes of each
// extent are live. Once installed it never changes.
type head struct {
	dropped bool // being cleared away: only the pages still to be retired count
	desc    []byte
	table   slab.Table
	nextID  RecordID // the next record's number, less one
	count   uint64
	bytes   uint64
	open    openExtent
	trees   []namedTree  // sorted by id
	garbage []btree.Head // dropped trees, being cleared away
}

type namedTree struct {
	id TreeID
	btree.Head
}

// openExtent is the extent that records are appended to. fill is the first free byte in it; after a checkpoint's seal it is
// the start of a page, so that no page of a published checkpoint is ever written again.
type openExtent struct {
	run   page.Run
	birth page.Gen
	fill  uint32
}

func (o openExtent) rounded() openExtent {
	o.fill = (o.fill + page.Size - 1) &^ (page.Size - 1)
	return o
}

func (h *head) clone() *head {
	n := *h
	n.trees = slices.Clone(h.trees)
	n.garbage = slices.Clone(h.garbage)
	return &n
}

func (h *head) tree(id TreeID) *namedTree {
	i, ok := slices.BinarySearchFunc(h.trees, id, func(t namedTree, id TreeID) int { return int(int64(t.id) - int64(id)) })
	if !ok {
		return nil
	}
	return &h.trees[i]
}

// cleared reports whether nothing of a dropped collection is left, but perhaps extents.
func (h *head) cleared() bool {
	return h.dropped && h.table.Root == 0 && len(h.trees) == 0 && len(h.garbage) == 0
}

// heads is the array of all collections' heads at one point. It has two levels, so that a new one shares all but the chunks
// that changed.
type heads []*headChunk

const headChunkSize = 64

type headChunk [headChunkSize]*head

func (hs heads) get(id CollID) *head {
	if i := int(id / headChunkSize); i < len(hs) && hs[i] != nil {
		return hs[i][id%headChunkSize]
	}
	return nil
}

// with gives the array in which the touched collections have their heads of now.
func (hs heads) with(touched []*coll) heads {
	out := slices.Clone(hs)
	fresh := make(map[int]bool, len(touched))
	for _, c := range touched {
		i := int(c.id / headChunkSize)
		for i >= len(out) {
			out = append(out, nil)
		}
		if !fresh[i] {
			fresh[i] = true
			chunk := new(headChunk)
			if out[i] != nil {
				*chunk = *out[i]
			}
			out[i] = chunk
		}
		out[i][c.id%headChunkSize] = c.head.Load()
	}
	return out
}

// all visits every collection in the order of ids.
func (hs heads) all(visit func(id CollID, h *head) error) error {
	for i, chunk := range hs {
		if chunk == nil {
			continue
		}
		for j, h := range chunk {
			if h != nil {
				if err := visit(CollID(i*headChunkSize+j), h); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// The heads tree holds the heads of a checkpoint. Its keys are the collection id (4 bytes, big endian), one byte for the kind,
// and for trees their number (4 bytes, big endian):
//
//	id 0        what is of fixed size, uvarints: flags, table root, height, pages, nextID, count, bytes, open extent (first,
//	            pages, birth, fill)
//	id 1        the descriptor
//	id 2 tree   a tree: uvarints root, height, entries, pages, overflow pages
//	id 3 n      a dropped tree that is still being cleared away, likewise
//
// The space tree holds the extents: its keys are the collection id and the extent's first page (8 bytes, big endian), its
// values uvarints: pages, birth, live bytes.
const (
	headFixed byte = iota
	headDesc
	headTree
	headGarbage
)

const flagDropped = 1

func headKey(id CollID, kind byte, n ...uint32) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 9), uint32(id))
	b = append(b, kind)
	for _, n := range n {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

func spaceKey(id CollID, first page.ID) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 12), uint32(id))
	return binary.BigEndian.AppendUint64(b, uint64(first))
}

func appendUvarints(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// uvarints reads exactly len(vs) numbers, which must be all of b.
func uvarints(b []byte, vs ...*uint64) bool {
	for _, v := range vs {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return false
		}
		*v, b = x, b[n:]
	}
	return len(b) == 0
}

func encodeFixed(h *head) []byte {
	var flags uint64
	if h.dropped {
		flags |= flagDropped
	}
	return appendUvarints(nil, flags, uint64(h.table.Root), uint64(h.table.Height), h.table.Pages, uint64(h.nextID), h.count, h.bytes,
		uint64(h.open.run.First), uint64(h.open.run.Count), uint64(h.open.birth), uint64(h.open.fill))
}

func decodeFixed(b []byte, h *head) bool {
	var flags, root, height, pages, next, first, count, birth, fill uint64
	if !uvarints(b, &flags, &root, &height, &pages, &next, &h.count, &h.bytes, &first, &count, &birth, &fill) || height > 16 || count > 1<<31 || fill > count*page.Size {
		return false
	}
	h.dropped = flags&flagDropped != 0
	h.table = slab.Table{Root: page.Ref(root), Height: uint8(height), Pages: pages}
	h.nextID = RecordID(next)
	h.open = openExtent{run: page.Run{First: page.ID(first), Count: uint32(count)}, birth: page.Gen(birth), fill: uint32(fill)}
	return true
}

func encodeTree(h btree.Head) []byte {
	return appendUvarints(nil, uint64(h.Root), uint64(h.Height), h.Entries, h.Pages, h.Overflow)
}

func decodeTree(b []byte) (h btree.Head, ok bool) {
	var root, height uint64
	ok = uvarints(b, &root, &height, &h.Entries, &h.Pages, &h.Overflow) && height < 64
	h.Root, h.Height = page.Ref(root), uint8(height)
	return h, ok
}

// saveHead makes the heads tree t say h of collection id; a nil h removes it. old is what the tree says now.
func saveHead(cfg btree.Config, e page.Editor, t *btree.Head, id CollID, old, h *head) error {
	put := func(key, value []byte) error {
		_, err := cfg.Put(e, t, key, value)
		return err
	}
	del := func(key []byte) error {
		_, err := cfg.Delete(e, t, key)
		return err
	}
	if old == nil {
		old = &head{}
	}
	if h == nil {
		if err := del(headKey(id, headFixed)); err != nil {
			return err
		}
		h = &head{}
	} else if err := put(headKey(id, headFixed), encodeFixed(h)); err != nil {
		return err
	}
	switch {
	case len(h.desc) == 0 && len(old.desc) > 0:
		if err := del(headKey(id, headDesc)); err != nil {
			return err
		}
	case len(h.desc) > 0 && (len(old.desc) == 0 || &old.desc[0] != &h.desc[0]):
		if err := put(headKey(id, headDesc), h.desc); err != nil {
			return err
		}
	}
	for _, o := range old.trees {
		if h.tree(o.id) == nil {
			if err := del(headKey(id, headTree, uint32(o.id))); err != nil {
				return err
			}
		}
	}
	for _, n := range h.trees {
		if o := old.tree(n.id); o == nil || o.Head != n.Head {
			if err := put(headKey(id, headTree, uint32(n.id)), encodeTree(n.Head)); err != nil {
				return err
			}
		}
	}
	for i := len(h.garbage); i < len(old.garbage); i++ {
		if err := del(headKey(id, headGarbage, uint32(i))); err != nil {
			return err
		}
	}
	for i, g := range h.garbage {
		if i >= len(old.garbage) || old.garbage[i] != g {
			if err := put(headKey(id, headGarbage, uint32(i)), encodeTree(g)); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadHeads reads the heads tree.
func loadHeads(t btree.Tree) (map[CollID]*head, error) {
	all := make(map[CollID]*head)
	bad := func(key []byte) error { return fmt.Errorf("heads tree: key %x: %w", key, ErrCorrupt) }
	it := t.Iter()
	for ok := it.Seek(nil); ok; ok = it.Next() {
		key, value := it.Key(), it.Value()
		if len(key) < 5 {
			return nil, bad(key)
		}
		id, kind, rest := CollID(binary.BigEndian.Uint32(key)), key[4], key[5:]
		h := all[id]
		if kind == headFixed {
			h = new(head)
			if len(rest) != 0 || !decodeFixed(value, h) {
				return nil, bad(key)
			}
			all[id] = h
			continue
		}
		if h == nil {
			return nil, bad(key)
		}
		if kind == headDesc {
			h.desc = slices.Clone(value)
			continue
		}
		tree, ok := decodeTree(value)
		if !ok || len(rest) != 4 {
			return nil, bad(key)
		}
		n := binary.BigEndian.Uint32(rest)
		switch {
		case kind == headTree:
			h.trees = append(h.trees, namedTree{id: TreeID(n), Head: tree})
		case kind == headGarbage && int(n) == len(h.garbage):
			h.garbage = append(h.garbage, tree)
		default:
			return nil, bad(key)
		}
	}
	return all, it.Err()
}
