package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

func TestCollectionsAreListedAndDropped(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	for _, name := range []Namespace{{DB: "b", Coll: "x"}, {DB: "a", Coll: "y"}, {DB: "a", Coll: "x.z"}, {DB: "ab", Coll: "x"}} {
		if err := db.CreateCollection(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.CreateCollection(ctx, Namespace{DB: "a", Coll: "y"}, doc(`{capped: false}`)); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := db.CreateCollection(ctx, Namespace{DB: "A", Coll: "z"}, nil); !mongoerr.Is(err, mongoerr.DatabaseDifferCase) {
		t.Errorf("another case: %v", err)
	}
	names := func() string {
		out := ""
		dbs, err := db.ListDatabases(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dbs {
			out += d.Name + "("
			colls, err := db.ListCollections(ctx, d.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range colls {
				out += c.Name + " "
			}
			out += ") "
		}
		return out
	}
	if got, want := names(), "a(x.z y ) ab(x ) b(x ) "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if existed, err := db.DropDatabase(ctx, "a"); err != nil || !existed {
		t.Error(existed, err)
	}
	if existed, err := db.DropDatabase(ctx, "a"); err != nil || existed {
		t.Error(existed, err)
	}
	if got, want := names(), "ab(x ) b(x ) "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIndexesAreListedAndDropped(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	r, err := db.CreateIndexes(ctx, ns, docs(`{key: {a: 1}, name: "a"}`, `{key: {b: 1}, name: "b", unique: true}`, `{key: {a: 1}, name: "a"}`))
	if err != nil || r != (CreateIndexesResult{Before: 1, After: 3, CreatedCollection: true}) {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r, err = db.CreateIndexes(ctx, ns, docs(`{key: {a: 1}, name: "a"}`)); err != nil || r.Before != 3 || r.After != 3 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err = db.CreateIndexes(ctx, ns, docs(`{key: {c: 1}, name: "c"}`, `{key: {a: 1}, name: "x"}`)); !mongoerr.Is(err, mongoerr.IndexOptionsConflict) {
		t.Fatalf("got %v", err)
	}
	list := func() string {
		out := ""
		specs, err := db.ListIndexes(ctx, ns)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range specs {
			out += show(s) + "\n"
		}
		return out
	}
	if got, want := list(), "{v: 2, key: {_id: 1}, name: \"_id_\"}\n{v: 2, key: {a: 1}, name: \"a\"}\n{v: 2, key: {b: 1}, name: \"b\", unique: true}\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, c := range []struct {
		which string
		code  mongoerr.Code
	}{{`{i: "zz"}`, mongoerr.IndexNotFound}, {`{i: "_id_"}`, mongoerr.InvalidOptions}, {`{i: {z: 1}}`, mongoerr.IndexNotFound}, {`{i: 5}`, mongoerr.TypeMismatch}, {`{i: ["a", "zz"]}`, mongoerr.IndexNotFound}} {
		if _, err := db.DropIndexes(ctx, ns, doc(c.which).Lookup("i")); !mongoerr.Is(err, c.code) {
			t.Errorf("%s: %v", c.which, err)
		}
	}
	if n, err := db.DropIndexes(ctx, ns, value.Document(doc(`{a: 1}`))); err != nil || n != 3 {
		t.Error(n, err)
	}
	if n, err := db.DropIndexes(ctx, ns, value.String("*")); err != nil || n != 2 {
		t.Error(n, err)
	}
	if got, want := list(), "{v: 2, key: {_id: 1}, name: \"_id_\"}\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := db.ListIndexes(ctx, Namespace{DB: "no", Coll: "no"}); !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		t.Error(err)
	}
}

func TestUniqueIndexIsRefusedOverDuplicates(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	var in []bson.Raw
	for i := range 3000 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, a: %d, b: [%d, %d]}`, i, i%2999, i, i+1)))
	}
	if r, err := db.Insert(ctx, ns, in, true); err != nil || r.N != 3000 {
		t.Fatal(r, err)
	}
	_, err := db.CreateIndexes(ctx, ns, docs(`{key: {b: 1}, name: "b"}`, `{key: {a: 1}, name: "a", unique: true}`))
	if !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Fatalf("got %v", err)
	}
	if got, want := mongoerr.From(err).Message, `E11000 duplicate key error collection: test.things index: a dup key: { a: 0 }`; got != want {
		t.Errorf("got %s", got)
	}
	if list, err := db.ListIndexes(ctx, ns); err != nil || len(list) != 1 {
		t.Fatalf("%d indexes, %v", len(list), err)
	}
	if _, err := db.Delete(ctx, ns, []Delete{{Filter: doc(`{_id: 2999}`)}}, true); err != nil {
		t.Fatal(err)
	}
	createIndex(t, db, `{key: {a: 1}, name: "a", unique: true}`)
	createIndex(t, db, `{key: {b: 1}, name: "b"}`)
	if n, err := db.Count(ctx, ns, Count{Filter: doc(`{b: {$gt: 10, $lt: 12}}`), Hint: value.String("b")}); err != nil || n != 2 {
		t.Fatalf("count %d, %v", n, err)
	}
}

// A crash in the middle of a build leaves an index that is being built, and nobody who builds it.
func TestHalfBuiltIndexIsDroppedAtOpen(t *testing.T) {
	e := simfs.Memory()
	db := openIn(t, e)
	insert(t, db, `{_id: 1, a: 1}`)
	c := db.writing(context.Background(), ns, true)
	if err := c.find(false); err != nil {
		t.Fatal(err)
	}
	b := build{writing: c}
	specs, err := parseSpecs(docs(`{key: {a: 1}, name: "a", unique: true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.begin(specs); err != nil {
		t.Fatal(err)
	}
	if err := c.end(nil); err != nil {
		t.Fatal(err)
	}
	if list, err := db.ListIndexes(context.Background(), ns); err != nil || len(list) != 1 {
		t.Fatalf("%d indexes, %v", len(list), err)
	}
	closeChecked(t, db)
	db = openIn(t, e)
	if err := db.read(func(sn *storage.Snapshot) error {
		c, sc, err := db.collection(sn, ns)
		if err != nil {
			return err
		}
		if _, ok := sc.Tree(catalog.IDTree + 1); ok || len(c.def.Indexes) != 1 {
			t.Errorf("the tree is there: %v, indexes: %d", ok, len(c.def.Indexes))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	insert(t, db, `{_id: 2, a: 1}`)
}

func TestExpiredDocumentsGo(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	createIndex(t, db, `{key: {at: 1}, name: "ttl", expireAfterSeconds: 60}`)
	insert(t, db, `{_id: 1, at: ISODate("2020-01-01T00:00:00Z")}`, `{_id: 2, at: ISODate("2020-01-01T00:01:00Z")}`, `{_id: 3, at: "2020"}`, `{_id: 4}`,
		`{_id: 5, at: [ISODate("2030-01-01T00:00:00Z"), ISODate("2019-01-01T00:00:00Z")]}`, `{_id: 6, at: 5}`)
	now := time.Date(2020, 1, 1, 0, 1, 30, 0, time.UTC)
	if n, more, err := db.SweepTTL(ctx, now); err != nil || n != 2 || more {
		t.Fatal(n, more, err)
	}
	expect(t, find(t, db, Find{}), `{_id: 2, at: ISODate("2020-01-01T00:01:00Z")}`, `{_id: 3, at: "2020"}`, `{_id: 4}`, `{_id: 6, at: 5}`)
	var in []bson.Raw
	for i := range 2500 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, at: ISODate("2020-01-01T00:00:00Z")}`, 100+i)))
	}
	if _, err := db.Insert(ctx, ns, in, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1000, 1000, 500} {
		if n, more, err := db.SweepTTL(ctx, now); err != nil || n != want || more != (want == 1000) {
			t.Fatal(n, more, err)
		}
	}
}

func TestSweepLoopRemovesAndStops(t *testing.T) {
	e := simfs.Memory()
	db, err := Open("/db", Options{Env: e, TTLSweep: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	createIndex(t, db, `{key: {at: 1}, name: "ttl", expireAfterSeconds: 0}`)
	insert(t, db, `{_id: 1, at: ISODate("2020-01-01T00:00:00Z")}`)
	for n := int64(1); n > 0; {
		if n, err = db.Count(context.Background(), ns, Count{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Count(context.Background(), ns, Count{}); !mongoerr.Is(err, mongoerr.InterruptedAtShutdown) {
		t.Fatalf("got %v", err)
	}
}
