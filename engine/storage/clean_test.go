package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

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
