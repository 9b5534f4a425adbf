package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/server"
)

// serve gives the URI of a server in this process, and the directory of its files.
func serve(t *testing.T) (uri, dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := engine.Open(dir, engine.Options{TTLSweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(db, server.Options{})
	go srv.Serve(l)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return "mongodb://" + l.Addr().String(), dir
}

// measure runs a command line, and gives the rows and limits that it prints.
func measure(t *testing.T, args ...string) report {
	t.Helper()
	var out, errs bytes.Buffer
	if args[0] != "limits" {
		args = append(args, "--limits-size", "1m")
	}
	if code := run(append(args, "--json"), &out, &errs); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, &errs)
	}
	if errs.Len() > 0 {
		t.Errorf("%v: no terminal, and yet %q", args, &errs)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %v in %s", args, err, &out)
	}
	for _, x := range append(r.Rows, r.Limits...) {
		if back, err := parseRow(x.String()); err != nil || back.Name != x.Name || back.Unit != x.Unit || back.Of != x.Of {
			t.Errorf("%v: a row that cannot be read again: %s: %v", args, x, err)
		}
		if x.Min > x.Value || x.Value > x.Max {
			t.Errorf("%v: %s", args, x)
		}
	}
	return r
}

func (r *report) has(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if r.find(n) == nil {
			t.Errorf("there is no row %q", n)
		}
	}
}

func (r *report) find(name string) *row {
	for _, x := range r.Rows {
		if x.Name == name {
			return x
		}
	}
	return nil
}

func TestCompareSetsSystemsSideBySide(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no mongod
	one, _ := serve(t)
	two, _ := serve(t)
	r := measure(t, "compare", "--uri", one, "--uri", two, "--size", "300k", "--doc-size", "300", "--dir", t.TempDir())
	other := " (" + strings.TrimPrefix(two, "mongodb://") + ")"
	r.has(t, "insertOne", "insertOne"+other, "bulk insert", "createIndex({k: 1})", "countDocuments({})", "findOne({_id})", "findOne({k}), indexed",
		"find({p: {$gte, $lt}}).count(), scan", "find({}).sort({_id: -1}).limit(20)", "find({}, {k: 1}).limit(1000)", "aggregate $group by k",
		"updateOne({_id})", "updateMany({k: 7})", "deleteOne({_id}) + insertOne", "allocated on disk", "allocated on disk"+other)
	if x := r.find("insertOne"); x.Ratio <= 0 || x.Of != "fdatasync + ping" {
		t.Errorf("not beside a limit: %+v", x)
	}
	if x := r.find("insertOne" + other); x.Ratio <= 0 || "mongodb://"+x.Of != one {
		t.Errorf("not beside the first: %+v", x)
	}
}

// Whatever is called mongod on the PATH is started with mongod's flags; here it is our own server.
func TestCompareStartsMongodIfThereIsOne(t *testing.T) {
	b := &bench{ctx: t.Context()}
	defer b.clean()
	program, err := b.own()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nexec " + program + " serve --bind $2 --port $4 --db $6\n" // --bind_ip, --port, --dbpath
	if err := os.WriteFile(filepath.Join(dir, "mongod"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	uri, _ := serve(t)
	r := measure(t, "compare", "--uri", uri, "--size", "30k", "--doc-size", "300", "--dir", t.TempDir())
	r.has(t, "insertOne", "insertOne (mongod)", "server RSS (mongod)")
}

func TestConcurrentCountsClientsAndSyncs(t *testing.T) {
	uri, _ := serve(t)
	for _, more := range [][]string{{"--read-share", "0.5"}, {"--collections", "N"}} {
		r := measure(t, append([]string{"concurrent", "--uri", uri, "--clients", "1,3", "--seconds", "0.1", "--doc-size", "100", "--dir", t.TempDir()}, more...)...)
		r.has(t, "writes@1", "writes p50@1", "writes p99@3", "commits per fsync@3", "3 clients / 1")
		if got := r.find("reads@3") != nil; got != (more[0] == "--read-share") {
			t.Errorf("%v: reads: %v", more, got)
		}
		if x := r.find("commits per fsync@3"); x.Value <= 0 || x.Value > 3 {
			t.Errorf("%s", x)
		}
	}
}

func TestMixSetsScansBesideInserts(t *testing.T) {
	uri, _ := serve(t)
	r := measure(t, "mix", "--uri", uri, "--readers", "2", "--writers", "2", "--seconds", "0.1", "--docs", "500", "--doc-size", "200", "--dir", t.TempDir())
	r.has(t, "inserts, alone", "scans, alone", "inserts, beside each other", "scans, beside each other", "inserts keep, of what is left to them",
		"scans keep, of what is left to them")
}

func TestChurnKeepsItsDocuments(t *testing.T) {
	uri, dir := serve(t)
	for _, mode := range []string{"delete-refill", "update"} {
		r := measure(t, "churn", "--uri", uri, "--db-path", dir, "--docs", "301", "--doc-size", "2k", "--index", "--mode", mode, "--rounds", "2", "--dir", t.TempDir())
		r.has(t, "allocated/live@0", "allocated/live@2", "apparent/live@2", "reclaimed@2", "pending@2", "dead@2", "log@2")
		last := r.Rows[len(r.Rows)-1]
		if last.Name != "allocated/live" || last.Value != r.find("allocated/live@2").Value || last.Value < 1 {
			t.Errorf("the last row: %s", last)
		}
		client, err := connect(t.Context(), "", uri)
		if err != nil {
			t.Fatal(err)
		}
		n, err := client.client.Database(database).Collection("churn").CountDocuments(t.Context(), bson.D{})
		if err != nil || n != 301 {
			t.Errorf("%s: %d documents, %v", mode, n, err)
		}
		client.close()
	}
}

func TestBigKillsAndFindsAll(t *testing.T) {
	dir := t.TempDir()
	r := measure(t, "big", "--size", "1m", "--doc-size", "1k", "--dir", dir)
	r.has(t, "load", "log after load", "data file / live", "reopen after kill -9", "RSS after reopen", "RSS after reopen / live")
	if x := r.find("documents after kill -9"); x.Value != 1024 {
		t.Errorf("%s", x)
	}
	if x := r.find("acknowledged writes after kill -9"); x.Value != ackedWrites {
		t.Errorf("%s", x)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLimitsOfTheMachine(t *testing.T) {
	dir := t.TempDir()
	r := measure(t, "limits", "--dir", dir, "--size", "2m")
	r.has(t, "fdatasync", "write", "write + fdatasync", "mmap fault", "memory copy", "lz4 compress", "lz4 decompress", "lz4 ratio", "loopback")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRunKeepsReportsAndTellsThemApart(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "reports")
	uri, _ := serve(t)
	plan := filepath.Join(dir, "plan")
	text := "# what to measure\n\nsome: concurrent --uri " + uri + " --clients 1,2 --seconds 0.05 --limits-size 1m\nothers: limits --size 1m\n"
	if err := os.WriteFile(plan, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var all [][]*section
	for range 2 {
		var b bytes.Buffer
		if code := run([]string{"run", "--plan", plan, "--server", plan, "--repeat", "3", "--out", out, "--dir", dir}, &b, io.Discard); code != 0 {
			t.Fatalf("exit code %d: %s", code, &b)
		}
		lines := strings.Fields(b.String())
		s, err := readSections(lines[len(lines)-1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for i, sections := range all {
		rows, err := find(sections, "some").rows()
		if err != nil || len(rows) < 4 || rows[0].Name != "writes@1" || rows[0].Min > rows[0].Value || rows[0].Value > rows[0].Max {
			t.Errorf("%v, %v", rows, err)
		}
		for _, name := range []string{"others", "limits", "meta"} {
			if find(sections, name) == nil {
				t.Errorf("there is no section [%s]", name)
			}
		}
		d := find(sections, "difference")
		if (d != nil) != (i == 1) {
			t.Errorf("report %d: difference %v", i, d)
		}
		if d != nil && !strings.Contains(strings.Join(d.lines, "\n"), "some/writes@1\t") {
			t.Errorf("%v", d.lines)
		}
	}
}

func TestDifferenceTellsSpreadFromChange(t *testing.T) {
	report := func(rows ...string) []*section { return []*section{{name: "main", lines: rows}} }
	d, err := difference(&earlier{"old.txt", report("a\t100\tµs\t90\t120", "b\t100\tµs\t90\t120", "gone\t1\tµs")}, report("a\t110\tµs\t105\t112", "b\t50\tµs\t45\t89", "new\t1\tµs"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"main/a\t100\t110\t+10.0%\t30.0%\twithin the spread", "main/b\t100\t50\t-50.0%\t88.0%\tbeyond the spread"}
	if len(d.lines) != 3 || d.lines[1] != want[0] || d.lines[2] != want[1] {
		t.Errorf("%q", d.lines)
	}
}

func TestPlotDrawsSeries(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "r.txt")
	text := "[speed]\nwrites@1\t100\tops/s\t90\t110\nwrites@32\t500\tops/s\t400\t600\nreads <all>@1\t7\tops/s\nreads <all>@32\t9\tops/s\nalone@1\t5\tms\n[meta]\ncommit\tx\n"
	if err := os.WriteFile(report, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := run([]string{"plot", report, "--out", dir}, &out, &out); code != 0 || out.String() != filepath.Join(dir, "r-speed.svg")+"\n" {
		t.Fatalf("%d %s", code, &out)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "r-speed.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(svg, new(struct{})); err != nil {
		t.Errorf("no XML: %v\n%s", err, svg)
	}
	for _, want := range []string{"writes", "reads &lt;all&gt;", "speed, ops/s", ">500<", ">32<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	if strings.Contains(string(svg), "alone") {
		t.Error("a series of one point was drawn")
	}
}

func TestCommandLine(t *testing.T) {
	for _, x := range []struct{ args, want string }{
		{"", "expected one of"},
		{"compare --size 12q", "is no size"},
		{"compare --doc-size 10", "documents of 10 bytes"},
		{"concurrent --clients 0", "0 clients"},
		{"concurrent --collections many", "--collections"},
		{"churn --mode rewrite", "--mode"},
		{"big --uri mongodb://127.0.0.1:1", "starts its own"},
		{"mix --readers 0", "positive"},
		{"plot bench_test.go", "a row has"},
		{"run --plan bench_test.go --server main.go", "plan"},
	} {
		var out bytes.Buffer
		if code := run(strings.Fields(x.args), &out, &out); code != 1 || !strings.Contains(out.String(), x.want) {
			t.Errorf("bench %s: exit code %d, no %q: %s", x.args, code, x.want, &out)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"300": 300, "16k": 16 << 10, "64M": 64 << 20, "1g": 1 << 30, "": 0, "k": 0, "-1": 0, "9999999999g": 0} {
		var s size
		if err := s.UnmarshalText([]byte(text)); s != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
}

func TestDocumentsHaveTheirSize(t *testing.T) {
	for _, n := range []size{documentMin, documentMin + 1, 200, 16 << 10} {
		m, err := newMaker(n)
		if err != nil {
			t.Fatal(err)
		}
		if doc := m.doc(12_345, newRand(1, 1)); len(doc) != int(n) || doc.Validate() != nil || doc.Lookup("k").Int64() != 345 {
			t.Errorf("%d: %d bytes: %v", n, len(doc), doc)
		}
	}
}

func TestNumbersReadWell(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 1.25: "1.25", 0.0123456: "0.01235", 123.456: "123.5", 1234.5: "1234", 1e9: "1000000000", -0.5: "-0.5"} {
		if got := number(v); got != want {
			t.Errorf("%s: %s", strconv.FormatFloat(v, 'g', -1, 64), got)
		}
	}
}
