package command

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func TestKilledOperationEnds(t *testing.T) {
	cl := scripted(t)
	other := cl.d.Connect("other")
	numbers := d("$range", bson.A{0, 100_000})
	endless := d("$reduce", d("input", numbers, "initialValue", 0, "in", d("$add", bson.A{"$$value",
		d("$size", d("$filter", d("input", numbers, "as", "x", "cond", d("$eq", bson.A{"$$x", "$$this"}))))})))
	ended := make(chan bson.M)
	go func() {
		ended <- run(t, cl, d("aggregate", 1, "pipeline", bson.A{d("$documents", bson.A{d("x", 1)}), d("$project", d("x", endless))}, "cursor", d(), "$db", "db"))
	}()
	var op bson.D
	for len(op) == 0 {
		if list := run(t, other, d("currentOp", 1, "command.aggregate", 1, "$db", "admin"))["inprog"].(bson.A); len(list) > 0 {
			op = list[0].(bson.D)
		}
	}
	for _, e := range op {
		if e.Key == "opid" {
			run(t, other, d("killOp", 1, "op", e.Value, "$db", "admin"))
		}
	}
	if m := <-ended; m["code"] != int32(mongoerr.Interrupted) {
		t.Errorf("%v", m)
	}
	if m := run(t, cl, d("ping", 1, "$db", "db")); m["ok"] != 1.0 {
		t.Errorf("%v", m)
	}
}

func TestKilledGetMoreStopsWaiting(t *testing.T) {
	cl := scripted(t)
	run(t, cl, d("create", "c", "capped", true, "size", 100_000, "$db", "db"))
	run(t, cl, d("insert", "c", "documents", bson.A{d("_id", 1)}, "$db", "db"))
	m := run(t, cl, d("find", "c", "tailable", true, "awaitData", true, "$db", "db"))
	var id any
	for _, e := range m["cursor"].(bson.D) {
		if e.Key == "id" {
			id = e.Value
		}
	}
	ended := make(chan bson.M)
	go func() {
		ended <- run(t, cl, d("getMore", id, "collection", "c", "maxTimeMS", 600_000, "$db", "db"))
	}()
	other := cl.d.Connect("other")
	for found := false; !found; {
		for _, op := range run(t, other, d("currentOp", 1, "op", "getmore", "$db", "admin"))["inprog"].(bson.A) {
			for _, e := range op.(bson.D) {
				if e.Key == "opid" {
					found = true
					run(t, other, d("killOp", 1, "op", e.Value, "$db", "admin"))
				}
			}
		}
	}
	if m := <-ended; m["code"] != int32(mongoerr.Interrupted) {
		t.Errorf("%v", m)
	}
}

func TestTailableCursorWaits(t *testing.T) {
	cl := scripted(t)
	run(t, cl, d("create", "c", "capped", true, "size", 100_000, "$db", "db"))
	run(t, cl, d("insert", "c", "documents", bson.A{d("_id", 1), d("_id", 2)}, "$db", "db"))
	open := func(await bool) int64 {
		m := run(t, cl, d("find", "c", "tailable", true, "awaitData", await, "$db", "db"))
		for _, e := range m["cursor"].(bson.D) {
			if e.Key == "id" && e.Value != int64(0) {
				return e.Value.(int64)
			}
		}
		t.Fatalf("no cursor: %v", m)
		return 0
	}
	next := func(cl *Client, id int64, ms int) (n int, m bson.M) {
		more := d("getMore", id, "collection", "c", "$db", "db")
		if ms > 0 {
			more = append(more, bson.E{Key: "maxTimeMS", Value: ms})
		}
		m = run(t, cl, more)
		cur, _ := m["cursor"].(bson.D)
		for _, e := range cur {
			if e.Key == "nextBatch" {
				n = len(e.Value.(bson.A))
			}
			if e.Key == "id" && e.Value != id {
				t.Errorf("the cursor ended: %v", m)
			}
		}
		return n, m
	}
	impatient, patient := open(false), open(true)
	if n, m := next(cl, impatient, 0); n != 0 || m["ok"] != 1.0 {
		t.Errorf("%v", m)
	}
	if n, m := next(cl, impatient, 5); n != 0 || m["code"] != int32(mongoerr.BadValue) {
		t.Errorf("%v", m)
	}
	began := time.Now()
	if n, m := next(cl, patient, 30); n != 0 || m["ok"] != 1.0 || time.Since(began) < 30*time.Millisecond {
		t.Errorf("%v", m)
	}
	waited := make(chan int)
	other := cl.d.Connect("other")
	go func() {
		n, _ := next(other, patient, 60_000)
		waited <- n
	}()
	run(t, cl, d("insert", "other", "documents", bson.A{d()}, "$db", "db")) // wakes it in vain
	run(t, cl, d("insert", "c", "documents", bson.A{d("_id", 3)}, "$db", "db"))
	if n := <-waited; n != 1 {
		t.Errorf("%d documents", n)
	}
	if n, m := next(cl, impatient, 0); n != 1 {
		t.Errorf("%v", m)
	}
}

func TestCompactFreesWhatIsDead(t *testing.T) {
	cl := scripted(t)
	for i := range 20 {
		var docs bson.A
		for k := range 100 {
			docs = append(docs, d("_id", i*100+k, "s", string(make([]byte, 4000))))
		}
		run(t, cl, d("insert", "c", "documents", docs, "$db", "db"))
	}
	run(t, cl, d("delete", "c", "deletes", bson.A{d("q", d("_id", d("$mod", bson.A{4, 1})), "limit", 0), d("q", d("_id", d("$mod", bson.A{4, 2})), "limit", 0)}, "$db", "db"))
	freed, _ := run(t, cl, d("compact", "c", "$db", "db"))["bytesFreed"].(int64)
	if freed < 1<<20 {
		t.Errorf("%d bytes freed, of 4 MB that are dead", freed)
	}
	if m := run(t, cl, d("count", "c", "$db", "db")); m["n"] != int32(1000) {
		t.Errorf("%v", m)
	}
}
