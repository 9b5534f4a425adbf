package fuzz

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/command"
	"github.com/multiforadb/multiforadb/engine/server/wire"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/simfs"
)

// FuzzCommand gives a database commands with parts of other commands in them. It may refuse them, but not panic, what it
// answers must be BSON again, and at the end documents, indexes and pages must fit each other.
//
// The input is a list of choices for each of up to 8 commands: which one to begin with, and at each of its values whether to
// keep, drop or rename it, or to put another in its place. Choices that are not there are to keep.
func FuzzCommand(f *testing.F) {
	for i := range commandSeeds {
		f.Add([]byte{byte(i)})
		f.Add([]byte{byte(i), 1, 0, 200, byte(7 * i), 0, 130, byte(i), 3})
	}
	for seed := range uint64(commandRandom) {
		rng := rand.New(rand.NewPCG(seed, 0))
		b := make([]byte, 500)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	pool := newPool()
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newCommandWorld(t)
		defer w.close(t)
		c := choices(data)
		for range 8 {
			cmd := pool.change(commandSeeds[int(c.next())%len(commandSeeds)], &c, 0).(bson.D)
			w.run(t, cmd)
			if len(c) == 0 {
				break
			}
		}
	})
}

// commandRandom is how many random inputs are tried beside the seeds.
const commandRandom = 100

// choices are bytes that steer; when they run out everything is 0.
type choices []byte

func (c *choices) next() byte {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return b
}

// pool is what can be put in a command: every name and value of all seeds, and values that are often mistaken.
type pool struct {
	names  []string
	values []any
	byType map[reflect.Type][]any
}

func newPool() *pool {
	deep := any(int32(1))
	for range 90 {
		deep = one("a", deep)
	}
	p := &pool{
		names: []string{"", "$", "a.", ".a", "a..b", "$a", "0", "_id", "$and", "$nor", "$expr", "$where", "$currentDate", "$rename", "$pull", "$addToSet",
			"$pop", "$bit", "$mul", "$min", "$max", "$pullAll", "$setOnInsert", "$size", "$all", "$mod", "$regex", "$options", "$jsonSchema",
			"$bitsAllSet", "$text", "$meta", "$natural", "$position", "unique", "expireAfterSeconds", "partialFilterExpression", "maxTimeMS",
			"readConcern", "let", "collation", "capped", "size", "validator", "viewOn"},
		values: []any{nil, true, math.NaN(), math.Inf(-1), math.Copysign(0, -1), 1e300, int64(math.MinInt64), int64(math.MaxInt64), int32(math.MinInt32), -1, 0,
			"", "$", "$a", "a.b", strings.Repeat("x", 5000), one(), bson.A{}, deep, bson.MinKey{}, bson.MaxKey{}, bson.Undefined{},
			bson.Decimal128{}, bson.NewDecimal128(0x7c00000000000000, 0), bson.ObjectID{}, bson.DateTime(math.MinInt64), bson.Timestamp{},
			bson.Regex{Pattern: "(", Options: "i"}, bson.Regex{Pattern: "(a+)+$", Options: "imsx"}, bson.JavaScript("x"), bson.Symbol("s"),
			bson.CodeWithScope{Code: "x", Scope: one("a", 1)}, bson.DBPointer{DB: "a"}, bson.Binary{Subtype: 3, Data: []byte("x")}},
	}
	var walk func(v any)
	walk = func(v any) {
		p.values = append(p.values, v)
		switch v := v.(type) {
		case bson.D:
			for _, e := range v {
				p.names = append(p.names, e.Key)
				walk(e.Value)
			}
		case bson.A:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, cmd := range commandSeeds {
		walk(cmd)
	}
	p.byType = make(map[reflect.Type][]any)
	for _, v := range p.values {
		p.byType[reflect.TypeOf(v)] = append(p.byType[reflect.TypeOf(v)], v)
	}
	return p
}

// change gives v with the changes that c asks for. The command's name and what it names stay; further in there is more change. What
// is put in a value's place is mostly of its type, or all would end at the first check.
func (p *pool) change(v any, c *choices, level int) any {
	keep := byte(250)
	if level > 1 {
		keep = 200
	}
	if k := c.next(); level > 0 && k > keep {
		from := p.values
		if same := p.byType[reflect.TypeOf(v)]; k%4 != 0 && len(same) > 0 {
			from = same
		}
		return from[(int(c.next())*256+int(c.next()))%len(from)]
	}
	name := func() string { return p.names[(int(c.next())*256+int(c.next()))%len(p.names)] }
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for i, e := range v {
			k := c.next()
			switch {
			case level == 0 && i == 0:
				out = append(out, e)
				continue
			case k <= keep:
				out = append(out, bson.E{Key: e.Key, Value: p.change(e.Value, c, level+1)})
				continue
			}
			switch k % 3 {
			case 0:
				out = append(out, bson.E{Key: name(), Value: p.change(e.Value, c, level+1)})
			case 1:
				out = append(out, e, bson.E{Key: name(), Value: p.values[(int(c.next())*256+int(c.next()))%len(p.values)]})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			out = append(out, p.change(e, c, level+1))
		}
		return out
	}
	return v
}

// commandWorld is a database in memory with some documents in it.
type commandWorld struct {
	db     *engine.DB
	disp   *command.Dispatcher
	client *command.Client
	log    *logText
}

func newCommandWorld(t *testing.T) *commandWorld {
	e := simfs.Memory()
	db, err := engine.Open("db", engine.Options{Env: e, TTLSweep: -1, Storage: storage.Options{Manual: true, SegmentSize: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	w := &commandWorld{db: db, log: new(logText)}
	w.disp = command.New(db, command.Options{Env: e, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelError}))})
	w.client = w.disp.Connect("fuzz")
	for _, cmd := range commandSeeds[:2] {
		if !w.run(t, cmd) {
			t.Fatalf("%v fails", cmd)
		}
	}
	return w
}

func (w *commandWorld) run(t *testing.T, cmd bson.D) bool {
	if i := len(cmd) - 1; cmd[i].Key != "$db" {
		cmd = append(cmd, bson.E{Key: "$db", Value: "db"})
	}
	raw, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Validate(raw); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	out, ok := w.client.Run(context.Background(), command.Request{Body: raw}, nil)
	if err := bson.Raw(out).Validate(); err != nil {
		t.Errorf("the answer to %s is not BSON: %v", bson.Raw(raw), err)
	}
	if log := w.log.take(); strings.Contains(log, "panic") {
		t.Errorf("%s: %s", bson.Raw(raw), log)
	}
	return ok
}

func (w *commandWorld) close(t *testing.T) {
	w.disp.Close()
	err := w.db.Check(context.Background(), func(fault error) { t.Error(fault) })
	if err != nil {
		t.Error(err)
	}
	for _, fault := range w.db.Store().Check().Faults {
		t.Error(fault)
	}
	if err := w.db.Close(); err != nil {
		t.Error(err)
	}
}

// logText is what was logged.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// one makes documents short to write.
func one(pairs ...any) bson.D {
	d := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return d
}

// commandSeeds are commands of every kind; the first two fill the database.
var commandSeeds = []bson.D{
	one("insert", "c", "documents", bson.A{one("_id", 1, "a", 1, "b", bson.A{1, "x", one("c", 1)}), one("_id", 2, "a", bson.A{}), one("_id", "x", "a", nil)}),
	one("createIndexes", "c", "indexes", bson.A{one("key", one("a", 1, "b", -1), "name", "ab"), one("key", one("b.c", 1), "name", "bc", "sparse", true)}),
	one("find", "c", "filter", one("a", one("$gte", 1, "$in", bson.A{1, 2.5, bson.Regex{Pattern: "^x"}}), "$or", bson.A{one("b", 1), one("b.c", one("$exists", true))}),
		"sort", one("a", -1), "projection", one("b", 1, "_id", 0), "skip", 1, "limit", 5, "batchSize", 1, "hint", "ab"),
	one("find", "c", "filter", one("b", one("$elemMatch", one("c", one("$not", one("$type", "string"))))), "projection", one("b", one("$slice", 1))),
	one("update", "c", "updates", bson.A{one("q", one("a", 1), "u", one("$set", one("b.0", 5), "$inc", one("n", 1), "$push", one("l", one("$each", bson.A{3, 1}, "$sort", 1, "$slice", 2))), "upsert", true)}),
	one("update", "c", "updates", bson.A{one("q", one("b", 1), "u", one("$set", one("b.$[x]", 5)), "multi", true, "arrayFilters", bson.A{one("x", one("$gt", 0))})}),
	one("update", "c", "updates", bson.A{one("q", one(), "u", one("$unset", one("a", 1), "$rename", one("b", "d.e"), "$min", one("m", 1)), "multi", true),
		one("q", one("_id", "x"), "u", one("$addToSet", one("s", one("$each", bson.A{1, 1.0})), "$pull", one("b", one("$gt", 1)), "$mul", one("n", 2.5)))}),
	one("update", "c", "updates", bson.A{one("q", one("a", one("$gt", 0)), "u", one("a", 5, "b", one("c", bson.A{1, 2}))),
		one("q", one("b.c", 1), "u", one("$set", one("b.$", one("c", 3)), "$currentDate", one("t", true), "$setOnInsert", one("o", 1)), "upsert", true)}, "ordered", false),
	one("bulkWrite", 1, "ops", bson.A{one("insert", 0, "document", one("_id", 5)), one("update", 0, "filter", one("a", 1), "updateMods", one("$inc", one("a", 1)), "multi", true),
		one("delete", 1, "filter", one("a", 7), "multi", false)}, "nsInfo", bson.A{one("ns", "db.c"), one("ns", "db.d")}, "errorsOnly", false, "$db", "admin"),
	one("delete", "c", "deletes", bson.A{one("q", one("a", 77), "limit", 0)}),
	one("delete", "c", "deletes", bson.A{one("q", one("b", one("$size", 3)), "limit", 1, "hint", "bc"), one("q", one("a", one("$mod", bson.A{2, 1})), "limit", 0)}),
	one("createIndexes", "c", "indexes", bson.A{one("key", one("b", 1), "name", "u", "unique", true, "partialFilterExpression", one("a", one("$gt", 1)), "expireAfterSeconds", 5)}),
	one("findAndModify", "c", "query", one("_id", 1), "sort", one("a", 1), "update", one("$unset", one("b.1", "")), "new", true, "fields", one("a", 1)),
	one("count", "c", "query", one("a", one("$ne", nil)), "skip", 1, "limit", 2),
	one("distinct", "c", "key", "b.c", "query", one("a", one("$lt", 5))),
	one("aggregate", "c", "pipeline", bson.A{one("$match", one("a", 1)), one("$sort", one("b", 1)), one("$limit", 2), one("$project", one("a", 1))}, "cursor", one("batchSize", 1)),
	one("aggregate", "c", "pipeline", bson.A{one("$match", one("a", 1)), one("$group", one("_id", 1, "n", one("$sum", 1)))}, "cursor", one()),
	one("explain", one("find", "c", "filter", one("a", 1)), "verbosity", "executionStats"),
	one("getMore", int64(5), "collection", "c", "batchSize", 2),
	one("killCursors", "c", "cursors", bson.A{int64(5)}),
	one("create", "d", "collation", one("locale", "en")),
	one("drop", "d"),
	one("dropIndexes", "d", "index", one("a", 1)),
	one("listCollections", 1, "filter", one("name", bson.Regex{Pattern: "c"}), "nameOnly", true, "cursor", one("batchSize", 1)),
	one("listIndexes", "c", "cursor", one("batchSize", 1)),
	one("listDatabases", 1, "filter", one("name", "db"), "$db", "admin"),
	one("hello", 1, "client", one("driver", one("name", "x")), "compression", bson.A{"zlib"}),
	one("ping", 1, "lsid", one("id", bson.Binary{Subtype: 4, Data: make([]byte, 16)}), "maxTimeMS", 5, "comment", "x", "$readPreference", one("mode", "primary")),
	one("insert", "c", "documents", bson.A{one("a", 5)}, "ordered", false, "writeConcern", one("w", 1, "j", true)),
	one("collStats", "c", "scale", 1024), one("dbStats", 1), one("serverStatus", 1), one("endSessions", bson.A{}), one("getParameter", "*", "$db", "admin"),
}
