// Package page knows the bytes of the data file: pages and their headers, the meta pages, and which page is free.
package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Size of a page in bytes.
const Size = 4096

// ID is a page's number: its offset in the data file divided by Size. 0 and 1 are the meta pages, so 0 also means "none".
type ID uint64

// Gen is a generation: the count of opens << 40 | a number that grows with every write unit and every sealed batch. A
// page's birth is the generation of the write that built it; a snapshot's number is one too, taken when its batch is
// sealed. So a page in a snapshot has birth < number, and the converse does not hold.
type Gen uint64

// GenCounterBits is the width of the part of a Gen below the count of opens.
const GenCounterBits = 40

// Run is count adjacent pages.
type Run struct {
	First ID
	Count uint32
}

// End is the page after the run.
func (r Run) End() ID { return r.First + ID(r.Count) }

// Ref is how one page names another: the ID in the low 40 bits, 24 bits drawn from the child's birth above. A page that
// took another's place (a lost or misdirected write) has another birth and is recognised on the verifying read. The bits
// are mixed from the whole birth: its low bits alone start again at every open, as do the page ids handed out, so that a
// stale page of an earlier run would match too often. The zero Ref is "none".
type Ref uint64

const (
	refIDBits = 40
	refIDMask = 1<<refIDBits - 1
)

// MakeRef names page id, born at birth.
func MakeRef(id ID, birth Gen) Ref { return Ref(uint64(id)&refIDMask | birthBits(birth)<<refIDBits) }

func birthBits(birth Gen) uint64 { return uint64(birth) * 0x9E3779B97F4A7C15 >> refIDBits }

func (r Ref) ID() ID { return ID(uint64(r) & refIDMask) }

// Matches reports whether birth can be the birth of the page that r names.
func (r Ref) Matches(birth Gen) bool { return uint64(r)>>refIDBits == birthBits(birth) }

func (r Ref) String() string { return fmt.Sprintf("%d@%06x", r.ID(), uint64(r)>>refIDBits) }

// Type is what a page holds. Meta pages, region bitmaps and slab extents have no page header: other checks guard them.
type Type uint8

const (
	TypeBranch   Type = iota + 1 // of a tree
	TypeLeaf                     // of a tree
	TypeOverflow                 // of a tree: a part of a large key or value
	TypeTable                    // of a record table, at any level
)

// Page header, little endian:
//
//	0     4      5       6          8       16       24
//	┌─────┬──────┬───────┬──────────┬───────┬────────┐
//	│ crc │ type │ level │ reserved │ id    │ birth  │ body …
//	└─────┴──────┴───────┴──────────┴───────┴────────┘
//
// A page is valid if and only if crc is the CRC-32C of all that follows it, id is its own number, and birth is what the
// reference that led to it says. level is 0 for leaves and overflow pages, and grows towards the root.
const HeaderSize = 24

var (
	// ErrCorrupt is damage to bytes that were durable. Every such error wraps it and names the place.
	ErrCorrupt = errors.New("corrupt")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Checksum is the CRC-32C that all formats here use.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ChecksumUpdate continues crc over b.
func ChecksumUpdate(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// Init writes the header of a new page into b, which is Size bytes and zero. The checksum is Seal's business.
func Init(b []byte, t Type, level uint8, id ID, birth Gen) {
	b[4] = byte(t)
	b[5] = level
	binary.LittleEndian.PutUint64(b[8:], uint64(id))
	binary.LittleEndian.PutUint64(b[16:], uint64(birth))
}

func TypeOf(b []byte) Type   { return Type(b[4]) }
func LevelOf(b []byte) uint8 { return b[5] }
func IDOf(b []byte) ID       { return ID(binary.LittleEndian.Uint64(b[8:])) }
func BirthOf(b []byte) Gen   { return Gen(binary.LittleEndian.Uint64(b[16:])) }

// Rebirth gives a copied page its new identity.
func Rebirth(b []byte, id ID, birth Gen) {
	binary.LittleEndian.PutUint64(b[8:], uint64(id))
	binary.LittleEndian.PutUint64(b[16:], uint64(birth))
}

// Seal computes the checksum. It is called when a page is about to be written to the file, never before.
func Seal(b []byte) { binary.LittleEndian.PutUint32(b, Checksum(b[4:Size])) }

// Verify checks a page read from the file against the reference that led to it.
func Verify(b []byte, ref Ref) error {
	switch {
	case binary.LittleEndian.Uint32(b) != Checksum(b[4:Size]):
		return fmt.Errorf("page %d: checksum mismatch: %w", ref.ID(), ErrCorrupt)
	case IDOf(b) != ref.ID():
		return fmt.Errorf("page %d: holds page %d: %w", ref.ID(), IDOf(b), ErrCorrupt)
	case !ref.Matches(BirthOf(b)):
		return fmt.Errorf("page %d: born at %#x, but the reference to it is %v: %w", ref.ID(), uint64(BirthOf(b)), ref, ErrCorrupt)
	}
	return nil
}

// Reader gives pages by reference. The bytes are Size long, verified, read-only, and valid as long as what the Reader
// stands for (a pinned snapshot, an open write) is.
type Reader interface {
	Page(ref Ref) ([]byte, error)
}

// Editor is a Reader that also builds pages. Everything it builds belongs to one write, which is installed whole or
// dropped whole: an error in the middle of an edit therefore leaves nothing to undo, and the structure being edited may be
// in any state; the caller drops the write.
//
// Only pages that this write has made may be changed in place. Own tells them apart.
type Editor interface {
	Reader
	// New makes a page; its header is written, its body is zero.
	New(t Type, level uint8) (Ref, []byte, error)
	// Edit gives a changeable page with the content of ref: the page itself if this write made it (the same Ref comes
	// back), else a copy under a new Ref, and ref is retired. The caller must then put the new Ref where ref stood.
	Edit(ref Ref) (Ref, []byte, error)
	// Retire says that the tree no longer reaches ref.
	Retire(ref Ref)
	// Own reports whether this write made ref.
	Own(ref Ref) bool
}
