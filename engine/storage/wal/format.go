package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// LSN is a position in the endless log, in bytes. Blocks and segments begin at multiples of 4096.
type LSN uint64

// epoch is one life of the log between two recoveries: a counter in the high half, random bits in the low one.
type epoch uint64

const (
	unit         = 4096    // blocks are padded to it; the header takes one
	blockSizeMax = 1 << 20 // of a block in the file; bounds what a reader allocates
	lsnMax       = LSN(1) << 62
	segmentMax   = int64(1) << 40
	epochMax     = epoch(1<<32-1) << 32 // its successors need room

	segmentMagic  = 0x4c57464d // "MFWL"
	blockMagic    = 0x4257464d // "MFWB"
	formatVersion = 1
)

// Segment header, little endian, in the first of the segment's 4096-byte units; the rest of the unit is zero:
//
//	0     4       8         12         16   24      32      40     48         56      64        72       80
//	┌─────┬───────┬─────────┬──────────┬────┬───────┬───────┬──────┬──────────┬───────┬─────────┬────────┐
//	│ crc │ magic │ version │ reserved │ id │ epoch │ first │ size │ previous │ begin │ durable │ proven │
//	└─────┴───────┴─────────┴──────────┴────┴───────┴───────┴──────┴──────────┴───────┴─────────┴────────┘
//
// A segment header is valid if and only if crc is the CRC-32C of the 76 bytes that follow it, magic is "MFWL", reserved is 0,
// id is the number in the file's name, previous is below epoch and that below 2^64-2^32, size, first and begin are multiples
// of 4096, size is at least two of them, and begin is at most first. A valid header of another version is an error of its own.
const segmentHeaderSize = 80

// header is a segment's.
type header struct {
	id       uint64
	epoch    epoch
	first    LSN    // of the byte at offset 4096
	size     int64  // of the file when it was made
	previous epoch  // of what lies before begin; 0 if nothing does
	begin    LSN    // where the epoch begins: the cut of the one before
	durable  LSN    // all below was durable when this was written
	proven   uint64 // newest meta generation known durable then
}

// end is the LSN after the segment's last byte.
func (h *header) end() LSN { return h.first + LSN(h.size-unit) }

// offset is where in the file lsn is.
func (h *header) offset(lsn LSN) int64 { return unit + int64(lsn-h.first) }

func (h *header) encode(b []byte) {
	le := binary.LittleEndian
	clear(b[:unit])
	le.PutUint32(b[4:], segmentMagic)
	le.PutUint32(b[8:], formatVersion)
	le.PutUint64(b[16:], h.id)
	le.PutUint64(b[24:], uint64(h.epoch))
	le.PutUint64(b[32:], uint64(h.first))
	le.PutUint64(b[40:], uint64(h.size))
	le.PutUint64(b[48:], uint64(h.previous))
	le.PutUint64(b[56:], uint64(h.begin))
	le.PutUint64(b[64:], uint64(h.durable))
	le.PutUint64(b[72:], h.proven)
	le.PutUint32(b, page.Checksum(b[4:segmentHeaderSize]))
}

// errVersion: the segment was written by a version of the program that this one does not know.
var errVersion = errors.New("unsupported version of the log's format")

// decodeHeader reads the header of the segment numbered id.
func decodeHeader(b []byte, id uint64) (header, error) {
	le := binary.LittleEndian
	if len(b) < segmentHeaderSize || le.Uint32(b) != page.Checksum(b[4:segmentHeaderSize]) || le.Uint32(b[4:]) != segmentMagic {
		return header{}, fmt.Errorf("bad segment header: %w", page.ErrCorrupt)
	}
	if v := le.Uint32(b[8:]); v != formatVersion {
		return header{}, fmt.Errorf("%w: %d", errVersion, v)
	}
	size := le.Uint64(b[40:])
	h := header{
		id:       le.Uint64(b[16:]),
		epoch:    epoch(le.Uint64(b[24:])),
		first:    LSN(le.Uint64(b[32:])),
		size:     int64(min(size, uint64(segmentMax))),
		previous: epoch(le.Uint64(b[48:])),
		begin:    LSN(le.Uint64(b[56:])),
		durable:  LSN(le.Uint64(b[64:])),
		proven:   le.Uint64(b[72:]),
	}
	switch {
	case h.id != id:
		return header{}, fmt.Errorf("holds the header of segment %d: %w", h.id, page.ErrCorrupt)
	case le.Uint32(b[12:]) != 0 || h.previous >= h.epoch || h.epoch >= epochMax ||
		size > uint64(segmentMax) || size < 2*unit || size%unit != 0 ||
		h.first > lsnMax || h.first%unit != 0 || h.begin > h.first || h.begin%unit != 0:
		return header{}, fmt.Errorf("impossible segment header: %w", page.ErrCorrupt)
	}
	return h, nil
}

// Block header, little endian; the payload follows, then zeros up to a multiple of 4096:
//
//	0     4       8         16      24    32      40        48       56         60        64       68      72
//	┌─────┬───────┬─────────┬───────┬─────┬───────┬─────────┬────────┬──────────┬─────────┬────────┬───────┬─────────┐
//	│ crc │ magic │ segment │ epoch │ lsn │ first │ durable │ proven │ previous │ rawSize │ stored │ flags │ payload │
//	└─────┴───────┴─────────┴───────┴─────┴───────┴─────────┴────────┴──────────┴─────────┴────────┴───────┴─────────┘
//
// A block is valid if and only if crc is the CRC-32C of all that follows it up to the end of the payload, magic is "MFWB",
// segment and epoch are those of its segment's header, lsn is its own position, durable <= first <= lsn, it is not above
// 1 MiB and does not reach over the end of the segment, and rawSize and flags fit its stored size. A valid block belongs where
// it is if, further, previous is the crc of the block that ends where it begins, or 0 at the beginning of an epoch, and first
// is the beginning of its batch.
//
// stored is the size of the payload: an LZ4 block that decompresses to rawSize bytes if flag 2 is set, else rawSize
// bytes as they are. Flag 1 is set in the last block of a batch. durable and proven are those of the segment header.
const blockHeaderSize = 72

const (
	flagLast       = 1
	flagCompressed = 2
)

// block is what a reader keeps of a valid block.
type block struct {
	lsn      LSN
	first    LSN
	durable  LSN
	proven   uint64
	crc      uint32
	previous uint32
	raw      uint32
	stored   uint32
	flags    uint32
}

func (b *block) last() bool { return b.flags&flagLast != 0 }

// size is what the block takes in the file.
func (b *block) size() int { return padded(blockHeaderSize + int(b.stored)) }

// end is the LSN after the block.
func (b *block) end() LSN { return b.lsn + LSN(b.size()) }

// padded is n rounded up to a multiple of unit.
func padded(n int) int { return (n + unit - 1) &^ (unit - 1) }

// encode writes the header into d, which holds the payload behind it already, and notes the checksum.
func (b *block) encode(d []byte, h *header) {
	le := binary.LittleEndian
	le.PutUint32(d[4:], blockMagic)
	le.PutUint64(d[8:], h.id)
	le.PutUint64(d[16:], uint64(h.epoch))
	le.PutUint64(d[24:], uint64(b.lsn))
	le.PutUint64(d[32:], uint64(b.first))
	le.PutUint64(d[40:], uint64(b.durable))
	le.PutUint64(d[48:], b.proven)
	le.PutUint32(d[56:], b.previous)
	le.PutUint32(d[60:], b.raw)
	le.PutUint32(d[64:], b.stored)
	le.PutUint32(d[68:], b.flags)
	b.crc = page.Checksum(d[4 : blockHeaderSize+int(b.stored)])
	le.PutUint32(d, b.crc)
}

// decodeBlock reads the header of a block that should be at lsn of the segment with header h. Everything but the checksum is
// checked; see verifyBlock. d is at least blockHeaderSize long.
func decodeBlock(d []byte, h *header, lsn LSN) (block, bool) {
	le := binary.LittleEndian
	if le.Uint32(d[4:]) != blockMagic || le.Uint64(d[8:]) != h.id || epoch(le.Uint64(d[16:])) != h.epoch || LSN(le.Uint64(d[24:])) != lsn {
		return block{}, false
	}
	b := block{
		lsn:      lsn,
		first:    LSN(le.Uint64(d[32:])),
		durable:  LSN(le.Uint64(d[40:])),
		proven:   le.Uint64(d[48:]),
		crc:      le.Uint32(d),
		previous: le.Uint32(d[56:]),
		raw:      le.Uint32(d[60:]),
		stored:   le.Uint32(d[64:]),
		flags:    le.Uint32(d[68:]),
	}
	switch {
	case b.durable > b.first || b.first > b.lsn || b.flags&^(flagLast|flagCompressed) != 0:
		return block{}, false
	case b.stored > blockSizeMax-blockHeaderSize || b.raw > blockSizeMax || b.end() > h.end():
		return block{}, false
	case b.flags&flagCompressed == 0 && b.raw != b.stored:
		return block{}, false
	}
	return b, true
}

// verifyBlock checks the checksum of the block at the beginning of d.
func verifyBlock(d []byte, b *block) bool {
	n := blockHeaderSize + int(b.stored)
	return len(d) >= n && page.Checksum(d[4:n]) == b.crc
}

const (
	namePrefix = "wal-"
	nameNew    = "wal-new" // a segment that is being made
)

func segmentName(id uint64) string { return namePrefix + strconv.FormatUint(id, 10) }

// segmentID is the inverse of segmentName; it is false for any other name.
func segmentID(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 63)
	return id, err == nil && segmentName(id) == name
}
