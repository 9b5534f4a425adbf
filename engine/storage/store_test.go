package storage

import (
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
