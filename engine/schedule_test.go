package engine

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

// schedules runs f with a database in simulated worlds, each with another schedule of its tasks, and checks the database after each.
func schedules(t *testing.T, n uint64, f func(w *sim.World, db *DB) error) {
	for seed := range n {
		res := sim.Run(sim.Options{Seed: seed, Policy: sim.PolicyOf(seed), Disk: simfs.Options{}, Buggify: func(string) bool { return true }}, func(w *sim.World) {
			db, err := Open("/db", Options{Env: w.Env(), TTLSweep: -1})
			if err == nil {
				err = f(w, db)
			}
			if err == nil {
				err = checkAll(db)
			}
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				w.Fail(err)
			}
		})
		res.FS.Discard()
		if res.Err != nil {
			t.Fatalf("schedule %d: %v", seed, res.Err)
		}
	}
}

// Of several that upsert the same document at once one inserts it, and the others find it.
func TestUpsertsInsertOnceUnderEverySchedule(t *testing.T) {
	schedules(t, 40, func(w *sim.World, db *DB) error {
		client := func() {
			for i := range 4 {
				r, err := db.Update(context.Background(), ns, []Update{{Filter: doc(fmt.Sprintf(`{k: %d}`, i)), Update: updateDoc(`{$inc: {n: 1}}`), Upsert: true}}, true)
				if err != nil || len(r.Errors) > 0 {
					w.Fail(fmt.Errorf("upsert: %v, %w", r.Errors, err))
				}
			}
		}
		w.Parallel("client", client, client, client)
		n, err := db.Count(context.Background(), ns, Count{Filter: doc(`{n: 3}`)})
		if err != nil || n != 4 {
			return fmt.Errorf("%d of 4 documents were incremented 3 times, %w", n, err)
		}
		return nil
	})
}

// A collection's number is used again once it is dropped and cleared away. Who looked the old one up must not write into the new one.
func TestWritersNoticeAnotherCollectionOfTheNumber(t *testing.T) {
	schedules(t, 40, func(w *sim.World, db *DB) error {
		a := Namespace{DB: "test", Coll: "a"}
		put := func(ns Namespace) {
			r, err := db.Insert(context.Background(), ns, []bson.Raw{doc(fmt.Sprintf(`{of: %q}`, ns.Coll))}, true)
			if err != nil || len(r.Errors) > 0 {
				w.Fail(fmt.Errorf("insert: %v, %w", r.Errors, err))
			}
		}
		var others []Namespace
		w.Parallel("client", func() {
			for range 8 {
				put(a)
			}
		}, func() {
			for i := range 4 {
				if _, _, err := db.DropCollection(context.Background(), a); err != nil {
					w.Fail(err)
				}
				for more := true; more; {
					var err error
					if more, err = db.store.ClearStep(); err != nil {
						w.Fail(err)
					}
				}
				b := Namespace{DB: "test", Coll: fmt.Sprint("b", i)}
				others = append(others, b)
				put(b)
			}
		})
		for _, ns := range append(others, a) {
			n, err := db.Count(context.Background(), ns, Count{Filter: doc(fmt.Sprintf(`{of: {$ne: %q}}`, ns.Coll))})
			if err != nil || n > 0 {
				return fmt.Errorf("%s has %d documents of another collection, %w", ns, n, err)
			}
		}
		return nil
	})
}

// Two documents of one key, made while a unique index is built over it, make the build fail, or are refused: the check that follows
// looks for both in the index.
func TestUniqueIndexHasNoDoublesUnderEverySchedule(t *testing.T) {
	built, refused := 0, 0
	schedules(t, 60, func(w *sim.World, db *DB) error {
		for i := range 12 {
			if _, err := db.Insert(context.Background(), ns, []bson.Raw{doc(fmt.Sprintf(`{_id: %d, k: %d}`, i, i))}, true); err != nil {
				return err
			}
		}
		w.Parallel("client", func() {
			_, err := db.CreateIndexes(context.Background(), ns, docs(`{key: {k: 1}, name: "k_1", unique: true}`))
			switch {
			case err == nil:
				built++
			case !mongoerr.Is(err, mongoerr.DuplicateKey):
				w.Fail(err)
			}
		}, func() {
			for i := range 3 {
				w.Yield("before a double")
				r, err := db.Insert(context.Background(), ns, []bson.Raw{doc(fmt.Sprintf(`{_id: %d, k: %d}`, 100+i, i))}, true)
				if err != nil {
					w.Fail(err)
				}
				refused += len(r.Errors)
				if len(r.Errors) == 0 && i < 2 { // taken back, so that only the last one counts
					if _, err := db.Delete(context.Background(), ns, []Delete{{Filter: doc(fmt.Sprintf(`{_id: %d}`, 100+i))}}, true); err != nil {
						w.Fail(err)
					}
				}
			}
		})
		return nil
	})
	if built == 0 || refused == 0 {
		t.Errorf("%d built, %d refused: nothing was put to the test", built, refused)
	}
}
