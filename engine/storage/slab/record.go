// Package slab knows the bytes of stored records, and the table that says where each is.
//
// Records live outside the trees, packed one after the other in extents: runs of pages that one collection owns. Extents
// have no header; what is known of one (its collection, its birth, how many of its bytes are live) stands in the database's
// space tree. A record never moves within its extent, and the bytes of a sealed record never change; a changed document is a
// new record in a new place.
//
// The record table maps RecordID → Place. It is a radix tree of copy-on-write pages, so a snapshot has its own; indexes hold
// RecordIDs, so a record moves without touching an index.
//
// What always holds: a record begins on a multiple of 8 bytes, lies whole inside one extent, and every live record is in
// exactly one slot of its collection's table.
package slab

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Record, little endian, at a multiple of 8:
//
//	0     4      8            16
//	┌─────┬──────┬────────────┬───────────────┬─────────┐
//	│ crc │ size │ RecordID   │ size bytes    │ 0 … 7   │
//	└─────┴──────┴────────────┴───────────────┴─────────┘
//
// A record is valid if and only if crc is the CRC-32C of (collection id, offset in the file, all bytes from size to the end
// of the record), or 1 if that is 0, RecordID is the one that was asked for, and the low 16 bits of crc are the check bits of the slot that
// led here. The collection and the offset catch records that landed elsewhere; the slot's check bits catch an older
// record of the same number in the same place, left there by a lost write.
const (
	HeaderSize = 16
	Align      = 8
	// SizeMax bounds a record: a document of 16 MiB and what a server may add to it.
	SizeMax = 16<<20 + 16<<10
)

// Footprint is the room that a record of size bytes takes.
func Footprint(size int) int { return (HeaderSize + size + Align - 1) &^ (Align - 1) }

// Place is where a record is, as a slot of the table holds it: the offset in the file divided by Align in the low 48 bits,
// 16 check bits above. 0 is "no record".
type Place uint64

const offsetBits = 48

func makePlace(off int64, crc uint32) Place {
	return Place(uint64(off)/Align | uint64(crc&0xffff)<<offsetBits)
}

// Offset is the record's position in the data file, in bytes.
func (p Place) Offset() int64 { return int64(uint64(p)&(1<<offsetBits-1)) * Align }

func (p Place) check() uint32 { return uint32(uint64(p) >> offsetBits) }

// Write puts a record into b, which lies at offset off of the file and is Footprint(len(record)) bytes.
func Write(b []byte, coll uint32, id uint64, off int64, record []byte) Place {
	binary.LittleEndian.PutUint32(b[4:], uint32(len(record)))
	binary.LittleEndian.PutUint64(b[8:], id)
	n := HeaderSize + copy(b[HeaderSize:], record)
	clear(b[n:])
	crc := checksum(coll, off, b[4:n])
	binary.LittleEndian.PutUint32(b, crc)
	return makePlace(off, crc)
}

// checksum is that of a record at an offset of a collection. Those come first, twelve bytes digested here one by one: in a buffer
// of their own they would cost every read an allocation.
func checksum(coll uint32, off int64, rest []byte) uint32 {
	crc := ^uint32(0)
	for i := 0; i < 32; i += 8 {
		crc = castagnoli[byte(crc)^byte(coll>>i)] ^ crc>>8
	}
	for i := 0; i < 64; i += 8 {
		crc = castagnoli[byte(crc)^byte(off>>i)] ^ crc>>8
	}
	return max(page.ChecksumUpdate(^crc, rest), 1)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Scan looks at what begins at b, in an extent whose records up to here are known: a record, live or not, of that number and
// footprint; or nothing, and then the rest of the page is empty, because a checkpoint rounded up the extent's fill.
func Scan(b []byte) (id uint64, size int, ok bool) {
	// Not the RecordID tells: of a gap of 8 bytes it lies behind the end, in the next page's first record.
	if len(b) < HeaderSize || binary.LittleEndian.Uint32(b) == 0 {
		return 0, 0, false
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n > SizeMax || Footprint(int(n)) > len(b) {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b[8:]), Footprint(int(n)), true
}

// Read gives the record at p from b, which begins at p's offset and reaches at least to the end of the extent or of what is
// readable. full says whether to compute the checksum: bytes that this process wrote and never let go need none.
func Read(b []byte, coll uint32, id uint64, p Place, full bool) ([]byte, error) {
	off := p.Offset()
	if len(b) < HeaderSize {
		return nil, fmt.Errorf("record %d of collection %d at offset %d: beyond the end of the file: %w", id, coll, off, page.ErrCorrupt)
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > SizeMax || int(size) > len(b)-HeaderSize {
		return nil, fmt.Errorf("record %d of collection %d at offset %d: size %d: %w", id, coll, off, size, page.ErrCorrupt)
	}
	if got := binary.LittleEndian.Uint64(b[8:]); got != id {
		return nil, fmt.Errorf("record %d of collection %d at offset %d: holds record %d: %w", id, coll, off, got, page.ErrCorrupt)
	}
	n := HeaderSize + int(size)
	crc := binary.LittleEndian.Uint32(b)
	if crc&0xffff != p.check() || full && crc != checksum(coll, off, b[4:n]) {
		return nil, fmt.Errorf("record %d of collection %d at offset %d: checksum mismatch: %w", id, coll, off, page.ErrCorrupt)
	}
	return b[HeaderSize:n:n], nil
}
