package btree

import "github.com/multiforadb/multiforadb/engine/storage/page"

// Head is what must be remembered of a tree. The zero Head is an empty tree without pages.
type Head struct {
	Root     page.Ref // 0 if the tree is empty
	Height   uint8    // levels; a root that is a leaf makes 1
	Entries  uint64   // keys
	Pages    uint64   // pages of all kinds
	Overflow uint64   // overflow pages among them; if 0, no leaf need be read to find all pages
}

// Tree is a tree to read: a Head, and the pages it reaches.
type Tree struct {
	Head
	R page.Reader
}
