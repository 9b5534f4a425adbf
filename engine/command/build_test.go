package command

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/simfs"
)

// An index build is seen by currentOp with how far it is, and killOp ends it; the index is not there then, and can be built.
func TestIndexBuildIsSeenAndKilled(t *testing.T) {
	disk := simfs.New(simfs.Options{})
	e := disk.Env(1)
	db, err := engine.Open("/db", engine.Options{Env: e, TTLSweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	disp := New(db, Options{Env: e, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		disp.Close()
		db.Close()
	})
	builder, killer := disp.Connect("builder"), disp.Connect("killer")
	docs := bson.A{}
	for i := range 5000 {
		docs = append(docs, d("_id", i, "a", fmt.Sprint("value ", i)))
	}
	run(t, builder, d("insert", "c", "documents", docs, "$db", "db"))
	create := d("createIndexes", "c", "indexes", bson.A{d("key", d("a", 1), "name", "a")}, "$db", "db")
	seen := 0
	var asking sync.Mutex // held while the killer asks; the disk is used by the database's own tasks, too
	disk.SetHooks(simfs.Hooks{Watch: func(simfs.Event) {
		if !asking.TryLock() {
			return
		}
		defer asking.Unlock()
		for _, op := range run(t, killer, d("currentOp", 1, "msg", d("$regex", "^Index Build"), "$db", "admin"))["inprog"].(bson.A) {
			var fields bson.M
			raw, _ := bson.Marshal(op)
			bson.Unmarshal(raw, &fields)
			if fields["progress"] != nil && fields["ns"] == "db.c" {
				seen++
				run(t, killer, d("killOp", 1, "op", fields["opid"], "$db", "admin"))
			}
		}
	}})
	m := run(t, builder, create)
	asking.Lock() // for good: nobody asks and kills any more
	if m["code"] != int32(11601) || seen == 0 {
		t.Errorf("%v, seen %d times", m, seen)
	}
	if m := run(t, builder, d("listIndexes", "c", "$db", "db")); len(m["cursor"].(bson.D)[0].Value.(bson.A)) != 1 {
		t.Errorf("%v", m)
	}
	if m := run(t, builder, create); m["numIndexesAfter"] != int32(2) {
		t.Errorf("%v", m)
	}
	if err := db.Check(context.Background(), func(fault error) { t.Error(fault) }); err != nil {
		t.Error(err)
	}
}
