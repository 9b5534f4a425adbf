package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// TestCleanerFindsEveryRecord: the cleaner once mistook a gap of 8 bytes, between the last record before a checkpoint and the
// end of its page, for a record, and so passed over live ones. Sizes here are such that gaps of every multiple of 8 occur; the
// cleaner must come to the end of each extent with nothing left in it, and the file must not grow.
func TestCleanerFindsEveryRecord(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{Forgetful: true})
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		if err := w.create(); err != nil {
			t.Fatal(err)
		}
		id, mc := w.pick()
		put := func(n int) {
			for range n {
				record := w.bytes(r.IntN(200))
				var rid RecordID
				err := w.write(func(wr *Writer) (err error) {
					rid, err = wr.Lock(id).Insert(record)
					return err
				}, func() { mc.records[rid] = string(record) })
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		put(800)
		largest := int64(0)
		for round := range 6 {
			for k := range 80 {
				if err := w.delete(id, mc); err != nil {
					t.Fatal(err)
				}
				put(5)
				if k%20 == 0 {
					if err := errors.Join(w.wait(), w.s.Checkpoint()); err != nil {
						t.Fatal(err)
					}
				}
			}
			for n := 0; w.s.dirty(cleanShare) || w.s.space().dead()*100 > w.s.space().total*50; n++ {
				more, err := w.s.CleanStep()
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					break
				}
				if n > 1000 {
					t.Fatalf("the cleaner comes to no end: %+v", w.s.space())
				}
			}
			w.sound(fmt.Sprintf("round %d", round))
			size, err := w.s.file.Size()
			if err != nil {
				t.Fatal(err)
			}
			if round == 2 {
				largest = size
			}
			if round > 2 && size > largest*3/2 {
				t.Fatalf("round %d: the file has grown from %d to %d bytes", round, largest, size)
			}
		}
		if w.s.Stats().CleanedBytes == 0 {
			t.Fatal("nothing was cleaned")
		}
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCleanerBeginsAnewInAnotherExtent: the cleaner stops in the middle of an extent; that is emptied by removals, given back, and taken
// again by the same collection. In the new extent the cleaner must begin at the beginning.
func TestCleanerBeginsAnewInAnotherExtent(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), simfs.Options{})
	w.env.Buggify = func(string) bool { return true }
	if err := errors.Join(w.open(), w.create(), w.wait()); err != nil {
		t.Fatal(err)
	}
	id, mc := w.pick()
	var all []RecordID // in the order of their insertion
	insert := func() {
		record := w.bytes(1000)
		var rid RecordID
		err := w.write(func(wr *Writer) (err error) {
			rid, err = wr.Lock(id).Insert(record)
			return err
		}, func() { mc.records[rid] = string(record); all = append(all, rid) })
		if err != nil {
			t.Fatal(err)
		}
	}
	remove := func(rids []RecordID) {
		for _, rid := range rids {
			if err := w.write(func(wr *Writer) error { return wr.Lock(id).Remove(rid) }, func() { delete(mc.records, rid) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkpoint := func() {
		if err := errors.Join(w.wait(), w.s.Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		insert()
	}
	checkpoint()
	first := *w.s.coll(id).extents[0]
	of := func(x extent) (rids []RecordID) {
		for _, rid := range all {
			p, err := w.s.coll(id).head.Load().table.Get(w.s, uint64(rid))
			if err != nil {
				t.Fatal(err)
			}
			if at := page.ID(p.Offset() / page.Size); p != 0 && x.run.First <= at && at < x.run.End() {
				rids = append(rids, rid)
			}
		}
		return rids
	}
	old := of(first)
	remove(old[len(old)-4:])
	checkpoint()
	if more, err := w.s.CleanStep(); err != nil || !more || w.s.coll(id).cleaning.first != first.run.First {
		t.Fatalf("the cleaner is at %+v, and not in the extent at page %d: %v, %v", w.s.coll(id).cleaning, first.run.First, more, err)
	}
	remove(of(first))
	again := func() (extent, bool) {
		x := w.s.coll(id).extent(first.run.First)
		if x == nil || x.run.First != first.run.First || x.birth == first.birth || w.s.coll(id).head.Load().open.run == x.run {
			return extent{}, false
		}
		return *x, true
	}
	for range 3 { // to free the place
		checkpoint()
	}
	x, ok := again()
	for n := 0; !ok; x, ok = again() {
		if n++; n == 1000 {
			t.Fatal("the extent's place was not taken again")
		}
		insert()
	}
	checkpoint()
	now := of(x)
	remove(now[len(now)-4:])
	for range 100 {
		if more, err := w.s.CleanStep(); err != nil {
			t.Fatal(err)
		} else if !more {
			break
		}
	}
	if left := of(x); len(left) > 0 {
		t.Errorf("%d records are left in the extent that was cleaned", len(left))
	}
	w.sound("in the end")
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
}
