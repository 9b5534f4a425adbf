package command

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// clockEnv is the real environment with a clock that the test moves.
func testEnv() (*env.Env, *testClock) {
	e := *env.Real()
	clock := &testClock{}
	e.Clock = clock
	return &e, clock
}

type testClock struct {
	now   time.Duration
	timer func()
}

func (c *testClock) Now() time.Time           { return time.Unix(1_700_000_000, 0).Add(c.now) }
func (c *testClock) Monotonic() time.Duration { return c.now }
func (c *testClock) Sleep(d time.Duration)    { c.now += d }
func (c *testClock) AfterFunc(_ time.Duration, f func()) func() bool {
	c.timer = f
	return func() bool { return true }
}

func testDispatcher(t *testing.T) (*Dispatcher, *testClock) {
	e, clock := testEnv()
	d := New(nil, Options{Env: e, Logger: slog.New(slog.DiscardHandler), Process: Process{Host: "here", PID: 5}, MaxConnections: 10})
	t.Cleanup(d.Close)
	return d, clock
}

func run(t *testing.T, cl *Client, cmd bson.D, sequences ...Sequence) bson.M {
	t.Helper()
	body, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := cl.Run(context.Background(), Request{Body: body, Sequences: sequences}, []byte("before"))
	if err := bson.Raw(out[6:]).Validate(); err != nil || string(out[:6]) != "before" {
		t.Fatalf("%v: the reply is no document: %v", cmd, err)
	}
	var m bson.M
	if err := bson.Unmarshal(out[6:], &m); err != nil {
		t.Fatal(err)
	}
	if (m["ok"] == 1.0) != ok {
		t.Errorf("%v: ok %v, and the reply is %v", cmd, ok, m)
	}
	return m
}

func d(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

func TestTableIsSorted(t *testing.T) {
	seen := make(map[string]bool)
	for i, c := range commands {
		if i > 0 && commands[i-1].name >= c.name {
			t.Errorf("%s stands behind %s", c.name, commands[i-1].name)
		}
		for _, name := range append([]string{c.name}, c.aliases...) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
	}
	names := make([]string, len(parameters))
	for i, p := range parameters {
		names[i] = p.name
	}
	if !slices.IsSorted(names) {
		t.Error("parameters are not sorted")
	}
}

func TestErrorsHaveMongoDBsCodes(t *testing.T) {
	disp, _ := testDispatcher(t)
	cl := disp.Connect("test")
	uuid := bson.Binary{Subtype: 4, Data: make([]byte, 16)}
	for _, x := range []struct {
		cmd     bson.D
		code    mongoerr.Code
		message string
	}{
		{d(), mongoerr.CommandNotFound, "no such command: ''"},
		{d("foo", 1, "$db", "a"), mongoerr.CommandNotFound, "no such command: 'foo'"},
		{d("atlasVersion", 1, "$db", "admin"), mongoerr.CommandNotFound, ""},
		{d("mapReduce", "c", "$db", "a"), mongoerr.NotImplemented, "mapReduce"},
		{d("ping", 1), 40571, "$db"},
		{d("ping", 1, "$db", ""), mongoerr.InvalidNamespace, ""},
		{d("ping", 1, "$db", "a b"), mongoerr.InvalidNamespace, ""},
		{d("ping", 1, "$db", 5), mongoerr.TypeMismatch, "BSON field 'ping.$db' is the wrong type 'int', expected type 'string'"},
		{d("ping", 1, "$db", "a", "x", 1), 40415, "BSON field 'ping.x' is an unknown field."},
		{d("ping", 1, "$db", "a", "comment", 1, "comment", 2), 40413, "BSON field 'ping.comment' is a duplicate field"},
		{d("hostInfo", 1, "$db", "a"), mongoerr.Unauthorized, "hostInfo may only be run against the admin database."},
		{d("ping", 1, "$db", "a", "apiVersion", "2"), mongoerr.APIVersionError, ""},
		{d("ping", 1, "$db", "a", "apiStrict", true), mongoerr.APIVersionError, ""},
		{d("buildInfo", 1, "$db", "a", "apiVersion", "1", "apiStrict", true), mongoerr.APIStrictError, "buildInfo"},
		{d("ping", 1, "$db", "a", "txnNumber", int64(1)), mongoerr.IllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos"},
		{d("find", "c", "$db", "a", "txnNumber", int64(1), "startTransaction", true, "autocommit", false), mongoerr.IllegalOperation, ""},
		{d("ping", 1, "$db", "a", "lsid", d("id", 5)), mongoerr.TypeMismatch, ""},
		{d("ping", 1, "$db", "a", "lsid", d()), 40414, "BSON field 'ping.lsid.id' is missing but a required field"},
		{d("ping", 1, "$db", "a", "lsid", d("id", uuid, "x", 1)), 40415, ""},
		{d("ping", 1, "$db", "a", "maxTimeMS", -1), mongoerr.BadValue, ""},
		{d("ping", 1, "$db", "a", "maxTimeMS", "1"), mongoerr.BadValue, ""},
		{d("ping", 1, "$db", "a", "writeConcern", d("w", 1)), mongoerr.InvalidOptions, "does not support writeConcern"},
		{d("ping", 1, "$db", "a", "readConcern", d("level", "local")), mongoerr.InvalidOptions, "does not support readConcern"},
		{d("find", "c", "$db", "a", "readConcern", d("level", "linearizable")), mongoerr.NotAReplicaSet, ""},
		{d("find", "c", "$db", "a", "readConcern", d("level", "no")), mongoerr.BadValue, ""},
		{d("find", "c", "$db", "a", "readConcern", d("afterClusterTime", bson.Timestamp{T: 1})), mongoerr.IllegalOperation, ""},
		{d("insert", "c", "$db", "a", "writeConcern", d("w", 2)), mongoerr.BadValue, "cannot use 'w' > 1 when a host is not replicated"},
		{d("insert", "c", "$db", "a", "writeConcern", d("w", 51)), mongoerr.FailedToParse, ""},
		{d("insert", "c", "$db", "a", "writeConcern", d("w", "dc1")), mongoerr.BadValue, "cannot use non-majority 'w' mode dc1"},
		{d("insert", "c", "$db", "a", "writeConcern", d("j", true, "fsync", true)), mongoerr.FailedToParse, ""},
		{d("insert", "c", "$db", "a", "writeConcern", d("x", 1)), 40415, ""},
		{d("ping", 1, "$db", "a", "$readPreference", d("mode", "first")), mongoerr.FailedToParse, ""},
		{d("insert", 5, "$db", "a"), mongoerr.InvalidNamespace, "collection name has invalid type int"},
		{d("insert", "", "$db", "a"), mongoerr.InvalidNamespace, ""},
		{d("insert", "c", "$db", "a"), 40414, "BSON field 'insert.documents' is missing but a required field"},
		{d("insert", "c", "$db", "a", "documents", bson.A{}), mongoerr.InvalidLength, "Write batch sizes must be between 1 and 100000. Got 0 operations."},
		{d("insert", "c", "$db", "a", "documents", bson.A{1}), mongoerr.TypeMismatch, "BSON field 'insert.documents.0' is the wrong type 'int', expected type 'object'"},
		{d("insert", "c", "$db", "a", "documents", bson.A{}, "foo", 1), 40415, "BSON field 'insert.foo' is an unknown field."},
		{d("update", "c", "$db", "a", "updates", bson.A{d("q", d())}), 40414, "BSON field 'update.updates.u' is missing"},
		{d("update", "c", "$db", "a", "updates", bson.A{d("q", d(), "u", 1)}), mongoerr.TypeMismatch, ""},
		{d("update", "c", "$db", "a", "updates", bson.A{d("q", d(), "u", d(), "c", 1)}), mongoerr.TypeMismatch, "update.updates.c"},
		{d("delete", "c", "$db", "a", "deletes", bson.A{d("q", d())}), 40414, "BSON field 'delete.deletes.limit' is missing"},
		{d("delete", "c", "$db", "a", "deletes", bson.A{d("q", d(), "limit", 2)}), mongoerr.FailedToParse, ""},
		{d("find", "c", "$db", "a", "skip", -1), 51024, "BSON field 'skip' value must be >= 0, actual value '-1'"},
		{d("find", "c", "$db", "a", "filter", "x"), mongoerr.TypeMismatch, "BSON field 'find.filter' is the wrong type 'string', expected type 'object'"},
		{d("find", "c", "$db", "a", "awaitData", true), mongoerr.FailedToParse, "tailable"},
		{d("find", "c", "$db", "a", "hint", 1), mongoerr.FailedToParse, ""},
		{d("getMore", int64(5), "$db", "a"), 40414, ""},
		{d("getMore", 5, "$db", "a", "collection", "c"), mongoerr.TypeMismatch, ""},
		{d("getMore", int64(5), "$db", "a", "collection", "c"), mongoerr.CursorNotFound, "cursor id 5 not found"},
		{d("findAndModify", "c", "$db", "a"), mongoerr.FailedToParse, ""},
		{d("createIndexes", "c", "$db", "a", "indexes", bson.A{}), mongoerr.BadValue, ""},
		{d("dropIndexes", "c", "$db", "a"), 40414, ""},
		{d("explain", d("aggregate", "c"), "$db", "a"), 40414, "aggregate.pipeline"},
		{d("explain", d("insert", "c"), "$db", "a"), mongoerr.NotImplemented, ""},
		{d("explain", d("nonsense", "c"), "$db", "a"), mongoerr.CommandNotFound, ""},
		{d("aggregate", "c", "$db", "a", "pipeline", bson.A{}), mongoerr.FailedToParse, "cursor"},
		{d("aggregate", 2, "$db", "a", "pipeline", bson.A{}, "cursor", d()), mongoerr.FailedToParse, "collection name or 1"},
		{d("aggregate", "c", "$db", "a", "pipeline", 1, "cursor", d()), mongoerr.TypeMismatch, ""},
		{d("aggregate", "c", "$db", "a", "pipeline", bson.A{}, "x", 1), 40415, ""},
		{d("bulkWrite", 1, "ops", bson.A{d("insert", 1, "document", d())}, "nsInfo", bson.A{d("ns", "a.b")}, "$db", "admin"), mongoerr.BadValue, "ops entry 0"},
		{d("bulkWrite", 1, "ops", bson.A{d("insert", 0)}, "nsInfo", bson.A{d("ns", "a.b")}, "$db", "admin"), 40414, "bulkWrite.insert.document"},
		{d("bulkWrite", 1, "ops", bson.A{d("delete", 0, "x", 1)}, "nsInfo", bson.A{d("ns", "a.b")}, "$db", "admin"), 40415, "bulkWrite.delete.x"},
		{d("bulkWrite", 1, "ops", bson.A{d("nonsense", 0)}, "nsInfo", bson.A{d("ns", "a.b")}, "$db", "admin"), mongoerr.BadValue, ""},
		{d("getLog", "x", "$db", "admin"), mongoerr.OperationFailed, ""},
		{d("getParameter", 1, "x", 1, "$db", "admin"), mongoerr.InvalidOptions, ""},
		{d("killAllSessions", bson.A{d("user", "a", "db", "b")}, "$db", "admin"), mongoerr.NotImplemented, ""},
		{d("hello", 1, "$db", "admin", "loadBalanced", true), mongoerr.NotImplemented, ""},
	} {
		m := run(t, cl, x.cmd)
		if m["code"] != int32(x.code) || m["codeName"] != x.code.Name() || !strings.Contains(m["errmsg"].(string), x.message) {
			t.Errorf("%v: %v, and should be %d %q", x.cmd, m, x.code, x.message)
		}
	}
}

// A command that panics fails, and only it. The dispatcher has no database, so whatever asks it does.
func TestPanicFailsTheCommand(t *testing.T) {
	disp, _ := testDispatcher(t)
	var log strings.Builder
	disp.log = slog.New(slog.NewTextHandler(&log, nil))
	cl := disp.Connect("test")
	m := run(t, cl, d("find", "c", "$db", "a"))
	if m["code"] != int32(mongoerr.InternalError) || strings.Contains(m["errmsg"].(string), "nil") {
		t.Errorf("%v", m)
	}
	if !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "find.go") {
		t.Errorf("the log has no stack: %s", &log)
	}
	if m := run(t, cl, d("ping", 1, "$db", "a")); m["ok"] != 1.0 {
		t.Errorf("%v", m)
	}
}

func TestHello(t *testing.T) {
	disp, _ := testDispatcher(t)
	cl := disp.Connect("test")
	m := run(t, cl, d("hello", 1, "$db", "admin", "helloOk", true, "client", d("driver", d("name", "x")), "compression", bson.A{"zstd", "lz4", "snappy", 5}))
	if m["isWritablePrimary"] != true || m["maxWireVersion"] != int32(25) || m["logicalSessionTimeoutMinutes"] != int32(30) || m["topologyVersion"] == nil {
		t.Errorf("%v", m)
	}
	if got := m["compression"].(bson.A); len(got) != 2 || got[0] != "zstd" || got[1] != "snappy" {
		t.Errorf("compression %v", got)
	}
	m = run(t, cl, d("ismaster", 1, "$db", "admin"))
	if m["ismaster"] != true || m["isWritablePrimary"] != nil || m["compression"] != nil {
		t.Errorf("%v", m)
	}
	if m := run(t, cl, d("hello", 1, "$db", "admin", "client", d("driver", d()))); m["code"] != int32(186) {
		t.Errorf("a second introduction: %v", m)
	}
	if m := run(t, disp.Connect("other"), d("hello", 1, "$db", "admin", "client", d("pad", strings.Repeat("x", 600)))); m["code"] != int32(187) {
		t.Errorf("a long introduction: %v", m)
	}
}

func TestStartUpCommandsAnswer(t *testing.T) {
	disp, _ := testDispatcher(t)
	cl := disp.Connect("1.2.3.4:5")
	uuid := bson.Binary{Subtype: 4, Data: make([]byte, 16)}
	for _, cmd := range []bson.D{
		d("ping", 1, "$db", "a", "lsid", d("id", uuid), "$readPreference", d("mode", "nearest"), "$clusterTime", d(), "comment", 5, "maxTimeMS", 5000),
		d("buildinfo", 1, "$db", "admin", "apiVersion", "1"),
		d("hostInfo", 1, "$db", "admin"),
		d("getCmdLineOpts", 1, "$db", "admin"),
		d("getLog", "*", "$db", "admin"),
		d("getLog", "global", "$db", "admin"),
		d("getLog", "startupWarnings", "$db", "admin"),
		d("getParameter", "*", "$db", "admin"),
		d("getParameter", 1, "featureCompatibilityVersion", 1, "$db", "admin"),
		d("getParameter", d("allParameters", true), "$db", "admin"),
		d("connectionStatus", 1, "showPrivileges", true, "$db", "admin"),
		d("whatsmyuri", 1, "$db", "admin"),
		d("listCommands", 1, "$db", "admin"),
		d("features", 1, "$db", "admin"),
		d("logout", 1, "$db", "admin"),
		d("startSession", 1, "$db", "admin"),
		d("refreshSessions", bson.A{d("id", uuid)}, "$db", "admin"),
		d("endSessions", bson.A{d("id", uuid)}, "$db", "admin"),
		d("killSessions", bson.A{d("id", uuid)}, "$db", "admin"),
		d("killAllSessions", bson.A{}, "$db", "admin"),
		d("killCursors", "c", "cursors", bson.A{int64(5)}, "$db", "a"),
	} {
		if m := run(t, cl, cmd); m["ok"] != 1.0 {
			t.Errorf("%v: %v", cmd, m)
		}
	}
}

func TestDocumentsComeAsASequenceOrAsAnArray(t *testing.T) {
	disp, _ := testDispatcher(t)
	cl := disp.Connect("test")
	one, err := bson.Marshal(d("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	seq := Sequence{Name: "documents", Docs: append(slices.Clone(one), one...), Count: 2}
	if m := run(t, cl, d("insert", "c", "$db", "a", "documents", bson.A{}), seq); m["code"] != int32(40413) {
		t.Errorf("both: %v", m)
	}
	if m := run(t, cl, d("insert", "c", "$db", "a"), Sequence{Name: "docs"}); m["code"] != int32(40415) {
		t.Errorf("unknown sequence: %v", m)
	}
	var docs []bson.Raw
	if err := (field{seq: &seq}).documents(&docs); err != nil || len(docs) != 2 || string(docs[1]) != string(one) {
		t.Errorf("%v, %v", docs, err)
	}
}

func TestCursors(t *testing.T) {
	disp, clock := testDispatcher(t)
	cl := disp.Connect("test")
	ns := engine.Namespace{DB: "a", Coll: "c"}
	open := func(keep bool) int64 {
		docs := make(list, 5)
		for i := range docs {
			docs[i] = bson.Raw("\x05\x00\x00\x00\x00")
		}
		c := &cursor{ns: ns, src: &docs, keep: keep}
		if err := disp.cursors.add(c); err != nil {
			t.Fatal(err)
		}
		return c.id
	}
	more := func(id int64, coll string, batch int) bson.M {
		return run(t, cl, d("getMore", id, "collection", coll, "batchSize", batch, "$db", "a"))
	}

	id := open(false)
	if m := more(id, "other", 1); m["code"] != int32(mongoerr.Unauthorized) {
		t.Errorf("another collection: %v", m)
	}
	for _, want := range []int{2, 2, 1} {
		cur := more(id, "c", 2)["cursor"].(bson.D)
		if got := cur[0].Value.(bson.A); len(got) != want || cur[0].Key != "nextBatch" || (cur[1].Value == id) != (want == 2) || cur[2].Value != "a.c" {
			t.Errorf("%v", cur)
		}
	}
	if m := more(id, "c", 2); m["code"] != int32(mongoerr.CursorNotFound) {
		t.Errorf("exhausted: %v", m)
	}

	a, b := open(false), open(true)
	m := run(t, cl, d("killCursors", "c", "cursors", bson.A{a, id}, "$db", "a"))
	if m["cursorsKilled"].(bson.A)[0] != a || m["cursorsNotFound"].(bson.A)[0] != id {
		t.Errorf("%v", m)
	}
	a = open(false)
	clock.now += cursorIdle - 1
	clock.timer()
	if n, _, _ := disp.cursors.counts(); n != 2 {
		t.Errorf("%d cursors before the time", n)
	}
	clock.now += 1
	clock.timer()
	if n, keep, timed := disp.cursors.counts(); n != 1 || keep != 1 || timed != 1 {
		t.Errorf("%d cursors after the time", n)
	}
	if m := more(a, "c", 1); m["code"] != int32(mongoerr.CursorNotFound) {
		t.Errorf("idle: %v", m)
	}

	// A cursor in use ends with its batch when it is killed, and nobody else gets it meanwhile.
	c, err := disp.cursors.take(b, ns, session{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disp.cursors.take(b, ns, session{}); !mongoerr.Is(err, mongoerr.CursorInUse) {
		t.Errorf("in use: %v", err)
	}
	if _, err := disp.cursors.take(b, ns, session{set: true}); !mongoerr.Is(err, 50738) {
		t.Errorf("another session: %v", err)
	}
	if !disp.cursors.killOne(b, ns) {
		t.Error("could not be killed")
	}
	if disp.cursors.give(c, true) {
		t.Error("is kept, though it was killed")
	}
}

// Batches end at 16 MiB, and a single document may be as large as documents get.
func TestBatchHasABoundOfBytes(t *testing.T) {
	disp, _ := testDispatcher(t)
	large, err := bson.Marshal(d("a", strings.Repeat("x", 9<<20)))
	if err != nil {
		t.Fatal(err)
	}
	docs := list{large, large}
	c := call{Dispatcher: disp, ctx: context.Background()}
	for range 2 {
		before := len(docs)
		if _, _, err := c.readBatch("b", &docs, 100); err != nil || before-len(docs) != 1 {
			t.Errorf("%d documents of 9 MiB in a batch, %v", before-len(docs), err)
		}
	}
}

// A batch for which there is no memory is shorter, but never empty without an error.
func TestBatchEndsWhereRoomEnds(t *testing.T) {
	disp, _ := testDispatcher(t)
	doc, err := bson.Marshal(d("a", strings.Repeat("x", 100<<10)))
	if err != nil {
		t.Fatal(err)
	}
	left := int64(1 << 20)
	c := call{Dispatcher: disp, ctx: context.Background(), req: Request{Room: func(n int64) bool {
		left -= n
		return left >= 0
	}}}
	docs := make(list, 50)
	for i := range docs {
		docs[i] = doc
	}
	if _, more, err := c.readBatch("b", &docs, 100); err != nil || !more || len(docs) != 40 {
		t.Errorf("%d documents are left, %v", len(docs), err)
	}
	left = 0
	if _, _, err := c.readBatch("b", &docs, 100); err != nil || len(docs) != 38 {
		t.Errorf("%d documents are left, %v", len(docs), err)
	}
	large, err := bson.Marshal(d("a", strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	docs = list{large}
	if _, _, err := c.readBatch("b", &docs, 100); !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
		t.Errorf("%v", err)
	}
}

func TestMaxTime(t *testing.T) {
	disp, clock := testDispatcher(t)
	c := call{client: new(Client), Dispatcher: disp, ctx: context.Background()}
	err := c.limited(time.Second, func(c *call) error {
		clock.timer()
		<-c.ctx.Done()
		return c.ctx.Err()
	})
	if !mongoerr.Is(err, mongoerr.MaxTimeMSExpired) || c.ctx.Err() != nil {
		t.Errorf("%v", err)
	}
}
