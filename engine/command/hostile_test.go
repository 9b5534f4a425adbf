package command

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// nestedIn is inner inside of n documents {name: …}.
func nestedIn(name string, n int, inner any) any {
	for range n {
		inner = bson.D{{Key: name, Value: inner}}
	}
	return inner
}

// nestedInArrays is inner inside of n documents {name: [ … ]}.
func nestedInArrays(name string, n int, inner any) any {
	for range n {
		inner = bson.D{{Key: name, Value: bson.A{inner}}}
	}
	return inner
}

func many(n int, f func(i int) any) bson.A {
	a := make(bson.A, n)
	for i := range a {
		a[i] = f(i)
	}
	return a
}

// TestHostileCommandsAreAnswered: commands that nest without end, are enormous, or grow when they are parsed get their answer or an error,
// in memory that is bounded by their size, and the next command finds the server well.
func TestHostileCommandsAreAnswered(t *testing.T) {
	cl := scripted(t)
	var docs bson.A
	for i := range 10 {
		docs = append(docs, d("_id", i, "a", bson.A{i, d("b", strings.Repeat("x", i))}, "s", strings.Repeat("a", 30)))
	}
	if m := run(t, cl, d("insert", "c", "documents", docs, "$db", "db")); m["n"] != int32(10) {
		t.Fatal(m)
	}
	wide := bson.D{}
	for i := range 100_000 {
		wide = append(wide, bson.E{Key: fmt.Sprintf("f%d", i), Value: 1})
	}
	const ok mongoerr.Code = 0
	for _, x := range []struct {
		name string
		cmd  bson.D
		code mongoerr.Code // -1: any error
	}{
		{"10 000 levels of $and", d("find", "c", "filter", nestedInArrays("$and", 10_000, d("a", 1))), -1},
		{"10 000 levels of $not", d("find", "c", "filter", d("a", nestedIn("$not", 10_000, d("$gt", 1)))), -1},
		{"10 000 levels of document", d("find", "c", "filter", d("a", nestedIn("a", 10_000, 1))), -1},
		{"10 000 levels of expression", d("find", "c", "filter", d("$expr", nestedInArrays("$add", 10_000, 1))), -1},
		{"90 levels of $elemMatch", d("find", "c", "filter", d("a", nestedIn("$elemMatch", 90, d("$gt", 1)))), ok},
		{"1 MB of regular expression", d("find", "c", "filter", d("s", bson.Regex{Pattern: strings.Repeat("(a|b)*", 1<<20/6)})), mongoerr.BadValue},
		{"a regular expression that counts", d("find", "c", "filter", d("s", bson.Regex{Pattern: "((((a{1,50}){1,50}){1,50}){1,50})b"})), -1},
		{"100 000 branches of $or", d("find", "c", "filter", d("$or", many(100_000, func(i int) any { return d("a", -i-1) }))), ok},
		{"100 000 branches of $and", d("find", "c", "filter", d("$and", many(100_000, func(i int) any { return d("a", d("$ne", -i-1)) }))), ok},
		{"100 000 values of $in", d("find", "c", "filter", d("_id", d("$in", many(100_000, func(i int) any { return -i - 1 })))), ok},
		{"100 000 clauses", d("find", "c", "filter", wide), ok},
		{"100 000 fields to project", d("find", "c", "projection", wide), ok},
		{"100 000 fields to sort by", d("find", "c", "sort", wide), 13103},
		{"100 000 fields to set", d("update", "c", "updates", bson.A{d("q", d("_id", -1), "u", d("$set", wide))}), ok},
		{"10 000 stages", d("aggregate", "c", "pipeline", many(10_000, func(int) any { return d("$match", d()) }), "cursor", d()), 7749501},
		{"100 levels of $facet and $lookup", d("aggregate", "c", "pipeline", lookups(100), "cursor", d()), -1},
	} {
		t.Run(x.name, func(t *testing.T) {
			body, err := bson.Marshal(append(x.cmd, bson.E{Key: "$db", Value: "db"}))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out, _ := cl.Run(context.Background(), Request{Body: body}, nil)
			runtime.ReadMemStats(&after)
			var m bson.M
			if err := bson.Unmarshal(out, &m); err != nil {
				t.Fatal(err)
			}
			code, _ := m["code"].(int32)
			if x.code >= 0 && code != int32(x.code) || x.code < 0 && code == 0 || code == int32(mongoerr.InternalError) {
				t.Errorf("code %d, and should be %d: %.300v", code, x.code, m["errmsg"])
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20+100*uint64(len(body)) {
				t.Errorf("%d bytes were allocated for a command of %d", used, len(body))
			}
		})
	}
	if m := run(t, cl, d("count", "c", "$db", "db")); m["n"] != int32(10) {
		t.Error(m)
	}
}

func lookups(n int) bson.A {
	p := bson.A{}
	for range n {
		p = bson.A{d("$lookup", d("from", "c", "pipeline", p, "as", "x"))}
	}
	return p
}

// TestViewsOnViewsEnd: neither long chains of views nor views that name others twice take more than they may.
func TestViewsOnViewsEnd(t *testing.T) {
	cl := scripted(t)
	run(t, cl, d("insert", "c0", "documents", bson.A{d("_id", 1)}, "$db", "db"))
	made := 0
	for i := range 25 {
		m := run(t, cl, d("create", fmt.Sprintf("c%d", i+1), "viewOn", fmt.Sprintf("c%d", i), "$db", "db"))
		if m["ok"] != 1.0 {
			if m["code"] != int32(mongoerr.ViewDepthLimitExceeded) {
				t.Fatal(m)
			}
			break
		}
		made++
	}
	if made != 20 {
		t.Errorf("%d views lie on each other, and 20 may", made)
	}
	if m := run(t, cl, d("count", "c20", "$db", "db")); m["n"] != int32(1) {
		t.Error(m)
	}
	for i := range 15 {
		twice := bson.A{d("$unionWith", fmt.Sprintf("d%d", i)), d("$unionWith", fmt.Sprintf("d%d", i))}
		m := run(t, cl, d("create", fmt.Sprintf("d%d", i+1), "viewOn", "c0", "pipeline", twice, "$db", "db"))
		if m["ok"] != 1.0 && m["code"] != int32(mongoerr.ViewDepthLimitExceeded) {
			t.Fatal(m)
		}
	}
	if m := run(t, cl, d("aggregate", "d15", "pipeline", bson.A{}, "cursor", d(), "$db", "db")); m["ok"] == 1.0 && m["code"] != nil {
		t.Error(m)
	}
}
