package update_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into the scripts instead of comparing")

// TestScripts runs testdata/*.txt. A script is a list of cases, apart by an empty line; '#' begins a comment line:
//
//	update {$set: {"a.$[x].b": 1}}
//	filters {x: {$gt: 1}}
//	{a: [1, 2]}
//	make {a: 3}
//	----
//	{a: [1, {b: 1}]}
//	error ...
//
// Each line after the update has an answer behind the bar: a document what becomes of it, "make" the document that an upsert
// makes for this filter; an error of the update itself answers all at once. "filters" gives the array filters and "at" the
// position that $ stands for; they have no answers. It is 2024-01-02 at 03:04:05.006.
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
			for c := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
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

func filter(f bson.Raw) (update.Test, error) {
	m, err := match.Parse(f, match.Options{})
	if err != nil {
		return nil, err
	}
	return m.Match, nil
}

func answer(t *testing.T, question string) string {
	var spec bson.RawValue
	var lines []string
	opts := update.Options{Filter: filter}
	ctx := update.Context{Positional: -1, Now: value.MustParse(`ISODate("2024-01-02T03:04:05.006Z")`).DateTime(), Ordinal: 7}
	for l := range strings.SplitSeq(question, "\n") {
		word, rest, _ := strings.Cut(l, " ")
		switch word {
		case "#":
		case "update":
			spec = value.MustParse(rest)
		case "filters":
			for it := value.Elements(value.MustParse("[" + rest + "]").Value); it.Next(); {
				opts.ArrayFilters = append(opts.ArrayFilters, it.Value().Value)
			}
		case "at":
			n, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatal(err)
			}
			ctx.Positional = n
		default:
			lines = append(lines, l)
		}
	}
	u, err := update.Parse(spec, opts)
	if err != nil {
		return "error " + err.Error()
	}
	var answers []string
	for _, l := range lines {
		var doc bson.Raw
		changed := true
		var err error
		if f, ok := strings.CutPrefix(l, "make "); ok {
			doc, err = u.Make(value.MustParseDocument(f), ctx)
		} else {
			old := value.MustParseDocument(l)
			doc, changed, err = u.Apply(old, ctx)
			if err == nil && changed != (string(doc) != string(old)) {
				t.Errorf("%s: changed is %v", question, changed)
			}
		}
		switch {
		case err != nil:
			answers = append(answers, "error "+err.Error())
		case !changed:
			answers = append(answers, "unchanged")
		default:
			if err := value.Validate(doc); err != nil {
				t.Errorf("%s: %v", question, err)
			}
			answers = append(answers, value.Text(value.Document(doc)))
		}
	}
	return strings.Join(answers, "\n")
}
