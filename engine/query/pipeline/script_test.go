package pipeline_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt. The case
//
//	{a: 1}
//	other {b: 2}
//	[{$match: {a: 1}}]
//	[{$count: "n"}]
//	----
//	{a: 1}
//	--
//	{n: 1}
//
// has documents (of the collection c, or of the one that is named), then pipelines in brackets; behind the bar come the documents that
// each gives, or "none". "show other" in between gives a collection, "database" has the pipelines run on the database. Each pipeline runs as
// it is written and optimised, and must give the same.
func TestScripts(t *testing.T) { script.Run(t, answer) }

func answer(t *testing.T, c script.Case) string {
	w := &world{collections: map[string][]bson.Raw{}, views: map[string]view{}}
	var answers []string
	collection := "c"
	for _, l := range c.Lines {
		switch {
		case l == "database":
			collection = ""
		case strings.HasPrefix(l, "show "):
			answers = append(answers, lines(w.collections[l[len("show "):]]))
		case strings.HasPrefix(l, "view "):
			f := strings.SplitN(l, " ", 4)
			w.views[f[1]] = view{f[2], split(t, f[3])}
		case strings.HasPrefix(l, "["):
			answers = append(answers, bothWays(t, w, split(t, l), collection))
		case strings.HasPrefix(l, "{"):
			w.collections["c"] = append(w.collections["c"], value.MustParseDocument(l))
		default:
			name, doc, _ := strings.Cut(l, " ")
			w.collections[name] = append(w.collections[name], value.MustParseDocument(doc))
		}
	}
	return strings.Join(answers, "\n--\n")
}

func split(t *testing.T, s string) []bson.Raw {
	v, err := value.Parse(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	stages, err := pipeline.Split(v)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return stages
}

func bothWays(t *testing.T, w *world, stages []bson.Raw, collection string) string {
	before := map[string][]bson.Raw{}
	for name, docs := range w.collections {
		before[name] = slices.Clone(docs)
	}
	o := w.options()
	o.Namespace.Collection = collection
	o.Plain = true
	plain, err1 := w.run(stages, o)
	w.collections = before
	o = w.options()
	o.Namespace.Collection = collection
	w.indexed = true
	w.closed, w.finds = 0, 0
	docs, err2 := w.run(stages, o)
	w.indexed = false
	if err2 == nil && w.closed != w.finds {
		t.Errorf("%d finds, and %d closed, by %s", w.finds, w.closed, stages)
	}
	if (err1 == nil) != (err2 == nil) || err1 == nil && lines(plain) != lines(docs) {
		t.Errorf("%s\nas written %v:\n%s\noptimised %v:\n%s", stages, err1, lines(plain), err2, lines(docs))
	}
	if err2 != nil {
		return describe(err2)
	}
	return lines(docs)
}

func lines(docs []bson.Raw) string {
	var l []string
	for _, d := range docs {
		l = append(l, value.Text(value.Document(d)))
	}
	if l == nil {
		return "none"
	}
	return strings.Join(l, "\n")
}

func describe(err error) string {
	when := "error "
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		return "error without a code: " + err.Error()
	}
	if strings.HasPrefix(err.Error(), "parse ") {
		when = "parse error "
	}
	return when + e.Code.Name() + ": " + e.Message
}
