package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

// TestCrashInOutAndMerge takes crash images while pipelines write. After $out the target has all that it had or all that the pipeline
// made, with its indexes either way, and nothing is left of the collection that it filled; after $merge each document is as it was or as
// it becomes. Once the command was answered it is the new state.
func TestCrashInOutAndMerge(t *testing.T) {
	const docsOld, docsNew = 40, 90
	out := func(n int) string { return fmt.Sprintf("{_id: %d, n: %d, new: true}", n, n*10) }
	old := func(n int) string { return fmt.Sprintf("{_id: %d, n: %d}", n, n) }
	for _, c := range []struct {
		name  string
		stage string
		whole bool
	}{
		{"out", `{$out: "target"}`, true},
		{"merge", `{$merge: {into: "target", whenMatched: "replace"}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			images := 0
			for seed := uint64(1); seed <= 2; seed++ {
				disk := simfs.New(simfs.Options{})
				opt := Options{Env: disk.Env(seed), TTLSweep: -1, Storage: storage.Options{
					Manual: true, SegmentSize: 64 << 10, BlockSize: 16 << 10, Reserve: 32, MapReserve: 1 << 28,
					Geometry: page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8}, Tree: btree.Config{MaxEntries: 4},
				}}
				db, err := Open("/db", opt)
				if err != nil {
					t.Fatal(err)
				}
				to := Namespace{DB: ns.DB, Coll: "target"}
				ctx := context.Background()
				fill := func(to Namespace, n int, text func(int) string) {
					var in []bson.Raw
					for i := range n {
						in = append(in, doc(text(i)))
					}
					if r, err := db.Insert(ctx, to, in, true); err != nil || len(r.Errors) > 0 {
						t.Fatal(r.Errors, err)
					}
				}
				fill(to, docsOld, old)
				fill(ns, docsNew, func(n int) string { return fmt.Sprintf("{_id: %d, n: %d}", n, n) })
				if _, err := db.CreateIndexes(ctx, to, docs(`{key: {n: -1}, name: "n"}`)); err != nil {
					t.Fatal(err)
				}
				answered := false
				judge := func(image *simfs.FS) error {
					o := opt
					o.Env = image.Env(1)
					db, err := Open("/db", o)
					if err != nil {
						return fmt.Errorf("does not open: %w", err)
					}
					defer db.Close()
					var faults []error
					if err := db.Check(ctx, func(fault error) { faults = append(faults, fault) }); err != nil || len(faults) > 0 {
						return fmt.Errorf("check: %w", errors.Join(append(faults, err)...))
					}
					list, err := db.ListCollections(ctx, ns.DB)
					if err != nil || len(list) != 2 {
						return fmt.Errorf("collections: %v, %w", list, err)
					}
					specs, err := db.ListIndexes(ctx, to)
					if err != nil || len(specs) != 2 {
						return fmt.Errorf("indexes: %v, %w", specs, err)
					}
					cur, err := db.Find(ctx, to, Find{Sort: doc("{_id: 1}")})
					if err != nil {
						return err
					}
					var got []string
					if _, err := cur.Batch(ctx, 1<<30, func(d bson.Raw) bool {
						got = append(got, value.Text(value.Document(d)))
						return true
					}); err != nil {
						return err
					}
					made := 0
					for i, line := range got {
						switch line {
						case out(i):
							made++
						case old(i):
						default:
							return fmt.Errorf("document %d is %s", i, line)
						}
					}
					switch {
					case answered && made != docsNew:
						return fmt.Errorf("it was answered, and %d documents of %d are there", made, docsNew)
					case c.whole && (made > 0 && (made != docsNew || len(got) != docsNew) || made == 0 && len(got) != docsOld):
						return fmt.Errorf("%d documents are there, %d of them are new", len(got), made)
					case len(got) < docsOld:
						return fmt.Errorf("only %d documents are left", len(got))
					}
					return nil
				}
				off := false
				look := func(when string) {
					off = true
					defer func() { off = false }()
					for _, choice := range append(disk.Choices(seed*1000+uint64(images), 1), simfs.Choice{Gen: simfs.Killed}) {
						image := disk.Crash(choice)
						if err := judge(image); err != nil {
							t.Fatalf("seed %d, crash at %s, choice %v: %v", seed, when, choice, err)
						}
						images++
						image.Discard()
					}
				}
				disk.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) {
					if !off {
						look(fmt.Sprintf("%s %v", e.When, e.Call))
					}
				}})
				if _, err := db.Aggregate(ctx, ns, Aggregate{Stages: docs(`{$project: {n: {$multiply: ["$n", 10]}, new: {$literal: true}}}`, c.stage)}); err != nil {
					t.Fatal(err)
				}
				answered = true
				look("the end")
				disk.SetHooks(simfs.Hooks{})
				closeChecked(t, db)
			}
			t.Logf("%d images", images)
			if images < 40 {
				t.Errorf("only %d images were judged", images)
			}
		})
	}
}
