package command

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

// benchClient is a client of a database in memory with 20 000 documents of 1 KiB, and an index on n.
func benchClient(t testing.TB) *Client {
	e := simfs.Memory()
	db, err := engine.Open("/db", engine.Options{Env: e, TTLSweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	disp := New(db, Options{Env: e, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		disp.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, ns := context.Background(), engine.Namespace{DB: "test", Coll: "things"}
	if _, err := db.CreateIndexes(ctx, ns, []bson.Raw{value.MustParseDocument(`{key: {n: 1}, name: "n"}`)}); err != nil {
		t.Fatal(err)
	}
	pad := ""
	for i := range 9 {
		pad += fmt.Sprintf(`, p%d: "%s"`, i, strings.Repeat("x", 100))
	}
	for at := 0; at < 20_000; at += 1000 {
		var in []bson.Raw
		for i := at; i < at+1000; i++ {
			in = append(in, value.MustParseDocument(fmt.Sprintf(`{_id: %d, n: %d, a: %d, b: "%d"%s}`, i, i, i%10, i%7, pad)))
		}
		if r, err := db.Insert(ctx, ns, in, true); err != nil || r.N != 1000 {
			t.Fatal(r, err)
		}
	}
	return disp.Connect("here")
}

// benchCommands are commands as the driver sends them, and how many documents they find.
var benchCommands = []struct {
	name, command string
	found         int
}{
	{"ByID", `{find: "things", filter: {_id: 4711}, limit: 1, singleBatch: true, lsid: {id: UUID("00112233-4455-6677-8899-aabbccddeeff")}, $db: "test"}`, 1},
	{"Range", `{find: "things", filter: {n: {$gte: 5000, $lt: 6000}}, batchSize: 2000, lsid: {id: UUID("00112233-4455-6677-8899-aabbccddeeff")}, $db: "test"}`, 1000},
	{"Covered", `{find: "things", filter: {n: {$gte: 5000, $lt: 6000}}, projection: {n: 1, _id: 0}, batchSize: 2000, $db: "test"}`, 1000},
	{"In", `{find: "things", filter: {n: {$in: [1, 100, 10000, 12345, 19999]}}, $db: "test"}`, 5},
	{"Count", `{count: "things", query: {n: {$gte: 5000, $lt: 6000}}, $db: "test"}`, -1},
	{"Scan", `{find: "things", filter: {a: 11, b: "3"}, $db: "test"}`, 0},
}

func BenchmarkFind(b *testing.B) {
	cl := benchClient(b)
	for _, c := range benchCommands {
		b.Run(c.name, func(b *testing.B) {
			body := value.MustParseDocument(c.command)
			out := make([]byte, 0, 4<<20)
			b.ReportAllocs()
			for range b.N {
				var ok bool
				if out, ok = cl.Run(context.Background(), Request{Body: body}, out[:0]); !ok {
					b.Fatal(bson.Raw(out))
				}
			}
			batch, _ := bson.Raw(out).LookupErr("cursor", "firstBatch")
			if n := value.Count(batch.Value); c.found >= 0 && n != c.found {
				b.Fatalf("%d documents", n)
			}
		})
	}
}

// A find by _id is what applications do most. What it allocates is counted, since each allocation costs twice: now, and in the collector.
func TestFindByIDAllocatesLittle(t *testing.T) {
	cl := benchClient(t)
	body := value.MustParseDocument(benchCommands[0].command)
	out := make([]byte, 0, 64<<10)
	allocs := testing.AllocsPerRun(200, func() {
		var ok bool
		if out, ok = cl.Run(context.Background(), Request{Body: body}, out[:0]); !ok {
			t.Fatal(bson.Raw(out))
		}
	})
	if allocs > 15 {
		t.Errorf("a find by _id makes %v allocations, and 15 are allowed", allocs)
	}
}
