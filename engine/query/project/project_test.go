package project_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/value"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into the scripts instead of comparing")

// TestScripts runs testdata/*.txt. A case is a projection, documents, a bar, and the projected documents:
//
//	for {a: 1}
//	project {"a.$": 1}
//	{a: [0, 1]}
//	----
//	{a: [1]}
//
// "for" is the query and mostly left out; "stage" projects as $project does, "plain" has no expressions, "reads" asks for the
// dependencies.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, c := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
				question, _, _ := strings.Cut(c, "\n----")
				got := question + "\n----\n" + answer(t, question)
				if got != c && !*rewrite {
					t.Errorf("got\n%s\n\nwant\n%s\n", got, c)
				}
				out = append(out, got)
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func answer(t *testing.T, question string) string {
	lines := slices.DeleteFunc(strings.Split(question, "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
	command, arg, _ := strings.Cut(lines[0], " ")
	opts := options()
	if command == "for" {
		f, err := match.Parse(value.MustParseDocument(arg), match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		opts.Query = f
		lines = lines[1:]
		command, arg, _ = strings.Cut(lines[0], " ")
	}
	switch command {
	case "stage":
		opts.Pipeline = true
	case "plain":
		opts.Expr = nil
	}
	p, err := project.Parse(value.MustParseDocument(arg), opts)
	switch {
	case err != nil:
		return "error " + err.Error()
	case p == nil:
		return "none"
	case command == "reads":
		paths, all := p.Reads()
		return fmt.Sprintf("%v all %v plain %v", paths, all, p.Plain())
	}
	var docs []string
	for _, l := range lines[1:] {
		out, err := p.Apply([]byte("before"), value.MustParseDocument(l))
		if err != nil {
			docs = append(docs, "error "+err.Error())
			continue
		}
		doc := bson.Raw(strings.TrimPrefix(string(out), "before"))
		if err := value.Validate(doc); err != nil {
			t.Errorf("%s: %v", l, err)
		}
		docs = append(docs, value.Text(value.Document(doc)))
	}
	return strings.Join(docs, "\n")
}

type expression struct{ v bson.RawValue }

func (e expression) Eval(doc bson.Raw) (bson.RawValue, error) {
	if name, ok := strings.CutPrefix(string(value.StringBytes(e.v)), "$"); ok {
		return value.Lookup(doc, name), nil
	}
	if value.Lookup(e.v.Value, "$fail").Type != 0 {
		return value.Missing, mongoerr.BadValue.Errorf("failed")
	}
	return e.v, nil
}

func (e expression) Reads() ([]string, bool) {
	if name, ok := strings.CutPrefix(string(value.StringBytes(e.v)), "$"); ok {
		return []string{name}, false
	}
	return nil, false
}

func options() project.Options {
	return project.Options{Expr: func(v bson.RawValue) (project.Expression, error) { return expression{v}, nil }}
}
