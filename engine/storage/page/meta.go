package page

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env"
)

// TreeHead is what a meta page remembers of a tree. Its fields are those of btree.Head.
type TreeHead struct {
	Root     Ref
	Height   uint8
	Entries  uint64
	Pages    uint64
	Overflow uint64
}

// Meta is the content of a meta page: one published snapshot.
type Meta struct {
	Geometry       Geometry
	UUID           [16]byte // of the database
	Generation     uint64   // counts publishes; its lowest bit is the meta page that it lives in
	Gen            Gen      // of the pages: none published is younger
	Opens          uint64   // how often the database was opened
	LSN            uint64   // the snapshot's; the log is replayed from here
	NextCollection uint32
	HighWater      ID       // pages: all that are reachable lie below, and the file is at least this long
	Heads          TreeHead // the collections' heads
	Space          TreeHead // the extents and their live bytes
	Directory      Directory
}

// Directory says which bitmap slot counts for each region that lies below the high-water mark: as one Slot for a region, or,
// if those are more than Geometry.Inline, as one Slot for a directory page.
type Directory struct {
	Regions int
	Slots   []Slot
}

// Meta page, little endian:
//
//	0       8         12            16       18        20               24
//	┌───────┬─────────┬─────────────┬────────┬─────────┬────────────────┐
//	│ magic │ version │ regionPages │ inline │ perPage │ nextCollection │
//	├───────┼─────────┴──┬──────────┴──┬─────┴──┬──────┴─┬──────────────┤
//	│ uuid  │ generation │ gen         │ opens  │ lsn    │ highWater    │
//	24      40           48            56       64       72             80
//	├───────┬───────┬─────────┬──────┬───────────┬──────────────────────┤
//	│ heads │ space │ regions │ zero │ directory │ zero …           crc │
//	80      120     160       164    168         168 + 12 × slots    4092
//
// A tree head is root, height in 8 bytes, entries, pages, overflow. Meta page 0 or 1 is valid if and only if crc is the
// CRC-32C of all before it, magic and version are as below, the lowest bit of generation is its own number, and all fields
// agree with each other as check says. The place of magic, version and crc is the same in all versions.
const (
	metaMagic   = "MFDBdata"
	metaVersion = 1

	metaHeads     = 80
	metaSpace     = 120
	metaRegions   = 160
	metaDirectory = 168
	metaCRC       = Size - 4
)

// ErrVersion: the file's format is one that this program does not know. It is not damage.
var ErrVersion = errors.New("unknown format version")

// Page is the meta page that m lives in.
func (m *Meta) Page() ID { return ID(m.Generation & 1) }

// Encode gives the bytes of the page. It panics if m is not a meta that Decode would take: a meta page that
// cannot be read back is data loss.
func (m *Meta) Encode() []byte {
	if err := m.check(); err != nil {
		panic(fmt.Sprintf("meta generation %d: %v", m.Generation, err))
	}
	b := make([]byte, Size)
	le := binary.LittleEndian
	copy(b, metaMagic)
	le.PutUint32(b[8:], metaVersion)
	le.PutUint32(b[12:], m.Geometry.RegionPages)
	le.PutUint16(b[16:], m.Geometry.Inline)
	le.PutUint16(b[18:], m.Geometry.PerPage)
	le.PutUint32(b[20:], m.NextCollection)
	copy(b[24:], m.UUID[:])
	le.PutUint64(b[40:], m.Generation)
	le.PutUint64(b[48:], uint64(m.Gen))
	le.PutUint64(b[56:], m.Opens)
	le.PutUint64(b[64:], m.LSN)
	le.PutUint64(b[72:], uint64(m.HighWater))
	m.Heads.put(b[metaHeads:])
	m.Space.put(b[metaSpace:])
	le.PutUint32(b[metaRegions:], uint32(m.Directory.Regions))
	for i, s := range m.Directory.Slots {
		s.put(b[metaDirectory+i*slotSize:])
	}
	le.PutUint32(b[metaCRC:], Checksum(b[:metaCRC]))
	return b
}

// DecodeMeta reads meta page number slot, 0 or 1.
func DecodeMeta(b []byte, slot ID) (Meta, error) {
	bad := func(format string, args ...any) (Meta, error) {
		return Meta{}, fmt.Errorf("meta page %d: %s: %w", slot, fmt.Sprintf(format, args...), ErrCorrupt)
	}
	le := binary.LittleEndian
	switch {
	case len(b) != Size:
		return bad("%d bytes long", len(b))
	case string(b[:len(metaMagic)]) != metaMagic:
		return bad("no magic number")
	case le.Uint32(b[metaCRC:]) != Checksum(b[:metaCRC]):
		return bad("checksum mismatch")
	case le.Uint32(b[8:]) != metaVersion:
		return Meta{}, fmt.Errorf("meta page %d: format version %d, this program knows %d: %w", slot, le.Uint32(b[8:]), metaVersion, ErrVersion)
	}
	m := Meta{
		Geometry: Geometry{
			RegionPages: le.Uint32(b[12:]),
			Inline:      le.Uint16(b[16:]),
			PerPage:     le.Uint16(b[18:]),
		},
		UUID:           [16]byte(b[24:40]),
		NextCollection: le.Uint32(b[20:]),
		Generation:     le.Uint64(b[40:]),
		Gen:            Gen(le.Uint64(b[48:])),
		Opens:          le.Uint64(b[56:]),
		LSN:            le.Uint64(b[64:]),
		HighWater:      ID(le.Uint64(b[72:])),
		Heads:          treeHeadAt(b[metaHeads:]),
		Space:          treeHeadAt(b[metaSpace:]),
	}
	if err := m.Geometry.valid(); err != nil {
		return bad("%v", err)
	}
	regions := le.Uint32(b[metaRegions:])
	if uint64(regions) > uint64(m.Geometry.regionsMax()) {
		return bad("%d regions, the most is %d", regions, m.Geometry.regionsMax())
	}
	m.Directory.Regions = int(regions)
	m.Directory.Slots = make([]Slot, m.slots())
	for i := range m.Directory.Slots {
		m.Directory.Slots[i] = slotAt(b[metaDirectory+i*slotSize:])
	}
	rest := b[metaDirectory+len(m.Directory.Slots)*slotSize : metaCRC]
	if le.Uint32(b[metaRegions+4:]) != 0 || !allZero(rest) ||
		!allZero(b[metaHeads+9:metaHeads+16]) || !allZero(b[metaSpace+9:metaSpace+16]) {
		return bad("bytes that should be zero are not")
	}
	if m.Page() != slot {
		return bad("holds generation %d, which belongs into the other", m.Generation)
	}
	if err := m.check(); err != nil {
		return bad("%v", err)
	}
	return m, nil
}

// Write writes m into its page. It is not durable before the file is synced, and everything that it reaches must be
// durable before it is called: a meta page that names an unwritten page is data loss.
func (m *Meta) Write(f env.File) error {
	if _, err := f.WriteAt(m.Encode(), int64(m.Page())*Size); err != nil {
		return fmt.Errorf("meta page %d: %w", m.Page(), err)
	}
	return nil
}

// slots is the number of directory slots in the meta page.
func (m *Meta) slots() int {
	if n := m.Geometry.dirPages(m.Directory.Regions); n > 0 {
		return n
	}
	return m.Directory.Regions
}

// check says which of the rules that hold between the fields of a meta is broken.
func (m *Meta) check() error {
	if err := m.Geometry.valid(); err != nil {
		return err
	}
	d := m.Directory
	switch {
	case m.HighWater < ID(m.Geometry.fixedPages(0)):
		return fmt.Errorf("high-water mark %d", m.HighWater)
	case m.HighWater > ID(m.Geometry.regionsMax())*ID(m.Geometry.RegionPages) || d.Regions != m.Geometry.regionsFor(m.HighWater):
		return fmt.Errorf("%d regions for a high-water mark of %d pages", d.Regions, m.HighWater)
	case len(d.Slots) != m.slots():
		return fmt.Errorf("%d directory slots for %d regions", len(d.Slots), d.Regions)
	case m.Opens >= 1<<(64-GenCounterBits):
		return fmt.Errorf("opened %d times", m.Opens)
	case m.Generation >= 1<<62:
		return fmt.Errorf("generation %d", m.Generation)
	}
	for i, s := range d.Slots {
		if err := s.check(m.Generation); err != nil {
			return fmt.Errorf("directory entry %d: %w", i, err)
		}
		if s.Number == 0 && len(d.Slots) != d.Regions {
			return fmt.Errorf("directory page %d is nowhere", i)
		}
	}
	for _, t := range []struct {
		name string
		TreeHead
	}{{"heads", m.Heads}, {"space", m.Space}} {
		if (t.Root == 0) != (t.Height == 0) || t.Root.ID() >= m.HighWater {
			return fmt.Errorf("%s tree of height %d at page %v", t.name, t.Height, t.Root)
		}
	}
	return nil
}

func (t TreeHead) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b, uint64(t.Root))
	b[8] = t.Height
	le.PutUint64(b[16:], t.Entries)
	le.PutUint64(b[24:], t.Pages)
	le.PutUint64(b[32:], t.Overflow)
}

func treeHeadAt(b []byte) TreeHead {
	le := binary.LittleEndian
	return TreeHead{
		Root:     Ref(le.Uint64(b)),
		Height:   b[8],
		Entries:  le.Uint64(b[16:]),
		Pages:    le.Uint64(b[24:]),
		Overflow: le.Uint64(b[32:]),
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
