package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func upd(t testing.TB, db *DB, u Update) UpdateResult {
	t.Helper()
	r, err := db.Update(context.Background(), ns, []Update{u}, true)
	if err != nil || len(r.Errors) > 0 {
		t.Fatalf("update: %v, %v", r.Errors, err)
	}
	return r
}

func updateDoc(text string) bson.RawValue { return value.Document(doc(text)) }

func TestUpdateKeepsIndexesInStep(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1}, name: "a"}`)
	createIndex(t, db, `{key: {b: -1, a: 1}, name: "ba", partialFilterExpression: {b: {$exists: true}}}`)
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: [1, 2], b: 5}`, `{_id: 3, a: 3}`)
	if r := upd(t, db, Update{Filter: doc(`{a: {$lte: 2}}`), Update: updateDoc(`{$set: {b: 7}}`), Multi: true}); r.Matched != 2 || r.Modified != 2 {
		t.Fatalf("got %+v", r)
	}
	expect(t, find(t, db, Find{Filter: doc(`{b: 7}`), Hint: value.String("ba"), Sort: doc(`{_id: 1}`)}), `{_id: 1, a: 1, b: 7}`, `{_id: 2, a: [1, 2], b: 7}`)
}

func TestUniqueIndexStopsAnUpdate(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1}, name: "a", unique: true}`)
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 2}`, `{_id: 3, a: 3}`)
	r, err := db.Update(context.Background(), ns, []Update{{Filter: doc(`{_id: {$gt: 1}}`), Update: updateDoc(`{$inc: {a: 1}}`), Multi: true}}, true)
	if err != nil || len(r.Errors) != 1 || !mongoerr.Is(r.Errors[0].Err, mongoerr.DuplicateKey) {
		t.Fatalf("got %+v, %v", r, err)
	}
	expect(t, find(t, db, Find{}), `{_id: 1, a: 1}`, `{_id: 2, a: 2}`, `{_id: 3, a: 3}`)
	upd(t, db, Update{Filter: doc(`{_id: 3}`), Update: updateDoc(`{$set: {a: 1.5}}`)})
	upd(t, db, Update{Filter: doc(`{_id: 3}`), Update: updateDoc(`{$set: {a: 3}}`)})
}

func TestUpdateThatChangesNothingWritesNothing(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: 1, a: 1}`)
	before := db.store.Stats()
	if r := upd(t, db, Update{Filter: doc(`{_id: 1}`), Update: updateDoc(`{$set: {a: 1}}`)}); r.Matched != 1 || r.Modified != 0 {
		t.Fatalf("got %+v", r)
	}
	if r := upd(t, db, Update{Filter: doc(`{a: 8}`), Update: updateDoc(`{$set: {a: 1}}`)}); r.Matched != 0 {
		t.Fatalf("got %+v", r)
	}
	if after := db.store.Stats(); after.Writes != before.Writes {
		t.Errorf("%d writes", after.Writes-before.Writes)
	}
}

func TestTypeOfANumberChangesWithItsKeyTheSame(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1}, name: "a"}`)
	insert(t, db, `{_id: 1, a: 1}`)
	if r := upd(t, db, Update{Filter: doc(`{a: 1}`), Update: updateDoc(`{$set: {a: 1.0}}`)}); r.Modified != 1 {
		t.Fatalf("got %+v", r)
	}
	expect(t, find(t, db, Find{Filter: doc(`{a: 1}`), Hint: value.String("a")}), `{_id: 1, a: 1.0}`)
}

func TestUpsertInsertsOnce(t *testing.T) {
	db := open(t)
	r := upd(t, db, Update{Filter: doc(`{_id: 5, a: 1}`), Update: updateDoc(`{$set: {b: 2}, $setOnInsert: {c: 3}}`), Upsert: true})
	if r.Matched != 0 || len(r.Upserted) != 1 || value.Text(r.Upserted[0].ID) != "5" {
		t.Fatalf("got %+v", r)
	}
	if r = upd(t, db, Update{Filter: doc(`{_id: 5, a: 1}`), Update: updateDoc(`{$set: {b: 4}, $setOnInsert: {c: 9}}`), Upsert: true}); r.Matched != 1 || r.Modified != 1 {
		t.Fatalf("got %+v", r)
	}
	expect(t, find(t, db, Find{}), `{_id: 5, a: 1, b: 4, c: 3}`)
	upd(t, db, Update{Filter: doc(`{_id: 6}`), Update: updateDoc(`{x: 1}`), Upsert: true})
	upd(t, db, Update{Filter: doc(`{_id: 6}`), Update: updateDoc(`{x: 2}`), Upsert: true})
	expect(t, find(t, db, Find{Filter: doc(`{_id: 6}`)}), `{_id: 6, x: 2}`)
}

func TestConcurrentUpsertsInsertOneDocument(t *testing.T) {
	db := open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 20 {
				r, err := db.Update(context.Background(), ns, []Update{{Filter: doc(fmt.Sprintf(`{k: %d}`, i)), Update: updateDoc(`{$inc: {n: 1}}`), Upsert: true}}, true)
				if err != nil || len(r.Errors) > 0 {
					t.Errorf("%v, %v", r.Errors, err)
				}
			}
		})
	}
	wg.Wait()
	n, err := db.Count(context.Background(), ns, Count{Filter: doc(`{n: 8}`)})
	if err != nil || n != 20 {
		t.Fatalf("%d documents were incremented 8 times, %v", n, err)
	}
	if n, _ = db.Count(context.Background(), ns, Count{}); n != 20 {
		t.Fatalf("%d documents", n)
	}
}

func TestWorkersTakeEachJobOnce(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {state: 1, prio: -1}, name: "queue"}`)
	for i := range 60 {
		insert(t, db, fmt.Sprintf(`{_id: %d, state: "new", prio: %d}`, i, i%5))
	}
	var mu sync.Mutex
	taken := map[string]int{}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for {
				r, err := db.FindAndModify(context.Background(), ns, FindAndModify{Filter: doc(`{state: "new"}`), Sort: doc(`{prio: -1}`), Update: updateDoc(`{$set: {state: "taken"}}`)})
				if err != nil {
					t.Error(err)
					return
				}
				if r.Value == nil {
					return
				}
				mu.Lock()
				taken[value.Text(r.Value.Lookup("_id"))]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(taken) != 60 {
		t.Errorf("%d jobs of 60 were taken", len(taken))
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("job %s was taken %d times", id, n)
		}
	}
}

func TestFindAndModifyGivesBeforeOrAfter(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 2}`)
	check := func(f FindAndModify, want string, matched bool) {
		t.Helper()
		r, err := db.FindAndModify(ctx, ns, f)
		got := "none"
		if r.Value != nil {
			got = show(r.Value)
		}
		if err != nil || got != want || r.Matched != matched {
			t.Errorf("got %s, %v, %v; want %s", got, r.Matched, err, want)
		}
	}
	inc := updateDoc(`{$inc: {a: 10}}`)
	check(FindAndModify{Filter: doc(`{_id: 1}`), Update: inc}, `{_id: 1, a: 1}`, true)
	check(FindAndModify{Filter: doc(`{_id: 1}`), Update: inc, New: true}, `{_id: 1, a: 21}`, true)
	check(FindAndModify{Sort: doc(`{a: -1}`), Remove: true}, `{_id: 1, a: 21}`, true)
	check(FindAndModify{Filter: doc(`{_id: 1}`), Update: inc}, `none`, false)
	check(FindAndModify{Filter: doc(`{_id: 7}`), Update: inc, Upsert: true, New: true}, `{_id: 7, a: 10}`, false)
	check(FindAndModify{Filter: doc(`{_id: 8}`), Update: inc, Upsert: true}, `none`, false)
	expect(t, find(t, db, Find{}), `{_id: 2, a: 2}`, `{_id: 7, a: 10}`, `{_id: 8, a: 10}`)
}
