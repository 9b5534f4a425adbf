package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

// A removal that had to run again, since a checkpoint had moved the place under it, found that another client had taken the document
// meanwhile, and gave it to its client all the same. Whoever gets the document is the only one.
func TestDocumentIsTakenOnce(t *testing.T) {
	taken := 0
	for seed := range uint64(60) {
		disk := simfs.New(simfs.Options{})
		res := sim.Run(sim.Options{Seed: seed, Policy: sim.PolicyOf(seed), FS: disk}, func(w *sim.World) {
			if err := takeAll(w, rand.New(rand.NewPCG(seed, 31)), &taken); err != nil {
				w.Fail(err)
			}
		})
		disk.Discard()
		if res.Err != nil {
			t.Fatalf("seed %d: %v", seed, res.Err)
		}
	}
	t.Logf("%d documents taken", taken)
}

func takeAll(w *sim.World, r *rand.Rand, taken *int) error {
	ctx, ns := context.Background(), engine.Namespace{DB: "d", Coll: "c"}
	db, err := engine.Open("/db", engine.Options{Env: w.Env(), TTLSweep: -1, Storage: storage.Options{Manual: true, MapReserve: 1 << 28, SegmentSize: 64 << 10}})
	if err != nil {
		return err
	}
	const docs = 4
	got := make([]int, docs)
	taker := func() {
		for i := range docs {
			result, err := db.FindAndModify(ctx, ns, engine.FindAndModify{Filter: value.MustParseDocument(fmt.Sprintf("{_id: %d}", i)), Remove: true})
			if err != nil {
				w.Fail(err)
			}
			if result.Value != nil {
				got[i]++
			}
		}
	}
	var list []bson.Raw
	for i := range docs {
		list = append(list, value.MustParseDocument(fmt.Sprintf("{_id: %d, pad: %q}", i, make([]byte, r.IntN(50)))))
	}
	if _, err := db.Insert(ctx, ns, list, true); err != nil {
		return err
	}
	w.Parallel("taker", taker, taker, taker, func() {
		for i := range 6 {
			filler := value.MustParseDocument(fmt.Sprintf("{_id: %q}", fmt.Sprint("filler ", i)))
			if _, err := db.Insert(ctx, ns, []bson.Raw{filler}, true); err != nil {
				w.Fail(err)
			}
			if err := db.Store().Checkpoint(); err != nil {
				w.Fail(err)
			}
		}
	})
	for i, n := range got {
		if n != 1 {
			return fmt.Errorf("document %d was given to %d clients", i, n)
		}
		*taken += n
	}
	return db.Close()
}
