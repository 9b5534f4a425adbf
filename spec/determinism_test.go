package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files, time, chance, goroutines and locks reach the engine through engine/env alone, so that a simulation's seed decides
// everything. This test holds that over the typed syntax trees of engine and all below it, but for engine/env and tests.
//
// What it refuses:
//
//   - go statements, select, and all that has to do with channels;
//   - the clock, timers, global random sources, and what draws from them unseen (bannedNames);
//   - packages sync and os, and others that lead outside (bannedPackages); sync/atomic is free;
//   - a range over a map, and iterators over one, where the order could show. A range passes if a comment on its line, or on
//     the line above, says why the order does not matter: "// order: " and the reason. Iterators pass as the argument of
//     slices.Sorted and its relatives.
//
// exceptions are what is allowed all the same, each with its reason.
var exceptions = []struct{ pkg, what, reason string }{
	{"engine/server/wire", "package sync", "for the two that follow"},
	{"engine/server/wire", "sync.Pool", "which of the free buffers a message gets cannot be seen from outside"},
	{"engine/server/wire", "sync.OnceValue", "coders are made once, whoever comes first"},
	{"engine/server", "package net", "listeners and connections are interfaces here; the in-process dialer needs no network"},
	{"engine/server", "net.Listener", "an interface"},
	{"engine/server", "net.Conn", "an interface"},
	{"engine/server", "net.Addr", "an interface"},
	{"engine/server", "net.Error", "an interface"},
	{"engine/server", "net.ErrClosed", "an error"},
	{"engine/server", "package os", "for the error that follows"},
	{"engine/server", "os.ErrDeadlineExceeded", "what the promises of net.Conn ask for"},
	{"engine/server", "package syscall", "for the errors that follow"},
	{"engine/server", "syscall.ECONNRESET", "an error"},
	{"engine/server", "syscall.EPIPE", "an error"},
}

var bannedPackages = map[string]bool{
	"sync": true, "os": true, "os/exec": true, "os/signal": true, "net": true, "net/http": true, "syscall": true,
	"math/rand": true, "math/rand/v2": true, "crypto/rand": true, "hash/maphash": true, "golang.org/x/sys/unix": true,
}

// bannedNames are functions of packages that are allowed otherwise.
var bannedNames = map[string]bool{
	"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true, "time.After": true, "time.AfterFunc": true,
	"time.Tick": true, "time.NewTimer": true, "time.NewTicker": true,
	"context.WithTimeout": true, "context.WithTimeoutCause": true, "context.WithDeadline": true, "context.WithDeadlineCause": true,
	"context.AfterFunc":    true, // runs in a goroutine of its own
	"runtime.SetFinalizer": true, "runtime.AddCleanup": true, "runtime.Gosched": true,
	"go.mongodb.org/mongo-driver/v2/bson.NewObjectID": true,
}

// mapIterators give what is in a map, in any order.
var mapIterators = map[string]bool{"maps.Keys": true, "maps.Values": true, "maps.All": true}

// sorters make the order of an iterator not matter.
var sorters = map[string]bool{"slices.Sorted": true, "slices.SortedFunc": true, "slices.SortedStableFunc": true}

// finding is something that may make two runs differ.
type finding struct {
	pos  token.Position
	what string
}

// inspect finds what is not deterministic in files, which have been type-checked into info.
func inspect(fset *token.FileSet, files []*ast.File, info *types.Info) []finding {
	var found []finding
	for _, f := range files {
		reasons := map[int]bool{} // lines that have or follow an order comment
		for _, g := range f.Comments {
			for _, c := range g.List {
				if rest, ok := strings.CutPrefix(c.Text, "// order: "); ok && strings.TrimSpace(rest) != "" {
					// A comment of several lines ends where its group does.
					reasons[fset.Position(c.Pos()).Line] = true
					reasons[fset.Position(g.End()).Line+1] = true
				}
			}
		}
		add := func(n ast.Node, format string, args ...any) {
			found = append(found, finding{fset.Position(n.Pos()), fmt.Sprintf(format, args...)})
		}
		for _, spec := range f.Imports {
			if p := strings.Trim(spec.Path.Value, `"`); bannedPackages[p] {
				add(spec, "package %s", p)
			}
		}
		sorted := map[ast.Expr]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				add(n, "go statement")
			case *ast.SelectStmt:
				add(n, "select")
			case *ast.SendStmt:
				add(n, "send on a channel")
			case *ast.ChanType:
				add(n, "channel type")
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					add(n, "receive from a channel")
				}
			case *ast.RangeStmt:
				switch t := core(info.TypeOf(n.X)).(type) {
				case *types.Chan:
					add(n, "range over a channel")
				case *types.Map:
					if line := fset.Position(n.Pos()).Line; !reasons[line] {
						add(n, "range over a map of %s", t.Key())
					}
				}
			case *ast.CallExpr:
				name := qualified(info, n.Fun)
				if sorters[name] && len(n.Args) > 0 {
					sorted[n.Args[0]] = true
				}
				if mapIterators[name] && !sorted[n] && !reasons[fset.Position(n.Pos()).Line] {
					add(n, "%s, unsorted", name)
				}
			case *ast.SelectorExpr:
				name := qualified(info, n)
				if pkg, _, ok := cutLast(name); ok && (bannedNames[name] || bannedPackages[pkg]) {
					add(n, "%s", name)
				}
				if mapRange(info, n) {
					add(n, "sync.Map.Range")
				}
			}
			return true
		})
	}
	return found
}

// core is the type that decides what a range does.
func core(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Interface: // of a type parameter
		for e := range u.EmbeddedTypes() {
			if m := mapTerm(e); m != nil {
				return m
			}
		}
		return u
	case *types.Pointer:
		return u.Elem().Underlying()
	default:
		return u
	}
}

// mapTerm is the map in a constraint, if there is one.
func mapTerm(t types.Type) types.Type {
	switch u := t.Underlying().(type) {
	case *types.Map:
		return u
	case *types.Union:
		for term := range u.Terms() {
			if m, ok := term.Type().Underlying().(*types.Map); ok {
				return m
			}
		}
	}
	return nil
}

// qualified is the name of a package's object that e uses: "time.Now"; "" if e is something else.
func qualified(info *types.Info, e ast.Expr) string {
	switch x := e.(type) {
	case *ast.IndexExpr: // an instantiation
		return qualified(info, x.X)
	case *ast.IndexListExpr:
		return qualified(info, x.X)
	case *ast.SelectorExpr:
		id, ok := x.X.(*ast.Ident)
		if !ok {
			return ""
		}
		if p, ok := info.Uses[id].(*types.PkgName); ok {
			return p.Imported().Path() + "." + x.Sel.Name
		}
	}
	return ""
}

func cutLast(name string) (pkg, object string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

func mapRange(info *types.Info, n *ast.SelectorExpr) bool {
	s, ok := info.Selections[n]
	return ok && n.Sel.Name == "Range" && strings.HasSuffix(strings.TrimPrefix(s.Recv().String(), "*"), "sync.Map")
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
	Module                  *struct{ Path string }
}

// goList lists the packages that match and all that they need, with the compiler's export data for each.
func goList(t *testing.T, pattern ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard,Module"}, pattern...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// imported by export data: quick, and the same types that the compiler has.
func exportImporter(fset *token.FileSet, all []listed) types.Importer {
	exports := make(map[string]string, len(all))
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) {
		if exports[p] == "" {
			return nil, fmt.Errorf("no export data for %s", p)
		}
		return os.Open(exports[p])
	})
}

func typeCheck(fset *token.FileSet, imp types.Importer, path string, files []*ast.File) (*types.Info, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	_, err := (&types.Config{Importer: imp}).Check(path, fset, files, info)
	return info, err
}

func TestEngineIsDeterministic(t *testing.T) {
	all := goList(t, "./engine/...")
	fset := token.NewFileSet()
	imp := exportImporter(fset, all)
	used := make([]bool, len(exceptions))
	packages := 0
	for _, p := range all {
		pkg, own := strings.CutPrefix(p.ImportPath, module+"/")
		if !own || !under(pkg, "engine") || under(pkg, "engine/env") {
			continue
		}
		packages++
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info, err := typeCheck(fset, imp, p.ImportPath, files)
		if err != nil {
			t.Errorf("%s: %v", pkg, err)
			continue
		}
	findings:
		for _, f := range inspect(fset, files, info) {
			for i, e := range exceptions {
				if e.pkg == pkg && e.what == f.what {
					used[i] = true
					continue findings
				}
			}
			t.Errorf("%s/%s:%d: %s", pkg, filepath.Base(f.pos.Filename), f.pos.Line, f.what)
		}
	}
	if packages < 15 {
		t.Errorf("only %d packages looked at", packages)
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("the exception %q of %s is not needed any more: strike it out", e.what, e.pkg)
		}
	}
}

// Each snippet must be found to be what it is, and nothing else.
func TestDeterminismRefuses(t *testing.T) {
	for _, c := range []struct {
		src  string
		want []string
	}{
		{`func f() { go f() }`, []string{"go statement"}},
		{`func f() { select {} }`, []string{"select"}},
		{`var c = make(chan int)`, []string{"channel type"}},
		{`func f(c chan int) { c <- 1 }`, []string{"channel type", "send on a channel"}},
		{`func f(ctx context.Context) { <-ctx.Done() }`, []string{"receive from a channel"}},
		{`func f(ctx context.Context) { for range ctx.Done() {} }`, []string{"range over a channel"}},
		{`var now = time.Now()`, []string{"time.Now"}},
		{`var now = time.Now`, []string{"time.Now"}},
		{`func f() { time.Sleep(1); <-time.After(1) }`, []string{"time.Sleep", "receive from a channel", "time.After"}},
		{`func f(ctx context.Context) { _, _ = context.WithTimeout(ctx, time.Second) }`, []string{"context.WithTimeout"}},
		{`var mu sync.Mutex`, []string{"package sync", "sync.Mutex"}},
		{`var n = rand.Int()`, []string{"package math/rand/v2", "math/rand/v2.Int"}},
		{`var id = bson.NewObjectID()`, []string{"go.mongodb.org/mongo-driver/v2/bson.NewObjectID"}},
		{`func f(m map[string]int) { for k := range m { println(k) } }`, []string{"range over a map of string"}},
		{`type set map[int]bool
		  func f(m set) { for k := range m { println(k) } }`, []string{"range over a map of int"}},
		{`func f[M ~map[int]bool](m M) { for k := range m { println(k) } }`, []string{"range over a map of int"}},
		{`func f(m map[string]int) []string { return slices.Collect(maps.Keys(m)) }`, []string{"maps.Keys, unsorted"}},
		{`func f(m map[string]int) {
		  // order:
		  for k := range m { println(k) } }`, []string{"range over a map of string"}},
		// And what is as it should be.
		{`var n atomic.Int64`, nil},
		{`var d = 3 * time.Second`, nil},
		{`func f(s []int) { for i := range s { println(i) } }`, nil},
		{`func f(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }`, nil},
		{`func f(m map[string]int) (n int) {
		  // order: a sum is the same in any
		  for _, v := range m { n += v }
		  return n }`, nil},
		{`func f(m map[string]int) {
		  for k := range m { // order: all go
		    delete(m, k) } }`, nil},
	} {
		got := inspectSnippet(t, c.src)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\nfound %q, want %q", c.src, got, c.want)
		}
	}
}

// snippetImports are added to a snippet that uses them.
var snippetImports = map[string]string{
	"context": "context", "time": "time", "sync": "sync", "atomic": "sync/atomic", "rand": "math/rand/v2", "maps": "maps", "slices": "slices",
	"bson": "go.mongodb.org/mongo-driver/v2/bson",
}

var snippetWorld []listed

func inspectSnippet(t *testing.T, src string) []string {
	t.Helper()
	if snippetWorld == nil {
		snippetWorld = goList(t, "context", "time", "sync", "sync/atomic", "math/rand/v2", "maps", "slices", "go.mongodb.org/mongo-driver/v2/bson")
	}
	var head strings.Builder
	head.WriteString("package p\n")
	for _, name := range []string{"context", "time", "sync", "atomic", "rand", "maps", "slices", "bson"} {
		if strings.Contains(src, name+".") {
			fmt.Fprintf(&head, "import %q\n", snippetImports[name])
		}
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "snippet.go", head.String()+src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info, err := typeCheck(fset, exportImporter(fset, snippetWorld), "p", []*ast.File{f})
	if err != nil {
		t.Fatalf("%s\n%v", src, err)
	}
	var got []string
	for _, f := range inspect(fset, []*ast.File{f}, info) {
		got = append(got, f.what)
	}
	return got
}
