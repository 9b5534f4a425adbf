package update_test

import (
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt. The case
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
func TestScripts(t *testing.T) { script.Run(t, answer) }

func filter(f bson.Raw) (update.Test, error) {
	m, err := match.Parse(f, match.Options{})
	if err != nil {
		return nil, err
	}
	return m.Match, nil
}

func answer(t *testing.T, c script.Case) string {
	var spec bson.RawValue
	var lines []string
	opts := update.Options{Filter: filter}
	ctx := update.Context{Positional: -1, Now: value.MustParse(`ISODate("2024-01-02T03:04:05.006Z")`).DateTime(), Ordinal: 7}
	for _, l := range c.Lines {
		word, rest, _ := strings.Cut(l, " ")
		switch word {
		case "update":
			spec = value.MustParse(rest)
		case "filters":
			for it := value.Elements(value.MustParse("[" + rest + "]").Value); it.Next(); {
				opts.ArrayFilters = append(opts.ArrayFilters, it.Value().Value)
			}
		case "at":
			n, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatalf("%s: %v", c.At, err)
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
				t.Errorf("%s: %s: changed is %v", c.At, l, changed)
			}
		}
		switch {
		case err != nil:
			answers = append(answers, "error "+err.Error())
		case !changed:
			answers = append(answers, "unchanged")
		default:
			if err := value.Validate(doc); err != nil {
				t.Errorf("%s: %s: %v", c.At, l, err)
			}
			answers = append(answers, value.Text(value.Document(doc)))
		}
	}
	return strings.Join(answers, "\n")
}
