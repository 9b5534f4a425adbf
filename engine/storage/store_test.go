package storage

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/simfs"
)

var (
	seedFlag  = flag.Uint64("storage.seed", 0, "run only this seed")
	seedsFlag = flag.Int("storage.seeds", 8, "how many seeds to run")
	fromFlag  = flag.Uint64("storage.from", 1, "the first of them")
)

// seeds runs f for each seed of the run, and says how to replay one that fails.
func seeds(t *testing.T, f func(t *testing.T, r *rand.Rand)) {
	first, n := *fromFlag, *seedsFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("replay: go test ./engine/storage -run '^%s$' -storage.seed %d", t.Name()[:len(t.Name())-len(fmt.Sprintf("/seed=%d", seed))], seed)
				}
			}()
			f(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func TestStoreFollowsModel(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{})
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		for i := range 600 {
			if err := w.step(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if i%50 == 0 {
				w.sound(fmt.Sprintf("after step %d", i))
			}
		}
		w.sound("at the end")
		w.bounded()
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		w.sound("after reopening")
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCheckpointTakesNoPageOfALaterBatch: batches that commit between a checkpoint's seal and the building of its trees make
// pages and give them up. The checkpoint must not get one of those, for the allocator would be told of both in the wrong order.
func TestCheckpointTakesNoPageOfALaterBatch(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{})
		if err := errors.Join(w.open(), w.create(), w.wait()); err != nil {
			t.Fatal(err)
		}
		id, mc := w.pick()
		for range 5 {
			var sn *Snapshot
			var folds []fold
			var trees metaTrees
			var built *Writer
			err := w.s.holdFree(func() (err error) {
				w.s.lead(func() {
					w.s.commitOpen(true)
					sn = w.s.Snapshot()
				})
				for range 20 {
					if err := errors.Join(w.insert(id, mc), w.wait()); err != nil {
						return err
					}
				}
				folds = w.s.foldsUpTo(sn.num)
				trees, built, err = w.s.buildMetaTrees(sn, folds)
				return err
			})
			if err == nil {
				err = errors.Join(w.s.proveMeta(), w.s.writeCheckpoint(sn, folds, trees, built))
			}
			if err != nil {
				t.Fatal(err)
			}
			sn.Release()
			if err := w.s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			w.sound("after a checkpoint that batches overtook")
		}
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
