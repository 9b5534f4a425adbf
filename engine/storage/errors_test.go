package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/simfs"
)

// TestEveryCallFailsInTurn runs one workload again and again, each time with another call to the disk failing once. What the
// write reports as an error has not happened; what it reports as done is there; if the database failed it says so and is
// whole after it is opened again; else it goes on.
func TestEveryCallFailsInTurn(t *testing.T) {
	failCalls(t, rand.New(rand.NewPCG(*fromFlag, 8)), 1)
	seeds(t, func(t *testing.T, r *rand.Rand) { failCalls(t, r, 12) }) // samples, of other workloads
}

// failCalls takes about one call in so many.
func failCalls(t *testing.T, r *rand.Rand, share int) {
	faults := []simfs.Fault{
		{Err: simfs.EIO},
		{Err: simfs.ENOSPC},
		{Err: simfs.EIO, Short: 512},
		{Err: simfs.ENOSPC, Short: 4096},
		{Err: simfs.EIO, Sync: simfs.CleanKept},
		{Err: simfs.EIO, Sync: simfs.CleanReverted, Written: 0.5},
	}
	seed := r.Uint64()
	for nth := 1; ; nth += 1 + r.IntN(share) {
		fault := faults[r.IntN(len(faults))]
		fault.Seed = seed
		if !failOnce(t, seed, nth, fault) {
			return
		}
	}
}

// failOnce reports whether the workload made as many calls as nth.
func failOnce(t *testing.T, seed uint64, nth int, fault simfs.Fault) bool {
	r := rand.New(rand.NewPCG(seed, 3))
	var hit *simfs.Call
	fail := simfs.FailNth(nth, fault)
	w := newWorld(t, r, simfs.Options{Hooks: simfs.Hooks{Fault: func(c simfs.Call) *simfs.Fault {
		f := fail(c)
		if f != nil {
			hit = &c
		}
		return f
	}}})
	defer w.disk.Discard()
	context := func(what string, err error) string {
		return fmt.Sprintf("call %d (%v) failing with %v %v: %s: %v", nth, hit, fault.Err, fault.Sync, what, err)
	}
	reopen := func() {
		if err := w.open(); err != nil {
			t.Fatal(context("opening again", err))
		}
		n := -1
		f, err := read(w.s)
		if err != nil {
			t.Fatal(context("reading after opening again", err))
		}
		for i, h := range w.history {
			if h == f {
				n = i
			}
		}
		if n < w.acked {
			t.Fatal(context(fmt.Sprintf("state %d after opening again, %d was acknowledged", n, w.acked), nil))
		}
		if rep := w.s.Check(); len(rep.Faults) > 0 {
			t.Fatal(context(fmt.Sprintf("check after opening again: %q", rep.Faults), nil))
		}
	}
	if err := w.open(); err != nil {
		if hit == nil {
			t.Fatal(context("open", err))
		}
		reopen()
	}
	for range 40 {
		err := w.step()
		if err == nil {
			continue
		}
		if hit == nil {
			t.Fatal(context("step", err))
		}
		if w.s == nil || w.s.closed.Load() { // it failed in the step that closes and opens
			reopen()
			return true
		}
		if w.s.Failed() != nil {
			if err := w.leaveAll(); err != nil {
				t.Fatal(context("a pinned snapshot after a failure", err))
			}
			if _, err := w.s.Write(func(*Writer) error { return nil }); !errors.Is(err, ErrFailed) {
				t.Fatal(context("a write after a failure", err))
			}
			if _, err := read(w.s); err != nil {
				t.Fatal(context("a read after a failure", err))
			}
			_ = w.s.Close()
			reopen()
			return true
		}
	}
	if hit == nil {
		return false
	}
	if w.s.Failed() == nil {
		w.sound(context("at the end", nil))
	}
	_ = w.s.Close()
	reopen()
	return true
}

// TestFullDisk fills the disk. Writes fail with a clear error; reads and deletes go on; what deletes free can be used again;
// and the database opens.
func TestFullDisk(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{})
		w.o.Reserve = 64
		w.disk.SetCapacity(3<<20 + r.Int64N(1<<20))
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		if err := w.create(); err != nil {
			t.Fatal(err)
		}
		id, mc := w.pick()
		for round := range 3 {
			full := false
			for range 5000 {
				if err := w.insert(id, mc); err != nil {
					if !errors.Is(err, ErrDiskFull) {
						t.Fatalf("round %d: insert: %v", round, err)
					}
					full = true
					break
				}
				if r.IntN(30) == 0 {
					if err := w.s.Checkpoint(); err != nil && !errors.Is(err, ErrDiskFull) {
						t.Fatalf("round %d: checkpoint: %v", round, err)
					}
				}
			}
			if !full {
				t.Fatalf("round %d: the disk never was full", round)
			}
			w.sound(fmt.Sprintf("round %d, disk full", round))
			for len(mc.records) > 20 {
				rids := sortedKeys(mc.records)
				rids = rids[:min(len(rids), 40)]
				c, err := w.s.WriteFreeing(func(wr *Writer) error {
					c := wr.Lock(id)
					for _, rid := range rids {
						if err := c.Remove(rid); err != nil {
							return err
						}
					}
					return nil
				})
				if err := errors.Join(err, c.Wait()); err != nil {
					t.Fatalf("round %d: delete on a full disk: %v", round, err)
				}
				for _, rid := range rids {
					delete(mc.records, rid)
				}
				w.history = append(w.history, w.m.fingerprint())
				if err := w.s.Checkpoint(); err != nil {
					t.Fatalf("round %d: checkpoint on a full disk: %v", round, err)
				}
			}
			w.sound(fmt.Sprintf("round %d, emptied", round))
			if r.IntN(2) == 0 {
				if err := w.s.Close(); err != nil {
					t.Fatal(err)
				}
				if err := w.open(); err != nil {
					t.Fatalf("round %d: open: %v", round, err)
				}
			}
		}
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFullDiskKeepsItsPromises fills the disk with one batch: the log that its writes were promised must be there when it is
// written, though the data file has taken the rest.
func TestFullDiskKeepsItsPromises(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{})
		w.o.Reserve = 64
		w.disk.SetCapacity(3<<20 + r.Int64N(1<<20))
		if err := errors.Join(w.open(), w.create(), w.wait()); err != nil {
			t.Fatal(err)
		}
		id, mc := w.pick()
		record := make([]byte, 1000+r.IntN(3000))
		for range 5000 {
			for i := range record {
				record[i] = byte(r.Uint32()) // nothing that could be compressed
			}
			var rid RecordID
			c, err := w.s.Write(func(wr *Writer) (err error) {
				rid, err = wr.Lock(id).Insert(record)
				return err
			})
			if errors.Is(err, ErrDiskFull) {
				w.sound("disk full")
				if err := w.s.Close(); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			mc.records[rid] = string(record)
			w.waiting = append(w.waiting, c)
			w.history[len(w.history)-1] = w.m.fingerprint()
		}
		t.Fatal("the disk never was full")
	})
}

// TestDamageIsNeverAWrongAnswer flips a bit, or zeroes a sector, of what was durable. The database says so, at open or when
// the place is read, or has the right answer; Check finds it if it is reachable.
func TestDamageIsNeverAWrongAnswer(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{})
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		for range 150 {
			if err := w.step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if err := w.s.Mark(); err != nil {
			t.Fatal(err)
		}
		names, err := w.disk.List(testDir)
		if err != nil {
			t.Fatal(err)
		}
		told, right := 0, 0
		for range 150 {
			image := w.disk.Crash(simfs.Choice{Gen: simfs.DropAll})
			name := testDir + "/" + names[r.IntN(len(names))]
			info, err := image.Stat(name)
			if err != nil || info.Size == 0 {
				image.Discard()
				continue
			}
			what := ""
			if r.IntN(3) > 0 {
				bit := r.Int64N(info.Size * 8)
				what = fmt.Sprintf("bit %d of %s flipped", bit, name)
				err = image.FlipBit(name, bit)
			} else {
				off := r.Int64N(info.Size) &^ 511
				what = fmt.Sprintf("sector at %d of %s zeroed", off, name)
				err = image.Zero(name, off, min(512, info.Size-off))
			}
			if err != nil {
				t.Fatal(err)
			}
			if said := damaged(t, w, image, what); said {
				told++
			} else {
				right++
			}
			image.Discard()
		}
		t.Logf("%d times an error, %d times the right answer", told, right)
	})
}

func damaged(t *testing.T, w *world, image *simfs.FS, what string) (told bool) {
	s, err := Open(image.Env(1), testDir, w.o)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !strings.Contains(err.Error(), "version") {
			t.Fatalf("%s: open: %v", what, err)
		}
		return true
	}
	defer s.release()
	f, err := read(s)
	switch {
	case err != nil && !errors.Is(err, ErrCorrupt):
		t.Fatalf("%s: read: %v", what, err)
	case err != nil:
		if rep := s.Check(); len(rep.Faults) == 0 {
			t.Fatalf("%s: a read says %v, and check finds nothing", what, err)
		}
		return true
	case f != w.history[len(w.history)-1]:
		t.Fatalf("%s: a wrong answer", what)
	}
	return false
}
