// Package btree is the one tree of the database: a copy-on-write B+tree over pages, for everything that is keyed.
//
// Keys are bytes in the order of bytes.Compare, values are bytes, both of any length (see KeySizeMax and ValueSizeMax).
// The package knows pages by reference, through page.Reader and page.Editor; it knows nothing of files, snapshots or locks.
//
// # Shape
//
// A tree is a Head and the pages it reaches. Entries are in leaves, at level 0; a branch at level n has children at level
// n-1, so no path can be circular. A branch with children c0 … cn holds n separators s1 … sn, and all keys under ci are ≥ si
// and < s(i+1). A separator is the shortest prefix of the first key to its right that is greater than the last key to its
// left when it is made; it need not be a key of the tree.
//
// What always holds: a leaf has at least one entry, a branch at least one child, a root that is a branch at least two.
// Pages are well filled because of what edits do (below), not as an invariant that readers could rely on.
//
// # Pages of a tree
//
// Leaves and branches are slotted pages: slots (offsets of cells, in the order of keys) grow up, cells grow down. The bytes that
// all keys of a page begin with are stored once, at the end of the page. Little endian, after the page header:
//
//	24      26     28     30       32      34       36
//	┌───────┬──────┬──────┬────────┬───────┬────────┬─────────┬───────┬────────────────┬────────┐
//	│ count │ heap │ used │ prefix │ runAt │ runLen │ slots … │ free  │ cells, garbage │ prefix │  leaf
//	└───────┴──────┴──────┴────────┴───────┴────────┴─────────┴───────┴────────────────┴────────┘
//	                                                36      44                                 4096
//	                                                ┌───────┬─────────┬─
//	                                             …  │ first │ slots … │  …                         branch
//	                                                └───────┴─────────┴─
//
// count is the number of cells, heap the offset of the lowest, used the sum of the cells' sizes (the rest above heap is
// garbage), prefix the length of the common prefix. runAt and runLen are a hint, without meaning for readers: where the last
// cell was inserted, and how many insertions in a row went just behind (or, negative, just before) the one before. first is the
// reference of child c0.
//
// The page is valid if and only if its header names the type and level that its parent expects, slots end at or below heap,
// every slot is the offset of a cell that lies wholly between heap and the prefix, no two cells overlap, their sizes sum up to
// used, their keys ascend strictly, prefix ≤ 256, and a leaf has at least one cell.
//
// A cell, for leaves and branches alike; sizes below 128 take one byte, larger ones two (low seven bits with the high bit
// set, then the next seven):
//
//	┌─────────────────┬───────────┬───────────┬───────┬───────┬─────────┬───────────┐
//	│ keySize<<1|over │ key bytes │ valueSize │ value │ chain │ keyRest │ valueRest │
//	└─────────────────┴───────────┴───────────┴───────┴───────┴─────────┴───────────┘
//	                                                  └── only if over: 8, 4, 4 ────┘
//
// The key is the page's prefix, then the key bytes here, then keyRest bytes of the chain. The value is the value here, or
// valueRest bytes of the chain, after those of the key. In a branch the key is a separator and the value the 8 bytes of the
// child's reference. A cell is valid if and only if not both rests are 0 where there is a chain; keyRest is 0 or the key has
// exactly 256 bytes in the page; valueRest is 0 or the value here is empty; and in a branch valueRest is 0 and the value
// 8 bytes.
//
// So keys up to 972 bytes lie in the page whole, and of larger ones 256 bytes; values lie in the page if at most 980 bytes
// of the entry then do. Four cells of the largest size always fit a page: this is why a page that overflows can be split.
//
// An overflow page:
//
//	24     32     36                      4096
//	┌──────┬──────┬──────────────────────┐
//	│ next │ rest │ bytes …              │
//	└──────┴──────┴──────────────────────┘
//
// It is valid if and only if rest, the number of bytes in the chain from this page on, is what the cell or the page
// before implies, and next is 0 exactly if rest ≤ 4060. So a chain cannot be circular, and nothing is allocated for a length that
// no page confirms. A chain belongs to one cell and is never edited; it moves with the cell when pages split and merge.
//
// # Edits
//
// Edits go through page.Editor: all pages from the root to the leaf are made changeable with Edit, and each new reference is put
// where the old one stood. An error leaves the tree of that write in an undefined state: the caller drops the write.
//
//   - A cell is inserted in place if there is room. Else the page is repacked (garbage collected, prefix computed anew),
//     and only if that does not make room it is split.
//   - A split at the right edge of the tree leaves a full page behind, at the left edge likewise; so does a run of ascending or
//     descending insertions in the middle. Any other split balances bytes. Neither half is ever empty.
//   - A page less than two fifths full is merged with a sibling, or takes cells from it. If the parent has no room for the
//     separator that this needs, the page is left as it is; it is looked at again with the next deletion.
//
// # Damage
//
// Readers get pages whose checksum and identity were verified, and yet trust nothing in them: each offset is checked where
// it is used. What is wrong yields an error that wraps page.ErrCorrupt and names the page; never a panic, and all loops are bounded
// by levels, counts or rests.
package btree

import (
	"errors"
	"fmt"
	"math"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

const (
	// KeySizeMax and ValueSizeMax bound what Put and Build take, and what a reader believes.
	KeySizeMax   = 1 << 24
	ValueSizeMax = 1 << 30

	// EntriesUnknown stands in Head.Entries once a drop has begun: it reads no leaf that it need not.
	EntriesUnknown = math.MaxUint64

	heightMax = 32 // 2^32 leaves even if every branch had two children
)

// Head is what must be remembered of a tree. The zero Head is an empty tree without pages.
type Head struct {
	Root     page.Ref // 0 if the tree is empty
	Height   uint8    // levels; a root that is a leaf makes 1
	Entries  uint64   // keys, or EntriesUnknown
	Pages    uint64   // pages of all kinds
	Overflow uint64   // overflow pages among them; if 0, no leaf need be read to find all pages
}

// Tree is a tree to read: a Head, and the pages it reaches.
type Tree struct {
	Head
	R page.Reader
}

// Config is how trees are edited. The zero Config is the one for production; trees edited under different ones are
// equally valid.
type Config struct {
	// MaxEntries bounds the cells of a page: 0 means as many as fit. Tests and simulations set 4, so that few keys make a
	// high tree. Less than 4 counts as 4.
	MaxEntries int
}

func (c Config) max() int {
	if c.MaxEntries == 0 {
		return math.MaxInt
	}
	return max(c.MaxEntries, 4)
}

// Get finds the value of key. It allocates only for a value in overflow pages; any other aliases a page, and lives as
// long as what t.R stands for and, inside a write, until the next edit.
func (t Tree) Get(key []byte) (value []byte, ok bool, err error) {
	ref := t.Root
	if ref == 0 {
		return nil, false, nil
	}
	for level := int(t.Height) - 1; ; level-- {
		n, err := load(t.R, ref, level)
		if err != nil {
			return nil, false, err
		}
		pos, equal, err := n.search(t.R, key)
		if err != nil {
			return nil, false, err
		}
		if level > 0 {
			if equal {
				pos++
			}
			if ref, err = n.child(pos); err != nil {
				return nil, false, err
			}
			continue
		}
		if !equal {
			return nil, false, nil
		}
		it, err := n.item(pos)
		if err != nil {
			return nil, false, err
		}
		value, err = it.wholeValue(t.R, nil)
		return value, err == nil, err
	}
}

func checkSizes(key, value int) error {
	if key > KeySizeMax {
		return fmt.Errorf("btree: a key of %d bytes: the limit is %d", key, KeySizeMax)
	}
	if value > ValueSizeMax {
		return fmt.Errorf("btree: a value of %d bytes: the limit is %d", value, ValueSizeMax)
	}
	return nil
}

func corrupt(id page.ID, what string) error {
	return fmt.Errorf("btree: page %d: %s: %w", id, what, page.ErrCorrupt)
}

var errOrder = errors.New("btree: the keys to build a tree of do not ascend")
