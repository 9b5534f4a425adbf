package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

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
