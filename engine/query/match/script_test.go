package match_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into the scripts instead of comparing")

// TestScripts runs testdata/*.txt. A script is a list of cases, apart by an empty line; '#' begins a comment line:
//
//	match {a: {$gt: 1}}
//	{a: 2}
//	{a: [0, 5]}
//	----
//	yes
//	yes at 1
//
// has a document a line before the bar and an answer a line behind it; an error answers all at once. "parse" instead of
// "match" has no documents, and "explain" says why a document does not pass; "parse"  answers with the filter's normal form.
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
	var lines []string
	for l := range strings.SplitSeq(question, "\n") {
		if !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	command, arg, _ := strings.Cut(lines[0], " ")
	f, err := match.Parse(value.MustParseDocument(arg), options(command))
	if err != nil {
		return "error " + err.Error()
	}
	if command == "parse" {
		return value.Text(value.Document(f.Raw()))
	}
	var answers []string
	for _, l := range lines[1:] {
		ok, index, err := f.MatchIndex(value.MustParseDocument(l))
		if command == "explain" {
			d, err := f.Explain(value.MustParseDocument(l))
			if err != nil {
				t.Error(err)
			}
			answers = append(answers, text(marshal(t, d)))
			continue
		}
		switch {
		case err != nil:
			answers = append(answers, "error "+err.Error())
		case !ok:
			answers = append(answers, "no")
		case index >= 0:
			answers = append(answers, fmt.Sprintf("yes at %d", index))
		default:
			answers = append(answers, "yes")
		}
	}
	return strings.Join(answers, "\n")
}

// options has a $expr that knows field paths only, and for the command "collated" a collation without case.
func options(command string) match.Options {
	o := match.Options{Expr: func(expr bson.RawValue) (match.Predicate, error) {
		name := strings.TrimPrefix(string(value.StringBytes(expr)), "$")
		return func(doc bson.Raw) (bool, error) { return value.Truth(value.Lookup(doc, name)), nil }, nil
	}}
	if command == "collated" {
		o.Collation = caseless{}
	}
	return o
}

type caseless struct{}

func (caseless) Compare(a, b []byte) int {
	return strings.Compare(strings.ToLower(string(a)), strings.ToLower(string(b)))
}
