package simfs

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

// TestImagesHoldOnlyWhatWasThere compares images with the whole history: each sector must hold what it held after some
// step since the last sync, and what the extremes promise is exact.
func TestImagesHoldOnlyWhatWasThere(t *testing.T) {
	const span = 6 * pageSize
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 1))
		opt := Options{SectorSize: []int{512, 4096}[r.IntN(2)]}
		d := New(opt)
		opened := must(d.Open("f", env.OpenCreate))
		check(d.SyncDir("/"))
		var history [][]byte // since the last sync, whose state is the first
		now := func() []byte {
			p := make([]byte, span)
			copy(p, must(d.Peek("f", 0, span)))
			return p
		}
		history = append(history, now())
		d.SetHooks(Hooks{Watch: func(e Event) {
			if e.Op != OpSync && e.When != Before {
				history = append(history, now())
			}
		}})
		judge := func(c Choice) {
			t.Helper()
			img := d.Crash(c)
			p := make([]byte, span)
			copy(p, must(img.Peek("f", 0, span)))
			for s := 0; s < span; s += opt.SectorSize {
				// A kept shrink cuts whatever version the sector holds.
				uncut := bytes.TrimRight(p[s:s+opt.SectorSize], "\x00")
				found := false
				for _, h := range history {
					found = found || bytes.HasPrefix(h[s:s+opt.SectorSize], uncut)
				}
				if !found {
					t.Fatalf("seed %d: %s: the sector at %d holds what never was there", seed, c, s)
				}
			}
		}
		for step := range 60 {
			off, n := int64(r.IntN(span)), int64(r.IntN(6000))
			n = min(n, span-off)
			switch r.IntN(9) {
			case 0:
				check(opened.Datasync())
				history = [][]byte{now()}
				if got := d.Crash(Choice{Gen: DropAll}); !bytes.Equal(must(got.Peek("f", 0, span)), must(d.Peek("f", 0, span))) {
					t.Fatalf("seed %d, step %d: a sync left something behind", seed, step)
				}
			case 1:
				check(opened.Truncate(off))
			case 2:
				check(opened.PunchHole(off, n))
			case 3:
				check(opened.Allocate(off, n))
			case 4:
				d.WriteBack(r.Uint64(), 0.5)
			default:
				must(opened.WriteAt(letters(byte('a'+step%26), int(n)), off))
			}
			for _, c := range d.Choices(r.Uint64(), 12) {
				if !c.Garbage {
					judge(c)
				}
			}
			if got := d.Crash(Choice{Gen: KeepAll}); !bytes.Equal(must(got.Peek("f", 0, span)), must(d.Peek("f", 0, span))) {
				t.Fatalf("seed %d, step %d: keeping all lost something", seed, step)
			}
			if d.Used() != must(d.Stat("f")).Allocated {
				t.Fatalf("seed %d, step %d: %d bytes used, the file has %d", seed, step, d.Used(), must(d.Stat("f")).Allocated)
			}
		}
	}
}

func TestDiscardedImagesLeaveNothingBehind(t *testing.T) {
	d, f := synced(Options{})
	m := must(f.Map(1 << 40))
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // no such thing here
		}
		return len(entries)
	}
	before := count()
	for range 3000 {
		img := d.Crash(Choice{})
		n := must(must(img.Open("f", env.OpenExisting)).Map(1 << 40))
		if n.Bytes()[0] != 'a' {
			t.Fatal("wrong content")
		}
		img.Discard()
		if _, err := img.Stat("f"); err == nil {
			t.Fatal("a discarded disk answers")
		}
	}
	check(m.Unmap())
	check(must(f.Map(1 << 40)).Unmap())
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	d.Discard()
}

func TestUnreadableRangesFailReadsAndLoads(t *testing.T) {
	d, f := synced(Options{})
	must(f.WriteAt(letters('z', 1<<20), 0))
	m := must(f.Map(1 << 24))
	load := func(m env.Mapping, at int) error {
		return m.Guard(func() error { _ = m.Bytes()[at : at+1][0]; sink = m.Bytes()[at]; return nil })
	}
	check(d.SetUnreadable("f", 600_000, 100))
	if err := load(m, 600_050); err == nil {
		t.Error("a load of a bad place succeeded")
	}
	if _, err := f.ReadAt(make([]byte, 10), 600_095); err == nil {
		t.Error("a read of a bad place succeeded")
	}
	check(load(m, 100_000))
	img := d.Kill()
	n := must(must(img.Open("f", env.OpenReadOnly)).Map(1 << 24))
	if err := load(n, 600_050); err == nil {
		t.Error("the image has healed")
	}
	check(d.SetReadable("f"))
	check(load(m, 600_050))
	img.Discard()
	d.Discard()
}

var sink byte

func BenchmarkCrash(b *testing.B) {
	d, f := synced(Options{})
	must(f.WriteAt(letters('b', 16<<20), 0))
	check(f.Datasync())
	for i := range int64(64) {
		must(f.WriteAt(letters('c', 4096), i*40960))
	}
	b.Run("drop", func(b *testing.B) {
		for b.Loop() {
			d.Crash(Choice{Gen: DropAll})
		}
	})
	b.Run("random", func(b *testing.B) {
		for b.Loop() {
			d.Crash(Choice{Gen: Random, P: 0.5})
		}
	})
}
