package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

var ns = Namespace{DB: "test", Coll: "things"}

// open opens a database in memory, and checks and closes it when the test ends.
func open(t testing.TB) *DB { return openIn(t, simfs.Memory()) }

func openIn(t testing.TB, e *env.Env) *DB {
	t.Helper()
	db, err := Open("/db", Options{Env: e, TTLSweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

func closeChecked(t testing.TB, db *DB) {
	t.Helper()
	err := db.Check(context.Background(), func(fault error) { t.Errorf("check: %v", fault) })
	if errors.Is(err, storage.ErrClosed) {
		return
	}
	if err != nil {
		t.Errorf("check: %v", err)
	}
	for _, f := range db.store.Check().Faults {
		t.Errorf("storage check: %s", f)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func doc(text string) bson.Raw { return value.MustParseDocument(text) }

func docs(texts ...string) []bson.Raw {
	out := make([]bson.Raw, len(texts))
	for i, text := range texts {
		out[i] = doc(text)
	}
	return out
}

func insert(t testing.TB, db *DB, texts ...string) {
	t.Helper()
	r, err := db.Insert(context.Background(), ns, docs(texts...), true)
	if err != nil || len(r.Errors) > 0 {
		t.Fatalf("insert: %v, %v", r.Errors, err)
	}
}

func createIndex(t testing.TB, db *DB, spec string) {
	t.Helper()
	if _, err := db.CreateIndexes(context.Background(), ns, docs(spec)); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
}

// find gives what a query finds, as text, a line a document, in batches of a few.
func find(t testing.TB, db *DB, f Find) string {
	t.Helper()
	out, err := tryFind(db, f, 3)
	if err != nil {
		t.Fatalf("find %v: %v", f, err)
	}
	return out
}

func tryFind(db *DB, f Find, batch int) (string, error) {
	c, err := db.Find(context.Background(), ns, f)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for more := true; more; {
		if more, err = c.Batch(context.Background(), batch, func(doc bson.Raw) bool {
			b.WriteString(value.Text(value.Document(doc)) + "\n")
			return true
		}); err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

func expect(t testing.TB, got string, want ...string) {
	t.Helper()
	w := ""
	for _, line := range want {
		w += value.Text(value.Document(doc(line))) + "\n"
	}
	if got != w {
		t.Errorf("got\n%swant\n%s", got, w)
	}
}

func TestInsertedDocumentsAreFound(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: 1, a: 5}`, `{a: 7, _id: 2}`, `{_id: 3}`)
	expect(t, find(t, db, Find{}), `{_id: 1, a: 5}`, `{_id: 2, a: 7}`, `{_id: 3}`)
	expect(t, find(t, db, Find{Filter: doc(`{_id: 2}`)}), `{_id: 2, a: 7}`)
	expect(t, find(t, db, Find{Filter: doc(`{a: {$gt: 5}}`)}), `{_id: 2, a: 7}`)
	expect(t, find(t, db, Find{Filter: doc(`{_id: 9}`)}))
	expect(t, find(t, db, Find{Sort: doc(`{a: -1}`), Skip: 1, Limit: 1}), `{_id: 1, a: 5}`)
	expect(t, find(t, db, Find{Sort: doc(`{_id: -1}`)}), `{_id: 3}`, `{_id: 2, a: 7}`, `{_id: 1, a: 5}`)
	expect(t, find(t, db, Find{Sort: doc(`{$natural: -1}`), Limit: 2}), `{_id: 3}`, `{_id: 2, a: 7}`)
}

func TestDocumentsSurviveReopening(t *testing.T) {
	e := simfs.Memory()
	db := openIn(t, e)
	createIndex(t, db, `{key: {a: 1}, name: "a_1"}`)
	insert(t, db, `{_id: 1, a: [1, 2]}`, `{_id: 2, a: 3}`)
	closeChecked(t, db)
	db = openIn(t, e)
	expect(t, find(t, db, Find{Filter: doc(`{a: 2}`), Hint: value.String("a_1")}), `{_id: 1, a: [1, 2]}`)
	insert(t, db, `{_id: 3, a: 2}`)
	expect(t, find(t, db, Find{Filter: doc(`{a: 2}`), Hint: value.String("a_1")}), `{_id: 1, a: [1, 2]}`, `{_id: 3, a: 2}`)
}

func TestInsertGivesIDs(t *testing.T) {
	db := open(t)
	insert(t, db, `{a: 1}`, `{a: 2}`)
	var ids []bson.ObjectID
	c, err := db.Find(context.Background(), ns, Find{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Batch(context.Background(), 10, func(d bson.Raw) bool {
		elems, _ := d.Elements()
		if elems[0].Key() != "_id" {
			t.Errorf("the first field is %s", elems[0].Key())
		}
		ids = append(ids, elems[0].Value().ObjectID())
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 2 || bytes.Compare(ids[0][:], ids[1][:]) >= 0 {
		t.Fatalf("got %v", ids)
	}
}

func TestDuplicateIDStopsOnlyAnOrderedInsert(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: 1}`)
	r, err := db.Insert(context.Background(), ns, docs(`{_id: 2}`, `{_id: 1.0}`, `{_id: 3}`), true)
	if err != nil || r.N != 1 || len(r.Errors) != 1 || r.Errors[0].Index != 1 || !mongoerr.Is(r.Errors[0].Err, mongoerr.DuplicateKey) {
		t.Fatalf("ordered: %+v, %v", r, err)
	}
	if got, want := r.Errors[0].Err.(*mongoerr.Error).Message, `E11000 duplicate key error collection: test.things index: _id_ dup key: { _id: 1.0 }`; got != want {
		t.Errorf("message %s, want %s", got, want)
	}
	r, err = db.Insert(context.Background(), ns, docs(`{_id: 1}`, `{_id: 4}`, `{_id: [1]}`, `{_id: /x/}`, `{_id: {$a: 1}}`, `{_id: 5}`), false)
	if err != nil || r.N != 2 || len(r.Errors) != 4 || r.Errors[1].Index != 2 || !mongoerr.Is(r.Errors[1].Err, mongoerr.InvalidIDField) {
		t.Fatalf("unordered: %+v, %v", r, err)
	}
	expect(t, find(t, db, Find{}), `{_id: 1}`, `{_id: 2}`, `{_id: 4}`, `{_id: 5}`)
}

func TestManyDocumentsGoInByUnits(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {b: -1, a: 1}, name: "ba"}`)
	var in []bson.Raw
	for i := range 3000 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, a: %d, b: %d}`, i, i%7, i%100)))
	}
	in[1500] = doc(`{_id: 3}`)
	r, err := db.Insert(context.Background(), ns, in, true)
	if err != nil || r.N != 1500 || len(r.Errors) != 1 || r.Errors[0].Index != 1500 {
		t.Fatalf("got %d, %v, %v", r.N, r.Errors, err)
	}
	r, err = db.Insert(context.Background(), ns, in[1500:], false)
	if err != nil || r.N != 1499 || len(r.Errors) != 1 || r.Errors[0].Index != 0 {
		t.Fatalf("got %d, %v, %v", r.N, r.Errors, err)
	}
	n, err := db.Count(context.Background(), ns, Count{Filter: doc(`{b: {$gte: 98}, a: 3}`)})
	if err != nil || n != 9 {
		t.Fatalf("count %d, %v", n, err)
	}
	d, err := db.Delete(context.Background(), ns, []Delete{{Filter: doc(`{a: {$lt: 6}}`), Multi: true}, {Filter: doc(`{a: 6}`)}}, true)
	if err != nil || len(d.Errors) > 0 || d.N != 2571+1 && d.N < 2000 {
		t.Fatalf("delete %+v, %v", d, err)
	}
	left, err := db.Count(context.Background(), ns, Count{})
	if err != nil || left != int64(2999-d.N) {
		t.Fatalf("count %d after %d were deleted, %v", left, d.N, err)
	}
}

func TestKeysThatNoTreeTakesAreRefused(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1}, name: "a"}`)
	big := value.Document(appendField(noFields(), "a", value.String(strings.Repeat("\x00", 9<<20)))).Document()
	r, err := db.Insert(context.Background(), ns, []bson.Raw{big, doc(`{_id: 1}`)}, false)
	if err != nil || r.N != 1 || len(r.Errors) != 1 || !mongoerr.Is(r.Errors[0].Err, codeKeyTooLarge) {
		t.Fatalf("got %d, %v, %v", r.N, r.Errors, err)
	}
	if r, err = db.Insert(context.Background(), ns, []bson.Raw{appendField(noFields(), "a", value.String(strings.Repeat("x", 9<<20)))}, false); err != nil || r.N != 1 {
		t.Fatalf("got %d, %v, %v", r.N, r.Errors, err)
	}
}

func TestEmptyTimestampBecomesTheTime(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: Timestamp(0, 0), a: Timestamp(0, 0), b: {c: Timestamp(0, 0)}}`)
	out := find(t, db, Find{Filter: doc(`{_id: Timestamp(0, 0), "b.c": Timestamp(0, 0), a: {$gt: Timestamp(1000, 0)}}`)})
	if strings.Count(out, "\n") != 1 {
		t.Fatalf("got %s", out)
	}
}

func TestDocumentsAreHeldToTheirSize(t *testing.T) {
	db := open(t)
	exact := appendField(doc(`{_id: 1}`), "a", value.String(""))
	exact = appendField(doc(`{_id: 1}`), "a", value.String(strings.Repeat("x", documentMax-len(exact))))
	tooLarge := appendField(doc(`{_id: 2}`), "a", value.String(strings.Repeat("x", documentMax)))
	r, err := db.Insert(context.Background(), ns, []bson.Raw{exact, tooLarge}, false)
	if err != nil || r.N != 1 || len(r.Errors) != 1 || !mongoerr.Is(r.Errors[0].Err, mongoerr.BSONObjectTooLarge) {
		t.Fatalf("%d bytes: %d, %v, %v", len(exact), r.N, r.Errors, err)
	}
	u, err := db.Update(context.Background(), ns, []Update{{Filter: doc(`{_id: 1}`), Update: updateDoc(`{$set: {b: 1}}`)}}, true)
	if err != nil || len(u.Errors) != 1 {
		t.Fatalf("got %+v, %v", u, err)
	}
}
