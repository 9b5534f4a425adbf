package page

import (
	"encoding/binary"
	"fmt"
)

// Geometry is how the data file is divided. It is chosen when the file is made, recorded in every meta page, and never
// changed. [DefaultGeometry] is for all but tests and simulations, which want many regions in a small file.
//
// The file is a row of regions. A region begins with pages that are never allocated, its fixed pages:
//
//	region 0                 every PerPage-th region        any other region
//	0 1    meta pages        0 1 2  bitmap slots            0 1 2  bitmap slots
//	2 3 4  bitmap slots      3 4 5  directory slots         3 …    pages to allocate
//	5 6 7  directory slots   6 …    pages to allocate
//	8 …    pages to allocate
//
// A region's bitmap fills one page at most, and has three fixed slots: each of the two durable meta pages names one, so one
// is always left to write, and nothing need be allocated to save the allocator. The directory, which says for every region
// which slot counts, is in the meta page up to Inline regions. A larger file has directory pages of PerPage entries, each
// with three slots of its own, and the meta page says which of those count.
type Geometry struct {
	RegionPages uint32 // pages of a region: a multiple of 64, 32 768 at most
	Inline      uint16 // directory entries in a meta page
	PerPage     uint16 // directory entries in a directory page
}

// DefaultGeometry has regions of 128 MiB, a directory in the meta page up to 40 GiB, and a largest file of 12.5 TiB.
var DefaultGeometry = Geometry{RegionPages: 8 * Size, Inline: 320, PerPage: 320}

const (
	metaPages   = 2
	bitmapSlots = 3
	dirSlots    = 3

	groupPages     = 64 // a word of a bitmap
	regionPagesMax = 8 * Size
	inlineMax      = (metaCRC - metaDirectory) / slotSize
	perPageMax     = Size / slotSize
)

// valid says what is wrong with g, if anything.
func (g Geometry) valid() error {
	switch {
	case g.RegionPages < groupPages || g.RegionPages > regionPagesMax || g.RegionPages%groupPages != 0:
		return fmt.Errorf("regions of %d pages", g.RegionPages)
	case g.Inline < 1 || g.Inline > inlineMax:
		return fmt.Errorf("%d directory entries in a meta page", g.Inline)
	case g.PerPage < 1 || g.PerPage > perPageMax:
		return fmt.Errorf("%d directory entries in a directory page", g.PerPage)
	}
	return nil
}

// regionsMax is the number of regions of the largest file.
func (g Geometry) regionsMax() int { return int(g.Inline) * int(g.PerPage) }

// regionOf is the region that page id lies in.
func (g Geometry) regionOf(id ID) int { return int(id / ID(g.RegionPages)) }

// regionsFor is the number of regions that a file of so many pages touches.
func (g Geometry) regionsFor(pages ID) int {
	return int((pages + ID(g.RegionPages) - 1) / ID(g.RegionPages))
}

// dirPages is the number of directory pages that so many regions need; 0 if their entries fit the meta page.
func (g Geometry) dirPages(regions int) int {
	if regions <= int(g.Inline) {
		return 0
	}
	return (regions + int(g.PerPage) - 1) / int(g.PerPage)
}

// fixedPages is the number of pages at the head of a region that are never allocated.
func (g Geometry) fixedPages(region int) int {
	n := bitmapSlots
	if region == 0 {
		n += metaPages
	}
	if region%int(g.PerPage) == 0 {
		n += dirSlots
	}
	return n
}

// bitmapSlot is the page of the region's bitmap slot number slot, 1 to 3.
func (g Geometry) bitmapSlot(region int, slot uint8) ID {
	id := ID(region) * ID(g.RegionPages)
	if region == 0 {
		id += metaPages
	}
	return id + ID(slot-1)
}

// dirSlot is the page of slot number slot, 1 to 3, of directory page dir.
func (g Geometry) dirSlot(dir int, slot uint8) ID {
	return g.bitmapSlot(dir*int(g.PerPage), 1) + bitmapSlots + ID(slot-1)
}

// Slot says which of three fixed slots holds the current content of a bitmap or of a directory page. The zero Slot says
// that there is none: a bitmap without one has no pages in use but the fixed ones.
type Slot struct {
	Number  uint8  // 1 to 3
	Written uint64 // the meta generation that wrote it
	CRC     uint32 // of the whole page
}

// A slot takes 12 bytes, little endian: the checksum (4), then Written << 2 | Number (8).
const slotSize = 12

func (s Slot) put(b []byte) {
	binary.LittleEndian.PutUint32(b, s.CRC)
	binary.LittleEndian.PutUint64(b[4:], s.Written<<2|uint64(s.Number))
}

func slotAt(b []byte) Slot {
	v := binary.LittleEndian.Uint64(b[4:])
	return Slot{Number: uint8(v & 3), Written: v >> 2, CRC: binary.LittleEndian.Uint32(b)}
}

// check tells a slot that can have been written from one that cannot.
func (s Slot) check(generation uint64) error {
	if s.Number == 0 && s != (Slot{}) {
		return fmt.Errorf("no slot, but a checksum")
	}
	if s.Written > generation {
		return fmt.Errorf("slot written by generation %d, later than %d", s.Written, generation)
	}
	return nil
}

// third is a slot number that is neither a's nor b's.
func third(a, b Slot) uint8 {
	for n := uint8(1); ; n++ {
		if n != a.Number && n != b.Number {
			return n
		}
	}
}
