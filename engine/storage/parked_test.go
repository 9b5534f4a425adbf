package storage

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/simfs"
)

// TestParkedReaderHoldsOnlyWhatItSees: a reader that sits on one snapshot while every record is replaced many times over keeps
// the pages of its own snapshot from reuse, and none of the ones that came and went since. Nor does it hold the log up.
func TestParkedReaderHoldsOnlyWhatItSees(t *testing.T) {
	churn := func(park bool) (file, log int64) {
		w := newWorld(t, rand.New(rand.NewPCG(7, 7)), simfs.Options{Forgetful: true})
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		if err := w.create(); err != nil {
			t.Fatal(err)
		}
		id, mc := w.pick()
		for range 60 {
			if err := w.insert(id, mc); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.wait(), w.s.Checkpoint()); err != nil {
			t.Fatal(err)
		}
		var sn *Snapshot
		var was fingerprint
		if park {
			sn = w.s.Snapshot()
			was, _ = readSnapshot(sn)
		}
		for k := range 900 {
			if err := w.change(id, mc); err != nil {
				t.Fatal(err)
			}
			if k%30 == 0 {
				if err := errors.Join(w.wait(), w.s.Checkpoint()); err != nil {
					t.Fatal(err)
				}
				for range 4 {
					if _, err := w.s.CleanStep(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		file, log = int64(w.s.alloc.Stats().Used), w.s.log.Size()
		if park {
			if got, err := readSnapshot(sn); err != nil || got != was {
				t.Fatalf("the parked snapshot has changed (%v)", err)
			}
			sn.Release()
		}
		w.sound("at the end")
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
		return file, log
	}
	free, freeLog := churn(false)
	held, heldLog := churn(true)
	t.Logf("pages in use: %d without a reader, %d with one; log %d and %d bytes", free, held, freeLog, heldLog)
	if held > 3*free {
		t.Errorf("a parked reader holds %d pages, without it %d are in use", held, free)
	}
	if heldLog > 2*freeLog {
		t.Errorf("a parked reader holds %d bytes of log, without it there are %d", heldLog, freeLog)
	}
}
