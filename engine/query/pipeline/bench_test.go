package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/value"
)

// BenchmarkPipelines runs pipelines over 100 000 documents of 1 KiB in memory; one op is a whole run.
func BenchmarkPipelines(b *testing.B) {
	var docs []bson.Raw
	pad := strings.Repeat("x", 900)
	for i := range 100_000 {
		docs = append(docs, value.MustParseDocument(fmt.Sprintf(`{_id: %d, k: %d, s: "group %d", n: %d.5, sub: {a: %d, b: "text"}, r: %d, pad: %q}`,
			i, i%10, i%1000, i, i%100, i*7919%100_003, pad)))
	}
	for _, c := range []struct{ name, stages string }{
		{"group", `[{$group: {_id: "$s", total: {$sum: "$k"}}}]`},
		{"group10", `[{$group: {_id: "$k", total: {$sum: "$n"}, avg: {$avg: "$sub.a"}}}]`},
		{"match+project", `[{$match: {k: 3}}, {$project: {s: 1, n: 1, x: {$add: ["$k", 1]}}}]`},
		{"sort+limit", `[{$sort: {r: 1}}, {$limit: 20}]`},
		{"count", `[{$match: {k: {$lt: 5}}}, {$group: {_id: 1, n: {$sum: 1}}}]`},
		{"addFields", `[{$addFields: {z: {$multiply: ["$k", 2]}}}, {$count: "n"}]`},
		{"unwind", `[{$project: {a: ["$k", "$n", "$s"]}}, {$unwind: "$a"}, {$count: "n"}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			v := value.MustParse(c.stages)
			stages, err := pipeline.Split(v)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				p, err := pipeline.Parse(stages, pipeline.Options{Plain: c.name != "sort+limit"})
				if err != nil {
					b.Fatal(err)
				}
				it := p.RunAll(pipeline.Documents(docs))
				for {
					doc, err := it.Next()
					if err != nil {
						b.Fatal(err)
					}
					if doc == nil {
						break
					}
				}
				it.Close()
			}
		})
	}
}

// BenchmarkLookup runs a $lookup of 1 000 documents in a collection of 1 000, once through a find per document (a map stands for the
// index), once through a table.
func BenchmarkLookup(b *testing.B) {
	w := &indexedWorld{world: world{collections: map[string][]bson.Raw{}}, byKey: map[int32]bson.Raw{}}
	for i := range int32(1000) {
		w.collections["c"] = append(w.collections["c"], value.MustParseDocument(fmt.Sprintf("{_id: %d, k: %d}", i, i*7%1000)))
		doc := value.MustParseDocument(fmt.Sprintf("{_id: %d, v: \"text\"}", i))
		w.collections["o"] = append(w.collections["o"], doc)
		w.byKey[i] = doc
	}
	stages, err := pipeline.Split(value.MustParse(`[{$lookup: {from: "o", localField: "k", foreignField: "_id", as: "x"}}]`))
	if err != nil {
		b.Fatal(err)
	}
	for _, indexed := range []bool{true, false} {
		b.Run(fmt.Sprintf("indexed=%v", indexed), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.indexed = indexed
				p, err := pipeline.Parse(stages, pipeline.Options{World: w})
				if err != nil {
					b.Fatal(err)
				}
				docs, err := drain(p.RunAll(pipeline.Documents(w.collections["c"])))
				if err != nil || len(docs) != 1000 {
					b.Fatal(len(docs), err)
				}
			}
		})
	}
}

// indexedWorld answers equality of _id at once.
type indexedWorld struct {
	world
	byKey map[int32]bson.Raw
}

func (w *indexedWorld) Find(ns pipeline.Namespace, f pipeline.Find) (pipeline.Iterator, error) {
	if f.Filter != nil {
		if c, ok := f.Filter.Root().(*match.Comparison); ok && c.Op == match.Eq {
			return pipeline.Documents([]bson.Raw{w.byKey[c.Value.Int32()]}), nil
		}
	}
	return w.world.Find(ns, f)
}
