package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parse(t *testing.T, stages string) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Parse(split(t, stages), (&world{}).options())
	if err != nil {
		t.Fatalf("%s: %v", stages, err)
	}
	return p
}

// prefix writes a prefix and what is left behind it.
func prefix(p *pipeline.Pipeline) string {
	var b strings.Builder
	f := p.Prefix()
	if f.Filter != nil {
		fmt.Fprintf(&b, "filter %s ", value.Text(value.Document(f.Filter.Raw())))
	}
	if f.Sort != nil {
		fmt.Fprintf(&b, "sort %v ", f.Sort.Fields())
	}
	fmt.Fprintf(&b, "skip %d limit %d fields %v", f.Skip, f.Limit, f.Fields)
	for _, s := range p.Stages() {
		b.WriteString("\n" + value.Text(value.Document(s)))
	}
	return b.String()
}

func TestPrefixIsWhatAPlanCanDo(t *testing.T) {
	for _, c := range []struct{ stages, want string }{
		{`[]`, `skip 0 limit 0 fields []`},
		{`[{$match: {a: 1}}, {$match: {b: 2}}, {$sort: {c: -1}}, {$skip: 5}, {$limit: 10}, {$project: {a: 1, _id: 0}}]`,
			"filter {$and: [{a: {$eq: 1}}, {b: {$eq: 2}}]} sort [{c true}] skip 5 limit 10 fields [a]\n{$project: {a: 1, _id: 0}}"},
		{`[{$sort: {c: 1}}, {$match: {a: 1}}]`, `filter {a: {$eq: 1}} sort [{c false}] skip 0 limit 0 fields []`},
		{`[{$limit: 10}, {$skip: 3}, {$limit: 20}, {$skip: 1}]`, `skip 4 limit 6 fields []`},
		{`[{$limit: 2}, {$skip: 3}]`, "skip 0 limit 2 fields []\n{$skip: 3}"},
		{`[{$addFields: {x: 1}}, {$match: {a: 1, x: 1}}, {$limit: 1}]`, "filter {a: {$eq: 1}} skip 0 limit 0 fields []\n{$addFields: {x: 1}}\n{$match: {x: {$eq: 1}}}\n{$limit: 1}"},
		{`[{$unwind: "$l"}, {$match: {"l.x": 1, a: 2}}]`, "filter {a: {$eq: 2}} skip 0 limit 0 fields []\n{$unwind: \"$l\"}\n{$match: {l.x: {$eq: 1}}}"},
		{`[{$project: {a: 1}}, {$limit: 3}]`, "skip 0 limit 3 fields [_id a]\n{$project: {a: 1}}"},
		{`[{$match: {$expr: {$gt: ["$a", 1]}}}, {$group: {_id: "$k", n: {$sum: "$v.w"}}}]`, "filter {$expr: {$gt: [\"$a\", 1]}} skip 0 limit 0 fields [k v.w]\n{$group: {_id: \"$k\", n: {$sum: \"$v.w\"}}}"},
		{`[{$limit: 5}, {$match: {a: 1}}]`, "skip 0 limit 5 fields []\n{$match: {a: 1}}"},
		{`[{$lookup: {from: "o", localField: "a", foreignField: "b", as: "l"}}, {$unwind: "$l"}, {$match: {x: 1, "l.y": 2}}]`,
			"filter {x: {$eq: 1}} skip 0 limit 0 fields []\n{$lookup: {from: \"o\", localField: \"a\", foreignField: \"b\", as: \"l\", unwinding: \"$l\"}}\n{$match: {l.y: {$eq: 2}}}"},
		{`[{$lookup: {from: "o", localField: "a", foreignField: "b", as: "l"}}, {$limit: 3}]`,
			"skip 0 limit 3 fields []\n{$lookup: {from: \"o\", localField: \"a\", foreignField: \"b\", as: \"l\"}}"},
		{`[{$group: {_id: "$k", n: {$sum: 1}}}, {$match: {_id: {$gt: 5}, n: 2}}]`,
			"filter {k: {$gt: 5}} skip 0 limit 0 fields [k]\n{$group: {_id: \"$k\", n: {$sum: 1}}}\n{$match: {n: {$eq: 2}}}"},
		{`[{$group: {_id: "$k", n: {$sum: 1}}}, {$match: {_id: null}}]`, "skip 0 limit 0 fields [k]\n{$group: {_id: \"$k\", n: {$sum: 1}}}\n{$match: {_id: null}}"},
		{`[{$match: {$sampleRate: 0.5}}]`, "skip 0 limit 0 fields []\n{$match: {$sampleRate: 0.5}}"},
	} {
		if got := prefix(parse(t, c.stages)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.stages, got, c.want)
		}
	}
}

func TestCountsAreRecognised(t *testing.T) {
	for _, c := range []struct{ stages, want string }{
		{`[{$match: {a: 1}}, {$group: {_id: 1, n: {$sum: 1}}}]`, `{_id: 1, n: 7}`},
		{`[{$match: {a: 1}}, {$skip: 2}, {$limit: 9}, {$group: {_id: 1, n: {$sum: 1}}}]`, `{_id: 1, n: 7}`},
		{`[{$group: {_id: null, c: {$count: {}}}}]`, `{_id: null, c: 7}`},
		{`[{$count: "x"}]`, `{x: 7}`},
		{`[{$group: {_id: 1, n: {$sum: 2}}}]`, ``},
		{`[{$group: {_id: "$a", n: {$sum: 1}}}]`, ``},
		{`[{$group: {_id: 1, n: {$sum: 1}, m: {$sum: 1}}}]`, ``},
		{`[{$unwind: "$a"}, {$count: "x"}]`, ``},
	} {
		make, ok := parse(t, c.stages).Counts()
		got := ""
		if ok {
			got = value.Text(value.Document(make(7)))
			if make(0) != nil {
				t.Errorf("%s: no documents, but an answer", c.stages)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.stages, got, c.want)
		}
	}
}

func TestStagesHoldNoMoreThanTheyMay(t *testing.T) {
	pad := strings.Repeat("x", 1000)
	w := &world{collections: map[string][]bson.Raw{}}
	for i := range 200 {
		w.collections["c"] = append(w.collections["c"], value.MustParseDocument(fmt.Sprintf("{_id: %d, pad: %q}", i, pad)))
	}
	for _, stages := range []string{
		`[{$group: {_id: "$_id", l: {$push: "$pad"}}}]`,
		`[{$group: {_id: 1, l: {$push: "$pad"}}}]`,
		`[{$group: {_id: 1, l: {$addToSet: {$concat: ["$pad", {$toString: "$_id"}]}}}}]`,
		`[{$group: {_id: 1, l: {$topN: {n: 1000, sortBy: {_id: 1}, output: "$pad"}}}}]`,
		`[{$sort: {pad: 1}}, {$group: {_id: "$pad"}}]`,
		`[{$bucketAuto: {groupBy: "$_id", buckets: 3}}]`,
		`[{$facet: {a: []}}]`,
		`[{$sample: {size: 199}}]`,
		`[{$setWindowFields: {output: {n: {$sum: 1}}}}]`,
		`[{$densify: {field: "_id", range: {step: 1, bounds: "full"}}}]`,
	} {
		o := w.options()
		o.Memory, o.Plain = 100_000, true
		_, err := w.run(split(t, stages), o)
		if !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
			t.Errorf("%s: %v", stages, err)
		}
		o = w.options()
		if _, err := w.run(split(t, stages), o); err != nil {
			t.Errorf("%s with memory: %v", stages, err)
		}
	}
}

func TestTickEndsAPipeline(t *testing.T) {
	w := &world{collections: map[string][]bson.Raw{}}
	for i := range 1000 {
		w.collections["c"] = append(w.collections["c"], value.MustParseDocument(fmt.Sprintf("{_id: %d}", i)))
	}
	stop := mongoerr.MaxTimeMSExpired.Errorf("operation exceeded time limit")
	for _, stages := range []string{`[{$addFields: {a: 1}}]`, `[{$group: {_id: "$a"}}]`, `[{$unwind: "$zzz"}]`} {
		o := w.options()
		n := 0
		o.Context.Tick = func() error {
			if n++; n > 2 {
				return stop
			}
			return nil
		}
		if _, err := w.run(split(t, stages), o); err != stop {
			t.Errorf("%s: %v", stages, err)
		}
	}
}

func TestDeepPipelinesAreRefused(t *testing.T) {
	w := &world{collections: map[string][]bson.Raw{}}
	stages := "[]"
	for range 22 {
		stages = `[{$lookup: {from: "o", as: "x", pipeline: ` + stages + `}}]`
	}
	if _, err := w.run(split(t, stages), w.options()); !mongoerr.Is(err, mongoerr.MaxSubPipelineDepthExceeded) {
		t.Errorf("22 pipelines in each other: %v", err)
	}
}

func TestHooksOfOtherPackages(t *testing.T) {
	c := &expr.Context{Now: 1}
	scope, err := expr.Let(c, expr.Scope{}, value.MustParseDocument("{low: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := match.Parse(value.MustParseDocument(`{$expr: {$gte: ["$a", "$$low"]}}`), match.Options{Expr: pipeline.Filter(c, scope)})
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]bool{"{a: 1}": false, "{a: 2}": true} {
		if ok, err := f.Match(value.MustParseDocument(doc)); ok != want || err != nil {
			t.Errorf("%s: %v, %v", doc, ok, err)
		}
	}
	q, err := project.Parse(value.MustParseDocument(`{a: 1, b: {$add: ["$a", "$$low"]}}`), project.Options{Expr: pipeline.Projection(c, scope)})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := q.Apply(nil, value.MustParseDocument("{_id: 1, a: 5, c: 1}"))
	if got := value.Text(value.Document(doc)); err != nil || got != "{_id: 1, a: 5, b: 7}" {
		t.Errorf("%s, %v", got, err)
	}
	u, err := update.Parse(value.MustParse(`[{$set: {a: {$multiply: ["$a", "$$low"]}}}, {$unset: "c"}, {$replaceWith: {$mergeObjects: ["$$ROOT", {d: 1}]}}]`),
		update.Options{Pipeline: pipeline.Transform(c, scope)})
	if err != nil {
		t.Fatal(err)
	}
	doc, changed, err := u.Apply(value.MustParseDocument("{_id: 1, a: 5, c: 1}"), update.Context{})
	if got := value.Text(value.Document(doc)); err != nil || !changed || got != "{_id: 1, a: 10, d: 1}" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := pipeline.Transform(c, scope)(bson.Raw(value.MustParse("[{$group: {_id: 1}}]").Value)); !mongoerr.Is(err, mongoerr.InvalidOptions) {
		t.Errorf("$group in an update: %v", err)
	}
}

// caseless compares ASCII text without case.
type caseless struct{}

func (caseless) Compare(a, b []byte) int {
	return strings.Compare(strings.ToLower(string(a)), strings.ToLower(string(b)))
}

func (caseless) AppendKey(dst, text []byte) []byte {
	return append(dst, strings.ToLower(string(text))...)
}

func TestCollationReachesEveryStage(t *testing.T) {
	w := &world{collections: map[string][]bson.Raw{}}
	for _, s := range []string{"b", "A", "a", "B"} {
		w.collections["c"] = append(w.collections["c"], value.MustParseDocument(fmt.Sprintf("{s: %q, l: [%q]}", s, s)))
	}
	for stages, want := range map[string]string{
		`[{$match: {s: "a"}}, {$count: "n"}]`:                                                                                `{n: 2}`,
		`[{$group: {_id: "$s", n: {$sum: 1}}}]`:                                                                              "{_id: \"b\", n: 2}\n{_id: \"A\", n: 2}",
		`[{$group: {_id: "$l", n: {$sum: 1}}}]`:                                                                              "{_id: [\"b\"], n: 2}\n{_id: [\"A\"], n: 2}",
		`[{$sort: {s: 1}}, {$project: {s: 1}}, {$limit: 1}]`:                                                                 `{s: "A"}`,
		`[{$match: {$expr: {$eq: ["$s", "B"]}}}, {$count: "n"}]`:                                                             `{n: 2}`,
		`[{$group: {_id: 1, s: {$addToSet: "$s"}, m: {$min: "$s"}}}]`:                                                        `{_id: 1, s: ["b", "A"], m: "A"}`,
		`[{$lookup: {from: "c", localField: "s", foreignField: "s", as: "x"}}, {$project: {n: {$size: "$x"}}}, {$limit: 1}]`: `{n: 2}`,
	} {
		o := w.options()
		o.Collation = caseless{}
		docs, err := w.run(split(t, stages), o)
		if err != nil || lines(docs) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", stages, err, lines(docs), want)
		}
	}
}

// TestLookupTellsWhatItsVariablesEqual holds that a planner can look up what the pipeline of a $lookup compares with a variable.
func TestLookupTellsWhatItsVariablesEqual(t *testing.T) {
	for _, c := range []struct{ let, match, want string }{
		{`5`, `{$expr: {$eq: ["$k.l", "$$v"]}}`, `{$and: [{k.l: {$eq: 5}}, {$expr: {$eq: ["$k.l", "$$v"]}}]}`},
		{`{x: null}`, `{$expr: {$and: [{$eq: ["$$v.x", "$k"]}, {$gt: ["$n", 1]}]}}`, `{$and: [{k: {$eq: null}}, {$expr: {$and: [{$eq: ["$$v.x", "$k"]}, {$gt: ["$n", 1]}]}}]}`},
		{`[1]`, `{$expr: {$eq: ["$k", "$$v"]}}`, `{$expr: {$eq: ["$k", "$$v"]}}`},
		{`"$$REMOVE"`, `{$expr: {$eq: ["$k", "$$v"]}}`, `{$expr: {$eq: ["$k", "$$v"]}}`},
		{`5`, `{$expr: {$eq: ["$k", {$add: ["$$v", "$k"]}]}}`, `{$expr: {$eq: ["$k", {$add: ["$$v", "$k"]}]}}`},
		{`5`, `{$expr: {$or: [{$eq: ["$k", "$$v"]}, true]}}`, `{$expr: {$or: [{$eq: ["$k", "$$v"]}, true]}}`},
	} {
		w := &world{collections: map[string][]bson.Raw{"c": {value.MustParseDocument("{}")}}}
		if _, err := w.run(split(t, `[{$lookup: {from: "o", as: "l", let: {v: `+c.let+`}, pipeline: [{$match: `+c.match+`}]}}]`), w.options()); err != nil {
			t.Fatal(err)
		}
		if got := value.Text(value.Document(w.filter)); got != c.want {
			t.Errorf("%s with %s: %s", c.match, c.let, got)
		}
	}
}
