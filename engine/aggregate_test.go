package engine

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

func aggregate(t *testing.T, db *DB, stages ...string) *Aggregation {
	t.Helper()
	a, err := db.Aggregate(context.Background(), ns, Aggregate{Stages: docs(stages...)})
	if err != nil {
		t.Fatalf("%v: %v", stages, err)
	}
	return a
}

func results(t *testing.T, a *Aggregation, batch int) string {
	t.Helper()
	var b strings.Builder
	for more := true; more; {
		var err error
		if more, err = a.Batch(context.Background(), batch, func(doc bson.Raw) bool {
			b.WriteString(value.Text(value.Document(doc)) + "\n")
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestGatheredResultsAreOfOneSnapshot(t *testing.T) {
	db := open(t)
	insert(t, db, "{_id: 1, v: 1}", "{_id: 2, v: 2}", "{_id: 3, v: 3}")
	a := aggregate(t, db, "{$group: {_id: \"$v\"}}", "{$sort: {_id: 1}}")
	if more, err := a.Batch(context.Background(), 1, func(bson.Raw) bool { return true }); !more || err != nil {
		t.Fatal(more, err)
	}
	if _, err := db.Delete(context.Background(), ns, []Delete{{Filter: doc("{}"), Multi: true}}, true); err != nil {
		t.Fatal(err)
	}
	expect(t, results(t, a, 1), "{_id: 2}", "{_id: 3}")
}

func TestFlowKeepsTheDocumentThatWasNotTaken(t *testing.T) {
	db := open(t)
	insert(t, db, "{_id: 1, l: [1, 2, 3]}", "{_id: 2, l: [4]}")
	for _, stages := range [][]string{{`{$unwind: "$l"}`}, {`{$unwind: "$l"}`, `{$sort: {l: 1}}`}} {
		a := aggregate(t, db, stages...)
		n := 0
		if more, err := a.Batch(context.Background(), 100, func(bson.Raw) bool { n++; return n < 3 }); !more || err != nil {
			t.Fatal(more, err)
		}
		expect(t, results(t, a, 100), "{_id: 1, l: 3}", "{_id: 2, l: 4}")
	}
}

func TestFlowEndsWithItsCollection(t *testing.T) {
	db := open(t)
	insert(t, db, "{_id: 1}", "{_id: 2}")
	a := aggregate(t, db, "{$set: {x: 1}}")
	emit := func(bson.Raw) bool { return true }
	if _, err := a.Batch(context.Background(), 1, emit); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.DropCollection(context.Background(), ns); err != nil {
		t.Fatal(err)
	}
	if more, err := a.Batch(context.Background(), 1, emit); more || !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
		t.Errorf("%v %v", more, err)
	}
}

func TestCancelledContextEndsAPipeline(t *testing.T) {
	db := open(t)
	for range 3 {
		list := make([]string, 1000)
		for i := range list {
			list[i] = "{a: 1}"
		}
		insert(t, db, list...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := db.Aggregate(ctx, ns, Aggregate{Stages: docs(`{$group: {_id: "$_id"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := a.Batch(ctx, 1, func(bson.Raw) bool { return true }); !mongoerr.Is(mongoerr.From(err), mongoerr.Interrupted) {
		t.Errorf("%v", err)
	}
}

func TestOpenDropsWhatAnOutHadWritten(t *testing.T) {
	e := simfs.Memory()
	db := openIn(t, e)
	insert(t, db, "{_id: 1}")
	temp := Namespace{DB: ns.DB, Coll: outPrefix + "x"}
	if err := db.CreateCollection(context.Background(), temp, noFields()); err != nil {
		t.Fatal(err)
	}
	closeChecked(t, db)
	db = openIn(t, e)
	list, err := db.ListCollections(context.Background(), ns.DB)
	if err != nil || len(list) != 1 || list[0].Name != ns.Coll {
		t.Errorf("%v %v", list, err)
	}
}

func TestOutIsAtomicToReaders(t *testing.T) {
	db := open(t)
	insert(t, db, "{_id: 1}", "{_id: 2}", "{_id: 3}")
	to := Namespace{DB: ns.DB, Coll: "to"}
	if _, err := db.Insert(context.Background(), to, docs("{_id: 9}"), true); err != nil {
		t.Fatal(err)
	}
	// A pipeline that fails on the last document leaves the target as it was.
	_, err := db.Aggregate(context.Background(), ns, Aggregate{Stages: docs(`{$project: {x: {$divide: [1, {$subtract: [3, "$_id"]}]}}}`, `{$out: "to"}`)})
	if err == nil {
		t.Fatal("no error")
	}
	if n, err := db.Count(context.Background(), to, Count{Filter: doc("{_id: 9}")}); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	list, err := db.ListCollections(context.Background(), ns.DB)
	if err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
}
