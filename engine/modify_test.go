package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func createCollection(t testing.TB, db *DB, options string) {
	t.Helper()
	if err := db.CreateCollection(context.Background(), ns, doc(options)); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidDocumentsAreRefused(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	createCollection(t, db, `{validator: {a: {$gte: 5}}}`)
	r, err := db.Insert(ctx, ns, docs(`{_id: 1, a: 5}`, `{_id: 2, a: 4}`, `{_id: 3}`), false)
	if err != nil || r.N != 1 || len(r.Errors) != 2 || !mongoerr.Is(r.Errors[0].Err, mongoerr.DocumentValidationFailure) {
		t.Fatalf("got %+v, %v", r, err)
	}
	if extra := fmt.Sprint(mongoerr.From(r.Errors[0].Err).Extra); !strings.Contains(extra, "failingDocumentId") || !strings.Contains(extra, "$gte") {
		t.Errorf("errInfo %s", extra)
	}
	if r, err = db.Insert(BypassValidation(ctx), ns, docs(`{_id: 2, a: 4}`), false); err != nil || r.N != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	update := func(u string) error {
		r, err := db.Update(ctx, ns, []Update{{Filter: doc(`{}`), Update: updateDoc(u), Multi: true}}, true)
		if err == nil && len(r.Errors) > 0 {
			err = r.Errors[0].Err
		}
		return err
	}
	if err := update(`{$set: {b: 1}}`); !mongoerr.Is(err, mongoerr.DocumentValidationFailure) {
		t.Errorf("strict: %v", err)
	}
	if _, err := db.CollMod(ctx, ns, CollMod{Options: doc(`{validationLevel: "moderate"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := update(`{$set: {b: 2}}`); err != nil {
		t.Errorf("moderate: %v", err)
	}
	if err := update(`{$set: {a: 2}}`); !mongoerr.Is(err, mongoerr.DocumentValidationFailure) {
		t.Errorf("moderate, and it was valid: %v", err)
	}
	for _, options := range []string{`{validationAction: "warn"}`, `{validationAction: "error", validationLevel: "off"}`, `{validator: {}}`} {
		if _, err := db.CollMod(ctx, ns, CollMod{Options: doc(options)}); err != nil {
			t.Fatal(err)
		}
		if err := update(`{$inc: {a: -1}}`); err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
	if _, err := db.CollMod(ctx, ns, CollMod{Options: doc(`{validator: {$bad: 1}}`)}); !mongoerr.Is(err, mongoerr.BadValue) {
		t.Errorf("got %v", err)
	}
}

func TestCappedCollectionKeepsTheNewest(t *testing.T) {
	db := open(t)
	createCollection(t, db, `{capped: true, size: 4096, max: 3}`)
	createIndex(t, db, `{key: {a: 1}, name: "a"}`)
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 2}`, `{_id: 3, a: 3}`, `{_id: 4, a: 4}`, `{_id: 5, a: 5}`)
	expect(t, find(t, db, Find{}), `{_id: 3, a: 3}`, `{_id: 4, a: 4}`, `{_id: 5, a: 5}`)
	expect(t, find(t, db, Find{Sort: doc(`{$natural: -1}`), Limit: 1}), `{_id: 5, a: 5}`)
	for i := range 3 {
		insert(t, db, fmt.Sprintf(`{_id: %d, pad: "%s"}`, 10+i, strings.Repeat("x", 1900)))
	}
	if n, err := db.Count(context.Background(), ns, Count{}); err != nil || n != 2 {
		t.Fatalf("%d documents of 1 900 bytes, %v", n, err)
	}
	r, err := db.Insert(context.Background(), ns, docs(fmt.Sprintf(`{pad: "%s"}`, strings.Repeat("x", 5000))), true)
	if err != nil || len(r.Errors) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestTailableCursorGoesOn(t *testing.T) {
	db := open(t)
	createCollection(t, db, `{capped: true, size: 100000, max: 4}`)
	c := cursor(t, db, Find{Tailable: true, Filter: doc(`{a: {$gt: 0}}`)})
	if out, more, err := batch(t, c, 10); err != nil || !more || out != "" {
		t.Fatal(out, more, err)
	}
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 0}`)
	out, more, err := batch(t, c, 10)
	if err != nil || !more {
		t.Fatal(more, err)
	}
	expect(t, out, `{_id: 1, a: 1}`)
	done := make(chan struct{})
	go func() {
		c.Await(time.Hour)
		close(done)
	}()
	for open := true; open; {
		insert(t, db, `{a: -1}`)
		select {
		case <-done:
			open = false
		default:
		}
	}
	c.Await(time.Millisecond)
	insert(t, db, `{a: -2}`, `{a: -3}`, `{a: -4}`, `{a: -5}`)
	if _, more, err = batch(t, c, 10); !mongoerr.Is(err, mongoerr.CappedPositionLost) || more {
		t.Fatal(more, err)
	}
	if _, _, err := batch(t, cursorOf(t, db, Namespace{DB: "test", Coll: "plain"}), 1); !mongoerr.Is(err, mongoerr.BadValue) {
		t.Fatalf("not capped: %v", err)
	}
}

func cursorOf(t *testing.T, db *DB, name Namespace) *Cursor {
	t.Helper()
	if err := db.CreateCollection(context.Background(), name, nil); err != nil {
		t.Fatal(err)
	}
	c, err := db.Find(context.Background(), name, Find{Tailable: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRenamedCollectionIsTheSame(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	createIndex(t, db, `{key: {a: 1}, name: "a"}`)
	insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 2}`)
	c := cursor(t, db, Find{})
	if _, _, err := batch(t, c, 1); err != nil {
		t.Fatal(err)
	}
	other, third := Namespace{DB: "elsewhere", Coll: "x"}, Namespace{DB: "elsewhere", Coll: "y"}
	if err := db.CreateCollection(ctx, other, nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		from, to Namespace
		drop     bool
		code     mongoerr.Code
	}{
		{ns, other, false, mongoerr.NamespaceExists}, {ns, ns, true, mongoerr.IllegalOperation}, {third, ns, true, mongoerr.NamespaceNotFound},
		{ns, Namespace{DB: "test", Coll: "a$"}, false, mongoerr.InvalidNamespace}, {ns, Namespace{DB: "TEST", Coll: "a"}, false, mongoerr.DatabaseDifferCase},
	} {
		if err := db.RenameCollection(ctx, e.from, e.to, e.drop); !mongoerr.Is(err, e.code) {
			t.Errorf("%s to %s: %v", e.from, e.to, err)
		}
	}
	if err := db.RenameCollection(ctx, ns, other, true); err != nil {
		t.Fatal(err)
	}
	if err := db.RenameCollection(ctx, other, third, false); err != nil {
		t.Fatal(err)
	}
	if out, _, err := batch(t, c, 5); err != nil || out != "{_id: 2, a: 2}\n" {
		t.Errorf("the cursor gives %s, %v", out, err)
	}
	if n, err := db.Count(ctx, third, Count{Filter: doc(`{a: 2}`), Hint: value.String("a")}); err != nil || n != 1 {
		t.Errorf("count %d, %v", n, err)
	}
	if n, err := db.Count(ctx, ns, Count{}); err != nil || n != 0 {
		t.Errorf("count of the old name %d, %v", n, err)
	}
	insert(t, db, `{_id: 9}`)
	expect(t, find(t, db, Find{}), `{_id: 9}`)
}

func TestCollModChangesAnIndex(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	createIndex(t, db, `{key: {at: 1}, name: "ttl", expireAfterSeconds: 60}`)
	hour, yes := int64(3600), true
	r, err := db.CollMod(ctx, ns, CollMod{Index: value.Document(doc(`{at: 1}`)), ExpireAfter: &hour, Hidden: &yes})
	if err != nil || *r.ExpireAfterOld != 60 || *r.ExpireAfterNew != 3600 || *r.HiddenOld || !*r.HiddenNew {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got := plan(t, db, Find{Filter: doc(`{at: 1}`)}); got != "COLLSCAN" {
		t.Errorf("a hidden index: %s", got)
	}
	list, err := db.ListIndexes(ctx, ns)
	if err != nil || show(list[1]) != `{v: 2, key: {at: 1}, name: "ttl", expireAfterSeconds: NumberLong(3600), hidden: true}` {
		t.Errorf("got %s, %v", show(list[1]), err)
	}
	for _, index := range []bson.RawValue{value.String("nope"), value.String("*"), value.String("_id_")} {
		if _, err := db.CollMod(ctx, ns, CollMod{Index: index, Hidden: &yes}); err == nil {
			t.Errorf("%s was changed", index)
		}
	}
}
