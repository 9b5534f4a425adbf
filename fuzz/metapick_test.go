package fuzz

import (
	"bytes"
	"errors"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// FuzzMetaPick lays two meta pages before Pick, whole, torn, blank or made of any bytes, and a log that calls some generation
// durable, and compares the answer with the rule as a sentence: the newest of those that count as durable, else the only
// valid one.
func FuzzMetaPick(f *testing.F) {
	f.Add([]byte{0, 4, 0, 3}, uint64(4), true, []byte{})
	f.Add([]byte{0, 4, 0, 5}, uint64(4), true, []byte{})
	f.Add([]byte{0, 4, 1, 5}, uint64(5), true, []byte{})
	f.Add([]byte{0, 4, 0, 3}, uint64(5), true, []byte{})
	f.Add([]byte{2, 0, 2, 0}, uint64(0), false, []byte{})
	f.Add([]byte{2, 0, 2, 0}, uint64(1), true, []byte{})
	f.Add([]byte{0, 0, 3, 0}, uint64(0), false, []byte("MFDBdata"))
	f.Add([]byte{0, 4, 4, 3}, uint64(0), false, []byte{})
	f.Add([]byte{0, 4, 5, 3}, uint64(0), false, []byte{})
	f.Fuzz(func(t *testing.T, kinds []byte, proven uint64, known bool, raw []byte) {
		if len(kinds) < 4 {
			return
		}
		proven %= 1 << 60
		var slots [2][]byte
		for i := range slots {
			slots[i] = metaSlot(kinds[2*i], uint64(kinds[2*i+1]), raw)
		}
		got, err := page.Pick(slots[0], slots[1], proven, known)

		// The rule, spelled out.
		var valid [2]bool
		var metas [2]page.Meta
		for i, b := range slots {
			m, err := page.DecodeMeta(b, page.ID(i))
			metas[i] = m
			stale := known && uint64(i) == proven&1 && m.Generation < proven
			valid[i] = err == nil && !stale
		}
		durable := func(i int) bool {
			m := metas[i]
			return valid[i] && (known && m.Generation <= proven || valid[1-i] && m.Generation < metas[1-i].Generation)
		}
		blank := len(bytes.Trim(slots[0], "\x00")) == 0 && len(bytes.Trim(slots[1], "\x00")) == 0
		switch {
		case blank && !known:
			if !errors.Is(err, page.ErrNew) {
				t.Fatalf("blank: %v", err)
			}
			return
		case !valid[0] && !valid[1]:
			if !errors.Is(err, page.ErrCorrupt) && !errors.Is(err, page.ErrVersion) {
				t.Fatalf("both invalid: %v", err)
			}
			return
		case err != nil:
			strangers := valid[0] && valid[1] && (metas[0].UUID != metas[1].UUID || metas[0].Geometry != metas[1].Geometry)
			if !strangers && !errors.Is(err, page.ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		want := 0
		switch {
		case durable(0) && durable(1):
			if metas[1].Generation > metas[0].Generation {
				want = 1
			}
		case durable(1), valid[1] && !durable(0):
			want = 1
		}
		if got.Chosen.Generation != metas[want].Generation || got.Durable != durable(want) {
			t.Fatalf("chosen generation %d, durable %v, want page %d", got.Chosen.Generation, got.Durable, want)
		}
		other := 1 - want
		older := durable(want) && durable(other) && metas[other].Generation < metas[want].Generation
		if (got.Fallback != nil) != older || older && got.Fallback.Generation != metas[other].Generation {
			t.Fatalf("fallback %+v, want one: %v", got.Fallback, older)
		}
		if got.Next&1 == uint64(want) || known && got.Next <= proven {
			t.Fatalf("next generation %d after page %d, %d proven", got.Next, want, proven)
		}
		for i := range metas {
			if valid[i] && got.Next <= metas[i].Generation {
				t.Fatalf("next generation %d, but there is %d", got.Next, metas[i].Generation)
			}
		}
	})
}

// metaSlot is a meta page as a disk may have it.
func metaSlot(kind byte, generation uint64, raw []byte) []byte {
	m := page.Meta{
		Geometry:   page.DefaultGeometry,
		Generation: generation,
		HighWater:  100,
		Directory:  page.Directory{Regions: 1, Slots: []page.Slot{{Number: 1, Written: generation, CRC: 5}}},
	}
	b := make([]byte, page.Size)
	switch kind % 7 {
	case 0: // whole
		return m.Encode()
	case 1: // torn
		copy(b, m.Encode()[:2048])
		return b
	case 2: // blank
		return b
	case 3: // cut short
		return m.Encode()[:len(raw)%page.Size]
	case 4: // of another database
		m.UUID[0] = 9
		return m.Encode()
	case 5: // of a later version
		b = m.Encode()
		b[8]++
		return resealMeta(b)
	default: // whole to the eye
		b = m.Encode()
		copy(b[min(int(generation), page.Size):], raw)
		return resealMeta(b)
	}
}
