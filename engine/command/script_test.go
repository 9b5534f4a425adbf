package command

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt. A case is commands, a line each, and what they answer. All cases of a script run on one database,
// called db unless a command says otherwise. A cursor is read to its end, in batches of two behind the first.
func TestScripts(t *testing.T) {
	script.RunStateful(t, func(t *testing.T) script.Answer {
		cl := scripted(t)
		return func(_ *testing.T, c script.Case) string {
			var b strings.Builder
			for _, line := range c.Lines {
				answer(&b, cl, line)
			}
			return strings.TrimSuffix(b.String(), "\n")
		}
	})
}

// scripted is a client of a database of its own, which is checked when the test ends.
func scripted(t *testing.T) *Client {
	t.Helper()
	e := simfs.Memory()
	db, err := engine.Open("/db", engine.Options{Env: e, TTLSweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	disp := New(db, Options{Env: e, Logger: slog.New(slog.DiscardHandler), Process: Process{Host: "here", PID: 5}, MaxConnections: 10})
	t.Cleanup(func() {
		disp.Close()
		if err := db.Check(context.Background(), func(fault error) { t.Errorf("check: %v", fault) }); err != nil {
			t.Error(err)
		}
		for _, f := range db.Store().Check().Faults {
			t.Errorf("storage check: %s", f)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return disp.Connect("test")
}

// temporary are the names of collections that $out fills.
var temporary = regexp.MustCompile(`(tmp\.agg_out\.)[-0-9a-f]+`)

func ask(cl *Client, body bson.Raw) bson.Raw {
	if value.IsMissing(value.Lookup(body, "$db")) {
		body = bson.Raw(bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(bytes.Clone(body[4:len(body)-1]), "$db", "db")))
	}
	out, _ := cl.Run(context.Background(), Request{Body: body}, nil)
	return out
}

// answer writes what a command answers.
func answer(b *strings.Builder, cl *Client, line string) {
	command := value.MustParseDocument(line)
	reply := ask(cl, command)
	for {
		if v := value.Lookup(reply, "code"); v.Type != 0 && value.AsDouble(value.Lookup(reply, "ok")) == 0 {
			name := value.Lookup(reply, "codeName")
			text := temporary.ReplaceAllString(string(value.StringBytes(value.Lookup(reply, "errmsg"))), "$1…")
			fmt.Fprintf(b, "error %d %s: %s\n", int(value.AsDouble(v)), value.StringBytes(name), text)
			return
		}
		cur := value.Lookup(reply, "cursor")
		if cur.Type == 0 {
			break
		}
		docs := value.Lookup(cur.Value, "firstBatch")
		if docs.Type == 0 {
			docs = value.Lookup(cur.Value, "nextBatch")
		}
		for it := value.Elements(docs.Value); it.Next(); {
			fmt.Fprintln(b, value.Text(it.Value()))
		}
		id := value.Lookup(cur.Value, "id").Int64()
		if id == 0 {
			return
		}
		ns := string(value.StringBytes(value.Lookup(cur.Value, "ns")))
		db, coll, _ := strings.Cut(ns, ".")
		fmt.Fprintf(b, "-- more of %s\n", ns)
		more, err := bson.Marshal(d("getMore", id, "collection", coll, "batchSize", 2, "$db", db))
		if err != nil {
			panic(err)
		}
		reply = ask(cl, more)
	}
	// What differs from run to run, or says nothing, is left out.
	rest := bson.D{}
	for it := value.Elements(reply); it.Next(); {
		switch name := string(it.Name()); name {
		case "ok", "serverInfo", "command", "executionTimeMillis", "millis", "bytesFreed":
		default:
			rest = append(rest, bson.E{Key: name, Value: it.Value()})
		}
	}
	raw, err := bson.Marshal(rest)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(b, value.Text(value.Document(raw)))
}

func TestAggregationHasAnEnd(t *testing.T) {
	cl := scripted(t)
	var docs bson.A
	for i := range 100 {
		docs = append(docs, d("_id", i, "l", bson.A{1, 2, 3}))
	}
	run(t, cl, d("insert", "c", "documents", docs, "$db", "db"))
	for _, stages := range []bson.A{
		{d("$unwind", "$l")},
		{d("$unwind", "$l"), d("$limit", 250), d("$skip", 7)},
		{d("$sort", d("_id", -1)), d("$unwind", "$l"), d("$sort", d("l", 1, "_id", 1))},
		{d("$group", d("_id", d("$mod", bson.A{"$_id", 37}), "n", d("$sum", 1))), d("$sort", d("_id", 1))},
	} {
		var want []bson.Raw
		for _, size := range []int{1000, 0, 1, 2, 7, 100} {
			body, err := bson.Marshal(d("aggregate", "c", "pipeline", stages, "cursor", d("batchSize", size), "$db", "db"))
			if err != nil {
				t.Fatal(err)
			}
			cur := value.Lookup(ask(cl, body), "cursor")
			var got []bson.Raw
			for name := "firstBatch"; ; name = "nextBatch" {
				for it := value.Elements(value.Lookup(cur.Value, name).Value); it.Next(); {
					got = append(got, bson.Raw(it.Value().Value))
				}
				id := value.Lookup(cur.Value, "id")
				if id.Type == 0 || id.Int64() == 0 {
					break
				}
				// What comes and goes between batches must not disturb those that stay.
				run(t, cl, d("insert", "c", "documents", bson.A{d("_id", 1000+len(got)+size*1000)}, "$db", "db"))
				run(t, cl, d("delete", "c", "deletes", bson.A{d("q", d("_id", d("$gte", 1000)), "limit", 0)}, "$db", "db"))
				if body, err = bson.Marshal(d("getMore", id.Int64(), "collection", "c", "batchSize", max(size, 1), "$db", "db")); err != nil {
					t.Fatal(err)
				}
				cur = value.Lookup(ask(cl, body), "cursor")
			}
			if want == nil {
				want = got
			}
			if len(got) != len(want) {
				t.Fatalf("%v in batches of %d: %d documents, and at once %d", stages, size, len(got), len(want))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("%v in batches of %d: %v, and at once %v", stages, size, got[i], want[i])
				}
			}
		}
	}
}

func TestMergeFailureLeavesWhatWasWritten(t *testing.T) {
	cl := scripted(t)
	run(t, cl, d("insert", "c", "documents", bson.A{d("_id", 1), d("_id", 2), d("_id", 3)}, "$db", "db"))
	run(t, cl, d("insert", "to", "documents", bson.A{d("_id", 2)}, "$db", "db"))
	m := run(t, cl, d("aggregate", "c", "pipeline", bson.A{d("$merge", d("into", "to", "whenMatched", "fail"))}, "cursor", d(), "$db", "db"))
	if m["code"] != int32(mongoerr.DuplicateKey) {
		t.Fatal(m)
	}
	if m = run(t, cl, d("count", "to", "$db", "db")); m["n"] != int32(2) {
		t.Errorf("%v", m)
	}
}
