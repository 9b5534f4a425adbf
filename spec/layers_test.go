// Package spec holds what is promised about this project and can be held by a test: which package may import which
// (layers.txt), that the engine is deterministic (determinism_test.go), that compat.md agrees with the engine's tables, and
// that what passes of MongoDB's specification tests goes on passing (scorecard_test.go).
package spec

import (
	"bufio"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/multiforadb/multiforadb"
	root   = ".." // of the module, from here
)

// policy is layers.txt, read.
type policy struct {
	names  map[string]string          // short name → import path
	code   map[string]map[string]bool // package → import paths that its own code may have
	tests  map[string]map[string]bool // package → import paths that its tests may have beside
	only   map[string][]string        // import path → packages whose code may have it
	column map[string][]string        // package prefix → prefixes within this module that its code may import
	above  map[string][]string        // package → parents that it may import
	outer  map[string]bool            // standard packages that lead to the outside: they too must be listed
}

// parsePolicy reads layers.txt; its head says what the lines mean.
func parsePolicy(text string) (*policy, error) {
	p := &policy{
		names: map[string]string{}, code: map[string]map[string]bool{}, tests: map[string]map[string]bool{},
		only: map[string][]string{}, column: map[string][]string{}, above: map[string][]string{}, outer: map[string]bool{},
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) == 3 && words[1] == "=" {
			p.names[words[0]] = words[2]
			continue
		}
		verb, isVerb := strings.CutSuffix(words[0], ":")
		if !isVerb || len(words) < 2 {
			return nil, fmt.Errorf("layers.txt:%d: not understood: %s", n, lines.Text())
		}
		subject, rest := words[1], words[2:]
		switch verb {
		case "outer":
			for _, w := range words[1:] {
				p.outer[w] = true
			}
		case "only":
			p.only[p.path(subject)] = rest
		case "column":
			p.column[subject] = rest
		case "above":
			p.above[subject] = rest
		case "code", "tests":
			m := p.code
			if verb == "tests" {
				m = p.tests
			}
			if m[subject] != nil {
				return nil, fmt.Errorf("layers.txt:%d: a second line for %s of %s", n, verb, subject)
			}
			m[subject] = map[string]bool{}
			for _, w := range rest {
				m[subject][p.path(w)] = true
			}
		default:
			return nil, fmt.Errorf("layers.txt:%d: unknown kind of line %q", n, verb)
		}
	}
	return p, nil
}

// path is the import path that a word of layers.txt stands for.
func (p *policy) path(word string) string {
	if full, ok := p.names[word]; ok {
		return full
	}
	return word
}

// imported is one import in one file.
type imported struct {
	pkg  string // of the file, as a path within the module: "engine/value"
	file string
	path string // within the module, if it is of the module, else whole
	own  bool   // of the module
	test bool   // the file is a test
}

// check gives what is wrong with the import, or "".
func (p *policy) check(i imported) string {
	if !i.own && !strings.Contains(strings.Split(i.path, "/")[0], ".") && (i.test || !p.outer[i.path]) {
		return "" // of the standard library
	}
	code, listed := p.code[i.pkg]
	tests, testsListed := p.tests[i.pkg]
	if !listed && (!testsListed || !i.test) {
		return fmt.Sprintf("%s has no line in spec/layers.txt", i.pkg)
	}
	if i.test {
		// Tests may stand outside their package, and use what its code uses.
		if i.own && i.path == i.pkg || code[i.path] || tests[i.path] {
			return ""
		}
		return fmt.Sprintf("the tests of %s may not import %s", i.pkg, i.path)
	}
	if !code[i.path] {
		return fmt.Sprintf("%s may not import %s", i.pkg, i.path)
	}
	if users, ok := p.only[i.path]; ok && !slices.Contains(users, i.pkg) {
		return fmt.Sprintf("%s is for %v only, not for %s", i.path, users, i.pkg)
	}
	if i.own && under(i.pkg, i.path) && !slices.Contains(p.above[i.pkg], i.path) {
		return fmt.Sprintf("%s imports its parent %s", i.pkg, i.path)
	}
	for prefix, allowed := range p.column { // at most one matches
		reaches := func(dir string) bool { return under(i.path, dir) }
		switch {
		case !under(i.pkg, prefix) || i.own && slices.ContainsFunc(allowed, reaches):
		case i.own:
			return fmt.Sprintf("%s is in the column %s, which may reach only %v", i.pkg, prefix, allowed)
		case prefix == "engine/storage" && p.only[i.path] == nil:
			return fmt.Sprintf("%s is in the storage column, and %s is not kept for one package of it", i.pkg, i.path)
		}
	}
	return ""
}

// under: pkg is dir, or lies below it.
func under(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// imports lists the imports of every Go file of the module, for whatever system it is.
func imports(t *testing.T) []imported {
	t.Helper()
	var all []imported
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != root && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || base[0] == '.' || base[0] == '_' {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(filepath.ToSlash(name), root+"/")
		test := strings.HasSuffix(base, "_test.go")
		if len(f.Imports) == 0 { // so that no package goes unlisted
			all = append(all, imported{pkg: path.Dir(file), file: file, path: "fmt", test: test})
		}
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			rest, own := strings.CutPrefix(p, module+"/")
			all = append(all, imported{pkg: path.Dir(file), file: file, path: rest, own: own, test: test})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLayers(t *testing.T) {
	text, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePolicy(string(text))
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	all := imports(t)
	for _, i := range all {
		if p.code[i.pkg] == nil && p.tests[i.pkg] == nil && !missing[i.pkg] {
			missing[i.pkg] = true
			t.Errorf("%s: %s has no line in spec/layers.txt", i.file, i.pkg)
		}
		if wrong := p.check(i); wrong != "" && !missing[i.pkg] {
			t.Errorf("%s: %s", i.file, wrong)
		}
	}
	if len(all) < 300 {
		t.Errorf("only %d imports found: the walk misses something", len(all))
	}
}

func TestLayersRefuse(t *testing.T) {
	p, err := parsePolicy(`
		lz4 = example.org/lz4
		outer: os net
		only: lz4 engine/storage/wal
		column: engine/storage engine/env engine/storage
		column: engine/query engine/value engine/query
		above: engine/server engine
		code: engine/storage engine/env engine/storage/wal engine/value lz4
		code: engine/storage/wal engine/env engine/storage lz4
		code: engine/query/match engine/value engine/storage example.org/regexp
		code: engine/server engine net
		code: engine/value
		tests: engine/value engine/env rapid.example/rapid
	`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pkg, path string
		own, test bool
		ok        bool
	}{
		{pkg: "engine/storage/wal", path: "engine/env", own: true, ok: true},
		{pkg: "engine/storage/wal", path: "example.org/lz4", ok: true},
		{pkg: "engine/storage", path: "example.org/lz4"},                             // listed, but only for wal
		{pkg: "engine/storage/wal", path: "engine/storage", own: true},               // its parent
		{pkg: "engine/storage", path: "engine/value", own: true},                     // listed, but outside the column
		{pkg: "engine/query/match", path: "engine/storage", own: true},               // the other column
		{pkg: "engine/query/match", path: "example.org/regexp", ok: true},            //
		{pkg: "engine/server", path: "engine", own: true, ok: true},                  // above
		{pkg: "engine/server", path: "net", ok: true},                                //
		{pkg: "engine/value", path: "os"},                                            // to the outside
		{pkg: "engine/value", path: "strings", ok: true},                             //
		{pkg: "engine/value", path: "os", test: true, ok: true},                      //
		{pkg: "engine/value", path: "engine/env", own: true},                         // for tests only
		{pkg: "engine/value", path: "engine/env", own: true, test: true, ok: true},   //
		{pkg: "engine/value", path: "engine/value", own: true, test: true, ok: true}, // from outside the package
		{pkg: "engine/value", path: "example.org/other", test: true},                 //
		{pkg: "engine/unheard", path: "engine/env", own: true},                       // no line
	} {
		if wrong := p.check(imported{pkg: c.pkg, path: c.path, own: c.own, test: c.test}); (wrong == "") != c.ok {
			t.Errorf("%s imports %s (test: %v): %q, want allowed: %v", c.pkg, c.path, c.test, wrong, c.ok)
		}
	}
	for _, bad := range []string{"engine/env may import", "code: a b\ncode: a c", "perhaps: a b"} {
		if _, err := parsePolicy(bad); err == nil {
			t.Errorf("%q was understood", bad)
		}
	}
}
