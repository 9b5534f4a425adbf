package spec

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/server"
	"github.com/multiforadb/multiforadb/simfs"
	"github.com/multiforadb/multiforadb/spec/unified"
)

var (
	specs    = flag.String("specs", "", "directory of a checkout of mongodb/specifications, whole path: run its tests and compare nothing")
	update   = flag.Bool("update", false, "write scorecard.txt anew")
	only     = flag.String("only", "", "run only the specification tests whose name has this in it; nothing is compared")
	failures = flag.String("failures", "", "write why each failure failed to this file")
)

const (
	scorecard = "scorecard.txt"
	// testsModule is the module that carries the specifications' tests as its test data.
	testsModule = "go.mongodb.org/mongo-driver@v1.17.10"
)

// held are the folders in which nothing that passed may fail. The others are about what drivers do by themselves, or about
// topologies: their figures are only reported.
var held = []string{
	"collection-management", "command-monitoring", "crud", "gridfs", "index-management", "read-write-concern", "retryable-reads",
	"retryable-writes", "run-command", "sessions", "versioned-api",
}

// MongoDB's specification tests, run against the server through the official driver. What passed before must pass.
func TestScorecard(t *testing.T) {
	dir := *specs
	if dir == "" {
		dir = filepath.Join(download(t), "testdata")
	}
	address := serve(t)
	ctx := context.Background()
	srv, err := unified.Dial(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close(ctx)

	card, why := make(unified.Card), new(strings.Builder)
	for _, name := range jsonFiles(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if *specs != "" {
			name = strings.TrimPrefix(name, "source/")
		}
		file, err := unified.Parse(data)
		if errors.As(err, new(unified.LegacyError)) {
			if strings.Contains(name, *only) {
				add(card, why, name, unified.Outcome{Verdict: unified.Skip, Reason: err.Error()})
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range file.Tests {
			full := name + ": " + file.Tests[i].Description
			if !strings.Contains(full, *only) {
				continue
			}
			o := srv.Run(ctx, file, &file.Tests[i])
			if path.Base(path.Dir(name)) == "valid-fail" {
				o = inverted(o)
			}
			add(card, why, full, o)
		}
	}
	t.Logf("\n%s", card.Table())
	if *failures != "" {
		if err := os.WriteFile(*failures, []byte(why.String()), 0o666); err != nil {
			t.Error(err)
		}
	}
	if *specs == "" && *only == "" {
		compare(t, card, why.String())
	}
}

func add(card unified.Card, why *strings.Builder, name string, o unified.Outcome) {
	name = card.Add(name, o)
	if o.Verdict == unified.Fail {
		why.WriteString(name + "\n\t" + o.Reason + "\n")
	}
}

// inverted is for tests that a runner must find wanting.
func inverted(o unified.Outcome) unified.Outcome {
	switch o.Verdict {
	case unified.Pass:
		return unified.Outcome{Verdict: unified.Fail, Reason: "this test must not pass"}
	case unified.Fail:
		return unified.Outcome{Verdict: unified.Pass}
	}
	return o
}

// compare holds the card against the one that is committed, or writes that anew.
func compare(t *testing.T, card unified.Card, why string) {
	if *update {
		if err := os.WriteFile(scorecard, card.Text(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(scorecard)
	if err != nil {
		t.Fatal(err)
	}
	before, err := unified.ParseCard(text)
	if err != nil {
		t.Fatalf("%s: %v", scorecard, err)
	}
	for _, name := range card.Lost(before, held) {
		_, reason, _ := strings.Cut(why, name+"\n\t")
		reason, _, _ = strings.Cut(reason, "\n")
		t.Errorf("%s passed before: now %s %s%s", name, card[name].Verdict, card[name].Reason, reason)
	}
	won := before.Lost(card, held)
	if len(won) > 0 {
		t.Logf("%d tests pass that did not before: go test ./spec -run TestScorecard -update", len(won))
	}
}

// serve starts a server in memory and gives its address.
func serve(t *testing.T) string {
	memory := simfs.Memory()
	db, err := engine.Open("db", engine.Options{Env: memory})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(db, server.Options{Env: memory})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// download gives the directory of the module that carries the tests: Go fetches it, if it is not in the module cache.
func download(t *testing.T) string {
	cmd := exec.Command("go", "mod", "download", "-json", testsModule)
	cmd.Dir = t.TempDir() // outside of this module, which does not depend on it
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("the specification tests are in the module %s, which is not in the module cache and cannot be fetched: %v %s", testsModule, err, module.Error)
	}
	return module.Dir
}

// jsonFiles are the JSON files below dir, in order, with slashes.
func jsonFiles(t *testing.T, dir string) (names []string) {
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".json" {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
