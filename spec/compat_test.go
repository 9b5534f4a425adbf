package spec

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// compat.md has a table for each of the engine's own: what it says must be there is there, and the other way round. The tables
// are read from the source. A row's remark is written by hand, and kept by -rewrite as long as the source says the same; where it
// says yes, the hand may say "partly" instead, if it adds a remark.
var rewrite = flag.Bool("rewrite", false, "write the tables of compat.md anew")

const (
	yes        = "yes"
	partly     = "partly"
	ignored    = "taken, changes nothing"
	refused    = "no: 238 NotImplemented"
	notReached = "not yet: written, but nothing leads to it"
)

// entry is a row of compat.md.
type entry struct{ name, status, remark string }

// sections are the tables of compat.md, by the name that their markers have.
var sections = map[string]func(s *source) []entry{
	"commands":     func(s *source) []entry { return s.table("engine/command", "commands") },
	"options":      (*source).options,
	"filters":      (*source).filters,
	"schema":       func(s *source) []entry { return s.table("engine/query/match", "schemaKeywords") },
	"updates":      func(s *source) []entry { return s.table("engine/query/update", "operators") },
	"expressions":  func(s *source) []entry { return s.table("engine/query/expr", "operators") },
	"stages":       (*source).stages,
	"accumulators": func(s *source) []entry { return s.table("engine/query/pipeline", "accumulators") },
}

// source is what the tests read of the engine's source.
type source struct {
	t       *testing.T
	reached map[string]bool // packages that engine/server needs
}

func newSource(t *testing.T) *source {
	imports := imports(t)
	s := &source{t, map[string]bool{"engine/server": true}}
	for grown := true; grown; {
		grown = false
		for _, i := range imports {
			if i.own && !i.test && s.reached[i.pkg] && !s.reached[i.path] {
				s.reached[i.path], grown = true, true
			}
		}
	}
	return s
}

// files parses a package, by the names of its files.
func (s *source) files(pkg string) map[string]*ast.File {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		s.t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(name), ".go")] = f
	}
	return files
}

// table reads a literal table: a row's name, and whether the row says that there is nothing behind it.
func (s *source) table(pkg, variable string) []entry {
	s.t.Helper()
	var rows []entry
	for _, f := range s.files(pkg) {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || len(v.Names) != 1 || v.Names[0].Name != variable || len(v.Values) != 1 {
					continue
				}
				if lit, ok := v.Values[0].(*ast.CompositeLit); ok {
					for _, row := range lit.Elts {
						if row, ok := row.(*ast.CompositeLit); ok {
							rows = append(rows, tableRow(row, variable))
						}
					}
				}
			}
		}
	}
	if len(rows) == 0 {
		s.t.Fatalf("%s: no table called %s", pkg, variable)
	}
	if !s.reached[pkg] {
		for i := range rows {
			rows[i].status = notReached
		}
	}
	return rows
}

func tableRow(row *ast.CompositeLit, variable string) entry {
	fields := map[string]ast.Expr{}
	for i, e := range row.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			fields[kv.Key.(*ast.Ident).Name] = kv.Value
		} else if i == 0 {
			fields["name"] = e
		}
	}
	e := entry{name: text(fields["name"]), status: yes}
	if aliases, ok := fields["aliases"].(*ast.CompositeLit); ok {
		for _, a := range aliases.Elts {
			e.name += ", " + text(a)
		}
	}
	_, todo := fields["todo"]
	_, run := fields["run"]
	why, no := fields["refused"]
	switch {
	case variable == "schemaKeywords" && todo:
		e.status = "no: 9 FailedToParse, as MongoDB"
	case todo, no, variable == "commands" && !run:
		e.status = refused
		e.remark = text(why)
	}
	return e
}

func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok {
		if s, err := strconv.Unquote(lit.Value); err == nil {
			return s
		}
	}
	return ""
}

// filters are those of package match; $expr is there if the engine says how to read its operand.
func (s *source) filters() []entry {
	given := false
	for _, f := range s.files("engine") {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if t, ok := lit.Type.(*ast.SelectorExpr); ok && fmt.Sprint(t.X) == "match" && t.Sel.Name == "Options" {
					for _, e := range lit.Elts {
						kv, ok := e.(*ast.KeyValueExpr)
						given = given || ok && fmt.Sprint(kv.Key) == "Expr"
					}
				}
			}
			return true
		})
	}
	rows := s.table("engine/query/match", "operators")
	for i := range rows {
		if rows[i].name == "$expr" && !given {
			rows[i].status = refused
		}
	}
	return rows
}

// stages are those of package pipeline, or, as long as nothing leads to it, those that the command knows by itself.
func (s *source) stages() []entry {
	if s.reached["engine/query/pipeline"] {
		return s.table("engine/query/pipeline", "stageTable")
	}
	var rows []entry
	for _, c := range cases(s.files("engine/command")["aggregate"]) {
		if strings.HasPrefix(c.name, "$") {
			rows = append(rows, entry{name: c.name, status: yes})
		}
	}
	return rows
}

// options are the fields that commands and specifications have: what the cases of switches over their names do with them.
func (s *source) options() []entry {
	var rows []entry
	codes := s.codes()
	add := func(c option, parent string) {
		if c.parent != "" {
			parent = c.parent
		}
		row := entry{name: parent + "." + c.name, status: c.status(codes)}
		if !slices.ContainsFunc(rows, func(e entry) bool { return e.name == row.name }) {
			rows = append(rows, row)
		}
	}
	for name, f := range s.files("engine/command") {
		switch name {
		case "generic", "field", "command", "get_log":
			continue
		case "cursors":
			name = "aggregate.cursor"
		case "batch":
			for _, c := range cases(f) {
				for _, parent := range batchParents[c.fn] {
					if parent != "insert" || c.name != "let" {
						add(c, parent)
					}
				}
			}
			continue
		}
		for _, c := range cases(f) {
			if c.tag == "f.name" && (name != "bulk_write" || c.fn != "read") { // the statements' fields are update's and delete's
				add(c, camel(name))
			}
		}
	}
	for name, parent := range map[string]string{"options": "create", "index": "createIndexes.indexes"} {
		for _, c := range cases(s.files("engine/catalog")[name]) {
			if c.tag == "name" {
				add(c, parent)
			}
		}
	}
	return rows
}

// batchParents are what the functions read that insert, update and delete share.
var batchParents = map[string][]string{
	"parseBatch": {"delete", "insert", "update"}, "ofDelete": {"delete.deletes"}, "ofUpdate": {"update.updates"},
}

// option is a string in a case of a switch.
type option struct {
	name, tag string
	fn        string // the function that it is in
	parent    string // what the function calls its parent, if it does
	body      []ast.Stmt
}

// status tells from the body of the case what becomes of the field.
func (o option) status(codes map[string]string) string {
	found := map[string]bool{}
	for _, stmt := range o.body {
		ast.Inspect(stmt, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				found[sel.Sel.Name] = true
				if id, ok := sel.X.(*ast.Ident); ok {
					found[id.Name+"."+sel.Sel.Name] = true
				}
			}
			return true
		})
	}
	switch {
	case found["unsupported"], found["mongoerr.NotImplemented"]:
		return refused
	case found["ignored"]:
		return ignored
	}
	if n := len(o.body); n > 0 {
		if ret, ok := o.body[n-1].(*ast.ReturnStmt); ok && len(ret.Results) > 0 {
			if code := codeOf(ret.Results[len(ret.Results)-1]); code != "" {
				return "no: " + codes[code] + " " + code
			}
		}
	}
	return yes
}

// codes are the numbers of package mongoerr's codes.
func (s *source) codes() map[string]string {
	codes := map[string]string{}
	ast.Inspect(s.files("engine/mongoerr")["codes"], func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				codes[v.Names[0].Name] = lit.Value
			}
		}
		return true
	})
	return codes
}

// codeOf gives the code of an error made by package mongoerr, or "".
func codeOf(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Errorf" {
		return ""
	}
	code, ok := method.X.(*ast.SelectorExpr)
	if !ok || fmt.Sprint(code.X) != "mongoerr" {
		return ""
	}
	return code.Sel.Name
}

// cases gives the strings in the cases of all switches of a file, and those that f.name alone is compared with.
func cases(f *ast.File) []option {
	var all []option
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		parent := ""
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if len(n.Names) == 1 && n.Names[0].Name == "parent" && len(n.Values) == 1 {
					parent = text(n.Values[0])
				}
			case *ast.ReturnStmt:
				for _, r := range n.Results {
					if name := comparedName(r); name != "" {
						all = append(all, option{name, "f.name", fn.Name.Name, parent, []ast.Stmt{n}})
					}
				}
			case *ast.IfStmt:
				if name := comparedName(n.Cond); name != "" {
					all = append(all, option{name, "f.name", fn.Name.Name, parent, n.Body.List})
				}
			case *ast.SwitchStmt:
				tag := ""
				switch t := n.Tag.(type) {
				case *ast.Ident:
					tag = t.Name
				case *ast.SelectorExpr:
					tag = fmt.Sprint(t.X) + "." + t.Sel.Name
				}
				if a, ok := n.Init.(*ast.AssignStmt); ok && len(a.Lhs) > 0 && tag == "" {
					tag = fmt.Sprint(a.Lhs[0])
				}
				for _, c := range n.Body.List {
					c := c.(*ast.CaseClause)
					for _, e := range c.List {
						if name := text(e); name != "" {
							all = append(all, option{name, tag, fn.Name.Name, parent, c.Body})
						}
					}
				}
			}
			return true
		})
	}
	return all
}

// comparedName is x in f.name == x, f.name != x, and f.name != x || …
func comparedName(e ast.Expr) string {
	b, ok := e.(*ast.BinaryExpr)
	switch {
	case !ok:
		return ""
	case b.Op == token.LOR:
		return comparedName(b.X)
	case b.Op != token.EQL && b.Op != token.NEQ:
		return ""
	}
	if sel, ok := b.X.(*ast.SelectorExpr); ok && fmt.Sprint(sel.X) == "f" && sel.Sel.Name == "name" {
		return text(b.Y)
	}
	return ""
}

// camel turns a file's name into a command's.
func camel(file string) string {
	words := strings.Split(file, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

func TestCompat(t *testing.T) {
	s := newSource(t)
	file, err := os.ReadFile("compat.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(file)
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		begin, end := "<!-- table: "+name+" -->\n", "<!-- end -->"
		before, rest, ok1 := strings.Cut(doc, begin)
		old, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Errorf("compat.md has no section %s", name)
			continue
		}
		have := map[string]entry{}
		for line := range strings.Lines(old) {
			if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], "`") {
				e := entry{strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
				have[e.name] = e
			}
		}
		rows := sections[name](s)
		slices.SortFunc(rows, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		table := "| | there? | |\n|---|---|---|\n"
		for _, r := range rows {
			h := have[r.name]
			if known := h.status == r.status || h.status == partly && r.status == yes; known && h.remark != "" {
				r.status, r.remark = h.status, h.remark // else the remark was on another state of things
			}
			table += fmt.Sprintf("| `%s` | %s | %s |\n", r.name, r.status, r.remark)
			if !*rewrite && h != r {
				t.Errorf("compat.md, %s: has %+v for %s, and the engine's source says %+v (go test ./spec -run Compat -rewrite)", name, h, r.name, r)
			}
			delete(have, r.name)
		}
		for name := range have {
			if !*rewrite {
				t.Errorf("compat.md knows %s, and the engine does not", name)
			}
		}
		doc = before + begin + table + end + after
	}
	if *rewrite {
		if err := os.WriteFile("compat.md", []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if doc != string(file) && !t.Failed() {
		t.Error("compat.md's tables are not in the form that -rewrite gives them")
	}
}
