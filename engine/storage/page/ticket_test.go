package page

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

func TestTicket(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	before := b.Stats()
	k, err := b.Reserve(Request{Pages: 3, Runs: []uint32{16, 8}})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := k.Run(8); !ok || r.Count != 8 {
		t.Fatalf("run of 8: %v, %v", r, ok)
	} else {
		defer b.Free(r)
	}
	// More than was reserved may come from what is backed.
	for range 20 {
		if _, ok := k.Page(); !ok {
			t.Fatal("no page, though some are free and backed")
		}
	}
	// With nothing free, a longer run is cut.
	var all []*Ticket
	for b.Stats().Free-b.Stats().Unbacked > 0 {
		n := int(b.Stats().Free - b.Stats().Unbacked)
		l, err := b.Reserve(Request{Pages: n})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
		if len(all) > 100 {
			break
		}
	}
	b.SetReserve(1 << 30)
	if r, ok := k.Run(4); !ok || r.Count != 4 {
		t.Fatalf("run of 4 out of 16: %v, %v", r, ok)
	}
	if r, ok := k.Run(16); ok {
		t.Fatalf("run of 16 out of 12: %v", r)
	}
	k.Release()
	k.Release()
	for _, l := range all {
		l.Release()
	}
	b.sound()
	if got := b.Stats().Used; got != before.Used+8+20+4 {
		t.Fatalf("%d pages are in use, %d were before", got, before.Used)
	}
}

func TestReserveIsForThePrivileged(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	b.SetReserve(100)
	b.take(Request{Pages: 10})
	if s := b.Stats(); s.Free-s.Unbacked < 100 {
		t.Fatalf("%+v: the reserve has no storage", s)
	}
	b.disk().SetCapacity(b.disk().Used())
	var err error
	var n int
	for n = 0; err == nil; n++ {
		_, err = b.Reserve(Request{Pages: 7})
	}
	if !errors.Is(err, env.ErrNoSpace) {
		t.Fatal(err)
	}
	s := b.Stats()
	if left := s.Free - s.Unbacked; left < 100 || left >= 107 {
		t.Fatalf("%d pages left after %d tickets", left, n)
	}
	for range int(s.Free-s.Unbacked) / 10 {
		b.take(Request{Pages: 10, Privileged: true})
	}
	if _, err = b.Reserve(Request{Pages: 11, Privileged: true}); !errors.Is(err, env.ErrNoSpace) {
		t.Fatalf("more than there is: %v", err)
	}
	b.sound()
	// Space comes back with the disk's.
	b.disk().SetCapacity(0)
	b.take(Request{Pages: 50})
	if s := b.Stats(); s.Free-s.Unbacked < 100 {
		t.Fatalf("%+v: the reserve has not come back", s)
	}
}

func TestFullDiskFailsCleanly(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	runs := b.take(Request{Runs: []uint32{256, 256}})
	b.disk().SetCapacity(b.disk().Used() + 10*Size)
	before := b.Stats()
	for _, q := range []Request{{Runs: []uint32{4096}}, {Pages: 2000}, {Pages: 1, Runs: []uint32{4, 4096}}} {
		if _, err := b.Reserve(q); !errors.Is(err, env.ErrNoSpace) {
			t.Fatalf("%+v: %v", q, err)
		}
		b.sound()
		if after := b.Stats(); after.Used != before.Used || after.Pending != before.Pending {
			t.Fatalf("%+v: %+v, before %+v", q, after, before)
		}
	}
	// Freed runs are all that is left: on a full disk single pages may break them.
	b.Free(runs[0])
	n := 0
	for {
		k, err := b.Reserve(Request{Pages: 16})
		if errors.Is(err, env.ErrNoSpace) {
			break
		}
		for range 16 {
			id, _ := k.Page()
			if _, err := b.f.WriteAt(make([]byte, Size), int64(id)*Size); err != nil {
				t.Fatalf("page %d has no storage: %v", id, err)
			}
		}
		n += 16
	}
	if n < 256 {
		t.Fatalf("%d pages out of a free run of 256", n)
	}
	b.sound()
}

// What was cut off has no storage any more, and what the file could not grow by never had.
func TestTrimmedPagesNeedStorageAgain(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	b.Free(b.take(Request{Runs: []uint32{1000}})[0])
	if err := b.Trim(); err != nil {
		t.Fatal(err)
	}
	before := b.Stats()
	if before.File != 8 || before.Free != 0 {
		t.Fatalf("%+v: not trimmed", before)
	}
	b.disk().SetCapacity(b.disk().Used() + 30*Size)
	for range 3 {
		if _, err := b.Reserve(Request{Pages: 40}); !errors.Is(err, env.ErrNoSpace) {
			t.Fatal(err)
		}
		if s := b.Stats(); s != before {
			t.Fatalf("after a ticket that failed %+v, before %+v", s, before)
		}
	}
	b.disk().SetCapacity(0)
	for _, r := range b.take(Request{Pages: 40}) {
		b.disk().SetCapacity(b.disk().Used())
		if _, err := b.f.WriteAt(make([]byte, Size), int64(r.First)*Size); err != nil {
			t.Fatal(err)
		}
	}
	b.sound()
}

// What was punched comes back to the disk, is allocated again when it is needed, and what the disk then lacks is told in time.
func TestPunchedPagesNeedStorageAgain(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	held := b.take(Request{Runs: []uint32{100, 1000, 50}})
	b.Free(held[1])
	used := b.disk().Used()
	runs, err := b.Punch(100, 16)
	if err != nil {
		t.Fatal(err)
	}
	var n uint32
	for _, r := range runs {
		n += r.Count
	}
	if back := used - b.disk().Used(); back != int64(n)*Size || n < 900 || b.Stats().Holes != uint64(n) {
		t.Fatalf("punched %d pages, the disk has %d bytes more; %+v", n, back, b.Stats())
	}
	if runs, err := b.Punch(100, 16); len(runs) > 0 || err != nil {
		t.Fatal("punched twice:", runs, err)
	}
	b.disk().SetCapacity(b.disk().Used())
	if _, err := b.Reserve(Request{Runs: []uint32{1000}}); !errors.Is(err, env.ErrNoSpace) {
		t.Fatal(err)
	}
	b.disk().SetCapacity(0)
	for _, r := range b.take(Request{Runs: []uint32{1000}}) {
		b.disk().SetCapacity(b.disk().Used())
		if _, err := b.f.WriteAt(make([]byte, int64(r.Count)*Size), int64(r.First)*Size); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Stats(); s.Holes > 100 {
		t.Fatalf("%+v: holes in use", s)
	}
	b.sound()
}

// Writers take and give back while a publisher publishes and the disk is now and then full.
func TestWritersBesideAPublisher(t *testing.T) {
	b := newBench(t, Geometry{RegionPages: 512, Inline: 4, PerPage: 16})
	var mu sync.Mutex // guards owner
	owner := map[ID]int{}
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			var held []Run
			own := func(run Run, from, to int) {
				mu.Lock()
				defer mu.Unlock()
				for _, id := range pagesOf(run) {
					if owner[id] != from {
						t.Errorf("page %d is %d's, not %d's", id, owner[id], from)
					}
					owner[id] = to
				}
			}
			for range 300 {
				k, err := b.Reserve(Request{Pages: r.IntN(40), Runs: []uint32{1 + uint32(r.IntN(90))}, Privileged: n == 0})
				if errors.Is(err, env.ErrNoSpace) {
					b.disk().SetCapacity(0)
				} else if err != nil {
					t.Error(err)
					return
				} else {
					for range r.IntN(50) {
						if id, ok := k.Page(); ok {
							held = append(held, Run{id, 1})
							own(Run{id, 1}, 0, n+1)
						}
					}
					if run, ok := k.Run(1 + uint32(r.IntN(90))); ok {
						held = append(held, run)
						own(run, 0, n+1)
					}
					k.Release()
				}
				for len(held) > 100 {
					i := r.IntN(len(held))
					own(held[i], n+1, 0)
					b.Free(held[i])
					held = slices.Delete(held, i, i+1)
				}
				if r.IntN(40) == 0 {
					b.disk().SetCapacity(b.disk().Used())
				}
			}
			for _, run := range held {
				own(run, n+1, 0)
				b.Free(run)
			}
		})
	}
	var kept []Run
	for i := range 60 {
		k, err := b.Reserve(Request{Pages: 5, Privileged: true})
		if err != nil {
			b.disk().SetCapacity(0)
			continue
		}
		var born []Run
		for range 5 {
			id, _ := k.Page()
			born = append(born, Run{id, 1})
		}
		var retired []Run
		if len(kept) > 20 {
			retired, kept = kept[:5], kept[5:]
		}
		kept = append(kept, born...)
		b.publish(born, retired)
		for _, run := range retired {
			b.Free(run)
		}
		if i%20 == 0 {
			if err := b.Trim(); err != nil {
				t.Fatal(err)
			}
		}
		if i%7 == 0 {
			if _, err := b.Punch(50, 4); err != nil {
				t.Fatal(err)
			}
		}
	}
	writers.Wait()
	b.publish(nil, nil)
	b.publish(nil, nil)
	b.disk().SetCapacity(0)
	if f := b.faults(MapUsed, kept...) + b.faults(MapPublished, kept...); f != "" {
		t.Fatal(f)
	}
	if err := b.reopen(); err != nil {
		t.Fatal(err)
	}
}
