package engine

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// processorTime is what the process has used of the processors: on a machine with other work it says more than the clock.
func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAggregate holds the figures of spec/bench/aggregate.txt: pipelines over 100 000 documents of 1 KiB.
func BenchmarkAggregate(b *testing.B) {
	db := benchDocuments(b, 100_000)
	for _, x := range []struct {
		name   string
		stages []string
		want   int
	}{
		{"group", []string{`{$group: {_id: "$b", n: {$sum: "$a"}}}`}, 7},
		{"match_project", []string{`{$match: {a: 3}}`, `{$project: {b: 1, m: {$multiply: ["$n", 2]}}}`}, 10000},
		{"sort_limit", []string{`{$sort: {b: 1, a: 1}}`, `{$limit: 20}`, `{$set: {x: 1}}`}, 20},
		{"lookup", []string{`{$match: {n: {$gte: 5000, $lt: 6000}}}`, `{$project: {k: {$add: ["$n", 1]}}}`, `{$lookup: {from: "things", localField: "k", foreignField: "n", as: "next"}}`}, 1000},
		{"count", []string{`{$match: {n: {$gte: 5000, $lt: 6000}}}`, `{$group: {_id: 1, n: {$sum: 1}}}`}, 1},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			began := processorTime()
			for range b.N {
				a, err := db.Aggregate(context.Background(), ns, Aggregate{Stages: docs(x.stages...)})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for more := true; more; {
					if more, err = a.Batch(context.Background(), 1<<30, func(bson.Raw) bool { n++; return true }); err != nil {
						b.Fatal(err)
					}
				}
				if n != x.want {
					b.Fatalf("%d documents, want %d", n, x.want)
				}
			}
			b.ReportMetric(float64(processorTime()-began)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
}
