package expr_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into the scripts instead of comparing")

// TestScripts runs testdata/*.txt. A script is a list of cases, apart by an empty line; '#' begins a comment line:
//
//	{a: 1}
//	{$add: ["$a", 1]}
//	{$add: ["$a", "x"]}
//	----
//	2
//	error 14 ...
//
// has a document in the first line, an expression in each line behind it, and the answers behind the bar. "let {x: 1}" as the first
// line binds variables for an empty document.
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
				got := question + "\n----\n" + strings.Join(answers(t, question), "\n")
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

func answers(t *testing.T, question string) []string {
	var scope expr.Scope
	c := &expr.Context{Now: 1700000000123, Rand: func() uint64 { return 1 << 63 }}
	var doc bson.Raw
	var answers []string
	for l := range strings.SplitSeq(question, "\n") {
		if strings.HasPrefix(l, "#") {
			continue
		}
		if doc == nil {
			if vars, ok := strings.CutPrefix(l, "let "); ok {
				var err error
				if scope, err = expr.Let(c, scope, value.MustParseDocument(vars)); err != nil {
					return []string{describe(err)}
				}
				l = "{}"
			}
			doc = value.MustParseDocument(l)
			continue
		}
		v, err := value.Parse(l)
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		answers = append(answers, evaluate(c, scope, v, doc))
	}
	return answers
}

func evaluate(c *expr.Context, scope expr.Scope, v bson.RawValue, doc bson.Raw) string {
	e, err := expr.Parse(v, scope)
	if err != nil {
		return "parse " + describe(err)
	}
	r, err := e.Eval(c, doc)
	if err != nil {
		return describe(err)
	}
	return value.Text(r)
}

func describe(err error) string {
	e := mongoerr.From(err)
	return "error " + e.Code.Name() + ": " + e.Message
}
