package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// batch gives a batch of a cursor as text.
func batch(t *testing.T, c *Cursor, docs int) (string, bool, error) {
	t.Helper()
	var b strings.Builder
	more, err := c.Batch(context.Background(), docs, func(doc bson.Raw) bool {
		b.WriteString(value.Text(value.Document(doc)) + "\n")
		return true
	})
	return b.String(), more, err
}

func cursor(t *testing.T, db *DB, f Find) *Cursor {
	t.Helper()
	c, err := db.Find(context.Background(), ns, f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCursorGoesOnWhereItWasAmongChanges(t *testing.T) {
	for _, f := range []Find{
		{}, {Sort: doc(`{n: 1}`)}, {Filter: doc(`{n: {$gte: 0}}`)}, {Hint: value.Document(doc(`{$natural: -1}`))},
		{Sort: doc(`{n: -1}`)}, {Sort: doc(`{x: 1}`)}, {Filter: doc(`{$or: [{n: {$lt: 50}}, {_id: {$gte: 40}}]}`)},
	} {
		db := open(t)
		createIndex(t, db, `{key: {n: 1}, name: "n"}`)
		for i := range 100 {
			insert(t, db, fmt.Sprintf(`{_id: %d, n: %d}`, i, i))
		}
		c := cursor(t, db, f)
		seen := map[string]int{}
		for more := true; more; {
			var out string
			var err error
			if out, more, err = batch(t, c, 7); err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			for line := range strings.Lines(out) {
				seen[line]++
			}
			insert(t, db, `{n: -5}`)
			if _, err := db.Delete(context.Background(), ns, []Delete{{Filter: doc(`{n: -5}`)}}, true); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			if line := fmt.Sprintf("{_id: %d, n: %d}\n", i, i); seen[line] != 1 {
				t.Errorf("%s sort %s: %q was seen %d times", show(f.Filter), show(f.Sort), line, seen[line])
			}
		}
	}
}

func TestCursorKeepsTheDocumentThatWasNotTaken(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 2}`, `{_id: 3, a: 3}`)
	c := cursor(t, db, Find{Projection: doc(`{a: 1, _id: 0}`), ShowRecordID: true})
	n := 0
	more, err := c.Batch(context.Background(), 10, func(bson.Raw) bool { n++; return n < 2 })
	if err != nil || !more || n != 2 {
		t.Fatalf("%d, %v, %v", n, more, err)
	}
	out, more, err := batch(t, c, 10)
	if err != nil || more {
		t.Fatalf("%v, %v", more, err)
	}
	expect(t, out, `{a: 2, $recordId: NumberLong(2)}`, `{a: 3, $recordId: NumberLong(3)}`)
}

func TestCursorEndsWithItsLimitAndItsDocuments(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: 1}`, `{_id: 2}`, `{_id: 3}`)
	for _, c := range []struct {
		f    Find
		docs int
		more bool
	}{
		{Find{}, 2, true}, {Find{}, 3, true}, {Find{}, 4, false}, {Find{Limit: 2}, 2, false}, {Find{Limit: 3}, 2, true}, {Find{Filter: doc(`{_id: 2}`)}, 1, false},
		{Find{Sort: doc(`{x: 1}`)}, 3, false}, {Find{}, 0, true}, {Find{Filter: doc(`{_id: 9}`)}, 1, false},
	} {
		if _, more, err := batch(t, cursor(t, db, c.f), c.docs); err != nil || more != c.more {
			t.Errorf("%v, %d documents: more is %v, %v", c.f, c.docs, more, err)
		}
	}
}

func TestCursorNoticesADroppedCollection(t *testing.T) {
	db := open(t)
	for _, again := range []bool{false, true} {
		insert(t, db, `{_id: 1}`, `{_id: 2}`, `{_id: 3}`)
		c := cursor(t, db, Find{})
		if _, more, err := batch(t, c, 1); err != nil || !more {
			t.Fatal(more, err)
		}
		if existed, n, err := db.DropCollection(context.Background(), ns); err != nil || !existed || n != 1 {
			t.Fatal(existed, n, err)
		}
		if again {
			insert(t, db, `{_id: 1}`, `{_id: 2}`, `{_id: 3}`)
		}
		if out, _, err := batch(t, c, 5); !mongoerr.Is(err, mongoerr.QueryPlanKilled) || out != "" {
			t.Fatalf("made again: %v: got %s, %v", again, out, err)
		}
		if _, _, err := db.DropCollection(context.Background(), ns); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCursorNoticesADroppedIndex(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {n: 1}, name: "n"}`)
	insert(t, db, `{n: 1}`, `{n: 2}`, `{n: 3}`)
	c, other := cursor(t, db, Find{Filter: doc(`{n: {$gt: 0}}`)}), cursor(t, db, Find{})
	for _, c := range []*Cursor{c, other} {
		if _, _, err := batch(t, c, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.DropIndexes(context.Background(), ns, value.String("n")); err != nil {
		t.Fatal(err)
	}
	createIndex(t, db, `{key: {n: 1}, name: "n"}`)
	if _, _, err := batch(t, c, 5); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
		t.Fatalf("got %v", err)
	}
	if _, more, err := batch(t, other, 5); err != nil || more {
		t.Fatal(more, err)
	}
}

func TestCancelledContextEndsAScan(t *testing.T) {
	db := open(t)
	var in []bson.Raw
	for i := range 1000 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d}`, i)))
	}
	if _, err := db.Insert(context.Background(), ns, in, true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := db.Count(ctx, ns, Count{Filter: doc(`{a: 1}`)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestSortIsHeldToItsMemory(t *testing.T) {
	db := open(t)
	db.opt.SortMemory = 10_000
	var in []bson.Raw
	for i := range 500 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, a: "%s"}`, i, strings.Repeat("x", 100))))
	}
	if _, err := db.Insert(context.Background(), ns, in, true); err != nil {
		t.Fatal(err)
	}
	if _, err := tryFind(db, Find{Sort: doc(`{b: 1}`), MemoryOnly: true}, 100); !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Fatalf("got %v", err)
	}
	if out, err := tryFind(db, Find{Sort: doc(`{b: 1}`), Skip: 3, Limit: 5, MemoryOnly: true}, 100); err != nil || strings.Count(out, "\n") != 5 {
		t.Fatalf("got %s, %v", out, err)
	}
}
