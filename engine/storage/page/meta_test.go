package page

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// tiny has 64 pages in a region, 4 regions in a meta page, 8 in a directory page, so 32 in the largest file.
var tiny = Geometry{RegionPages: 64, Inline: 4, PerPage: 8}

func metaOf(generation uint64) Meta {
	return Meta{
		Geometry:       DefaultGeometry,
		UUID:           [16]byte{1, 2, 3},
		Generation:     generation,
		Gen:            Gen(3)<<GenCounterBits | 77,
		Opens:          3,
		LSN:            1 << 40,
		NextCollection: 12,
		HighWater:      5000,
		Heads:          TreeHead{Root: MakeRef(100, 5), Height: 1, Entries: 3, Pages: 1},
		Space:          TreeHead{Root: MakeRef(200, 6), Height: 2, Entries: 300, Pages: 4, Overflow: 1},
		Directory:      Directory{Regions: 1, Slots: []Slot{{Number: 2, Written: generation, CRC: 9}}},
	}
}

func TestMetaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom([]Geometry{DefaultGeometry, tiny, {RegionPages: 128, Inline: inlineMax, PerPage: perPageMax}}).Draw(t, "geometry")
		m := metaOf(rapid.Uint64Range(0, 1<<62-1).Draw(t, "generation"))
		m.Geometry = g
		m.HighWater = ID(rapid.IntRange(201, int(g.RegionPages)*g.regionsMax()).Draw(t, "highWater"))
		m.Directory.Regions = g.regionsFor(m.HighWater)
		m.Directory.Slots = make([]Slot, m.slots())
		for i := range m.Directory.Slots {
			m.Directory.Slots[i] = Slot{
				Number:  uint8(rapid.IntRange(1, 3).Draw(t, "slot")),
				Written: rapid.Uint64Range(0, m.Generation).Draw(t, "written"),
				CRC:     rapid.Uint32().Draw(t, "crc"),
			}
		}
		got, err := DecodeMeta(m.Encode(), m.Page())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestMetaRefusesDamage(t *testing.T) {
	m := metaOf(6)
	good := m.Encode()
	for bit := 0; bit < 8*Size; bit++ {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := DecodeMeta(b, 0); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	}
	for n := range Size {
		if _, err := DecodeMeta(good[:n], 0); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := DecodeMeta(good, 1); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("in the other page: %v", err)
	}
}

func TestMetaRefusesWhatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*Meta){
		"region size":         func(m *Meta) { m.Geometry.RegionPages = 100 },
		"inline":              func(m *Meta) { m.Geometry.Inline = 0 },
		"per page":            func(m *Meta) { m.Geometry.PerPage = perPageMax + 1 },
		"high-water mark":     func(m *Meta) { m.HighWater = 5 },
		"regions":             func(m *Meta) { m.HighWater += ID(m.Geometry.RegionPages) },
		"far too many pages":  func(m *Meta) { m.HighWater = 1 << 63 },
		"slots":               func(m *Meta) { m.Directory.Slots = nil },
		"slot from later":     func(m *Meta) { m.Directory.Slots[0].Written++ },
		"no slot with crc":    func(m *Meta) { m.Directory.Slots[0].Number = 0 },
		"opens":               func(m *Meta) { m.Opens = 1 << 24 },
		"root without height": func(m *Meta) { m.Heads.Height = 0 },
		"height without root": func(m *Meta) { m.Space.Root = 0 },
		"root beyond":         func(m *Meta) { m.Space.Root = MakeRef(5000, 1) },
	} {
		m := metaOf(6)
		change(&m)
		if err := m.check(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestMetaOfAnotherVersion(t *testing.T) {
	m := metaOf(6)
	b := m.Encode()
	b[8] = metaVersion + 1
	reseal(b)
	if _, err := DecodeMeta(b, 0); !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	// It must not be mistaken for a damaged one, whose place the other takes.
	older := metaOf(5)
	if _, err := Pick(b, older.Encode(), 6, true); !errors.Is(err, ErrVersion) {
		t.Fatal(err)
	}
}

func reseal(b []byte) {
	crc := Checksum(b[:metaCRC])
	b[metaCRC], b[metaCRC+1], b[metaCRC+2], b[metaCRC+3] = byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24)
}

func TestPick(t *testing.T) {
	page := func(generation uint64) []byte { m := metaOf(generation); return m.Encode() }
	torn := func(generation uint64) []byte { b := page(generation); b[1000]++; return b }
	blank := make([]byte, Size)
	const unknown = 1 << 63
	for _, c := range []struct {
		name         string
		slot0, slot1 []byte
		proven       uint64
		chosen       uint64
		fallback     uint64 // 0: none
		next         uint64
		durable      bool
	}{
		{"newest proven", page(8), page(7), 8, 8, 7, 9, true},
		{"newest proven, in page 1", page(8), page(9), 9, 9, 8, 10, true},
		{"newest not proven", page(8), page(9), 8, 8, 0, 11, true},
		{"newest not proven, proof of the older one lost", page(8), page(9), 7, 8, 0, 11, true},
		{"no log at all", page(8), page(9), unknown, 8, 0, 11, true},
		{"newest torn", page(8), torn(9), 8, 8, 0, 9, true},
		{"newest proven and rotten", page(8), torn(9), 9, 8, 0, 11, true},
		{"write of the newest lost", page(8), page(7), 9, 8, 0, 11, true},
		{"the older one rotten", torn(8), page(9), 9, 9, 0, 10, true},
		{"the older one rotten, the newest not proven", torn(8), page(9), 8, 9, 0, 10, false},
		{"writes of the newest lost, the other far older", torn(8), page(7), 8, 7, 0, 10, true},
		{"copy of a meta that was given up", page(8), page(11), 11, 11, 8, 12, true},
		{"a generation given up lies beside", page(8), page(11), 8, 8, 0, 13, true},
		{"first publish", page(0), blank, unknown, 0, 0, 1, false},
		{"first publish, proven", page(0), blank, 0, 0, 0, 1, true},
		{"first publish, short file", page(0), nil, 0, 0, 0, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Pick(c.slot0, c.slot1, c.proven, c.proven != unknown)
			if err != nil {
				t.Fatal(err)
			}
			fallback := uint64(0)
			if got.Fallback != nil {
				fallback = got.Fallback.Generation
			}
			if got.Chosen.Generation != c.chosen || fallback != c.fallback || got.Next != c.next || got.Durable != c.durable {
				t.Fatalf("chosen %d, fallback %d, next %d, durable %v", got.Chosen.Generation, fallback, got.Next, got.Durable)
			}
		})
	}

	for _, c := range []struct {
		name         string
		slot0, slot1 []byte
		known        bool
		want         error
	}{
		{"empty file", nil, nil, false, ErrNew},
		{"blank file", blank, blank, false, ErrNew},
		{"blank, a little", blank[:100], nil, false, ErrNew},
		{"blank, but the log knows better", blank, blank, true, ErrCorrupt},
		{"both rotten", torn(8), torn(9), true, ErrCorrupt},
		{"one blank, one rotten", blank, torn(9), false, ErrCorrupt},
		{"pages exchanged", page(9), page(8), true, ErrCorrupt},
	} {
		_, err := Pick(c.slot0, c.slot1, 9, c.known)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want == ErrCorrupt && (!strings.Contains(err.Error(), "meta page 0") || !strings.Contains(err.Error(), "meta page 1")) {
			t.Errorf("%s: %v does not name both", c.name, err)
		}
	}

	other := metaOf(9)
	other.UUID[0]++
	if _, err := Pick(page(8), other.Encode(), 9, true); !errors.Is(err, ErrCorrupt) {
		t.Errorf("two databases: %v", err)
	}
}

// A process is killed after it has written a meta page and before it has synced it. The next one opens the older meta, and
// the page cache shows it the unsynced one; what the disk holds in that page, the meta before, it cannot see. Were that
// page left as it is, a power cut would bring the meta before back after its bitmaps had been written over.
func TestSettleLeavesNothingUnknown(t *testing.T) {
	for _, c := range []struct {
		name   string
		proven uint64
		rotten bool // the older one, so that the unsynced one is all there is
		want   []uint64
	}{
		{"the older one is durable", 8, false, []uint64{8, 11}},
		{"nothing is known to be durable", 8, true, []uint64{10, 11}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := simfs.New(simfs.Options{})
			f, err := d.Open("data", env.OpenCreate)
			if err != nil {
				t.Fatal(err)
			}
			write := func(generation uint64, sync bool) {
				m := metaOf(generation)
				if err := m.Write(f); err != nil {
					t.Fatal(err)
				}
				if sync {
					if err := errors.Join(f.Datasync(), d.SyncDir("/")); err != nil {
						t.Fatal(err)
					}
				}
			}
			write(7, true)
			write(8, true)
			write(9, false)
			if c.rotten {
				if err := d.FlipBit("data", 800); err != nil {
					t.Fatal(err)
				}
			}
			d = d.Kill()
			if f, err = d.Open("data", env.OpenExisting); err != nil {
				t.Fatal(err)
			}
			slot0, slot1, err := ReadMetaPages(f)
			if err != nil {
				t.Fatal(err)
			}
			choice, err := Pick(slot0, slot1, c.proven, true)
			if err != nil {
				t.Fatal(err)
			}
			content := choice.Chosen
			if choice, err = Settle(f, choice); err != nil {
				t.Fatal(err)
			}
			if !choice.Durable || choice.Fallback == nil || choice.Next <= choice.Chosen.Generation {
				t.Fatalf("settled: %+v", choice)
			}
			power := d.Crash(simfs.Choice{Gen: simfs.DropAll})
			for i, generation := range c.want {
				b, err := power.Peek("data", int64(i)*Size, Size)
				if err != nil {
					t.Fatal(err)
				}
				m, err := DecodeMeta(b, ID(i))
				if err != nil {
					t.Fatal(err)
				}
				content.Generation = generation
				if d := cmp.Diff(content, m); d != "" {
					t.Errorf("meta page %d: %s", i, d)
				}
			}
		})
	}
}
