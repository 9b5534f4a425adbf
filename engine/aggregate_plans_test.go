package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// TestAggregationPlansAgree runs random pipelines with each usable index and with none: what their fronts leave to the planner, and what
// an index may give instead of documents, changes no result.
func TestAggregationPlansAgree(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 3
	}
	for range seeds {
		seed := rand.Uint64()
		g := generator{Rand: rand.New(rand.NewPCG(seed, 9)), flat: true}
		db := open(t)
		ctx := context.Background()
		for i := range 6 {
			db.CreateIndexes(ctx, ns, docs(g.index(i)))
		}
		for i := range 60 + g.IntN(60) {
			if _, err := db.Insert(ctx, ns, docs(g.document(i)), false); err != nil {
				t.Fatal(err)
			}
		}
		indexes, err := db.ListIndexes(ctx, ns)
		if err != nil {
			t.Fatal(err)
		}
		for range 80 {
			stages := []string{"{$match: " + g.filter(1) + "}"}
			if g.IntN(4) == 0 {
				stages = nil
			}
			p, q := g.path(), g.path()
			switch g.IntN(7) {
			case 0:
				stages = append(stages, fmt.Sprintf(`{$group: {_id: {t: {$type: "$%s"}, e: {$eq: ["$%s", "$%s"]}}, n: {$sum: 1}}}`, p, p, q))
			case 1:
				stages = append(stages, fmt.Sprintf(`{$group: {_id: {$type: "$%s"}, n: {$sum: {$cond: [{$gt: ["$%s", 1]}, 1, 0]}}, m: {$max: {$type: "$%s"}}}}`, p, q, q))
			case 2:
				stages = append(stages, fmt.Sprintf(`{$project: {_id: %s, %q: 1, z: {$type: "$%s"}}}`, g.pick("0", "1"), p, q))
			case 3:
				stages = append(stages, `{$count: "n"}`)
			case 4:
				stages = append(stages, fmt.Sprintf(`{$sort: {%q: 1, _id: 1}}`, p), fmt.Sprintf(`{$group: {_id: null, first: {$first: {$type: "$%s"}}, last: {$last: "$_id"}}}`, p))
			case 5:
				stages = append(stages, fmt.Sprintf(`{$group: {_id: "$%s"}}`, p), `{$group: {_id: {$cond: [{$isNumber: "$_id"}, "number", {$type: "$_id"}]}, n: {$sum: 1}}}`)
			default:
				stages = append(stages, fmt.Sprintf(`{$sort: {%q: %s}}`, p, g.pick("1", "-1")), fmt.Sprintf(`{$group: {_id: "$%s", x: {$first: "$%s"}}}`, p, p),
					`{$group: {_id: {$cond: [{$isNumber: "$x"}, "number", {$type: "$x"}]}, n: {$sum: 1}}}`)
			}
			result := func(hint bson.RawValue) (string, error) {
				a, err := db.Aggregate(ctx, ns, Aggregate{Stages: docs(stages...), Hint: hint})
				if err != nil {
					return "", err
				}
				var b strings.Builder
				_, err = a.Batch(ctx, 1<<30, func(d bson.Raw) bool {
					b.WriteString(value.Text(value.Document(d)) + "\n")
					return true
				})
				return sortLines(sortFields(b.String())), err
			}
			want, err := result(value.Document(doc(`{$natural: 1}`)))
			if err != nil {
				continue // a sort by parallel arrays, say
			}
			hints := []bson.RawValue{{}}
			for _, x := range indexes {
				if sparse, _ := x.Lookup("sparse").BooleanOK(); !sparse {
					hints = append(hints, x.Lookup("name"))
				}
			}
			for _, hint := range hints {
				got, err := result(hint)
				if mongoerr.Is(err, mongoerr.NoQueryExecutionPlans) {
					continue
				}
				if err != nil || got != want {
					t.Fatalf("seed %d: %v, hint %v, %v:\n%s", seed, stages, hint, err, lineDiff(want, got))
				}
			}
		}
	}
}

// TestGroupsByIndex holds that groups that their first documents decide are found by jumping from value to value in an index.
func TestGroupsByIndex(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {k: 1, b: -1}, name: "kb"}`)
	for i := range 1000 {
		insert(t, db, fmt.Sprintf("{k: %d, b: %d, c: 1}", i%5, i))
	}
	for _, c := range []struct {
		stages     []string
		scan, want string
		keys, docs int64
	}{
		{[]string{`{$group: {_id: "$k"}}`, `{$sort: {_id: 1}}`}, "DISTINCT_SCAN", "{_id: 0} {_id: 1} {_id: 2} {_id: 3} {_id: 4}", 10, 0},
		{[]string{`{$sort: {k: 1, b: -1}}`, `{$group: {_id: "$k", b: {$first: "$b"}}}`, `{$match: {_id: {$gt: 2}}}`}, "DISTINCT_SCAN", "{_id: 3, b: 998} {_id: 4, b: 999}", 5, 0},
		{[]string{`{$sort: {k: -1, b: 1}}`, `{$group: {_id: "$k", c: {$first: "$c"}, b: {$first: "$b"}}}`, `{$match: {b: {$lt: 2}}}`}, "DISTINCT_SCAN", "{_id: 1, c: 1, b: 1} {_id: 0, c: 1, b: 0}", 10, 5},
		{[]string{`{$sort: {k: 1, b: -1}}`, `{$group: {_id: "$k", b: {$last: "$b"}}}`, `{$match: {_id: 3}}`}, "IXSCAN", "{_id: 3, b: 3}", 201, 0},
	} {
		got := strings.TrimSpace(strings.ReplaceAll(results(t, aggregate(t, db, c.stages...), 100), "\n", " "))
		if got != c.want {
			t.Errorf("%v: %s", c.stages, got)
		}
		plan, err := db.ExplainAggregate(context.Background(), ns, Aggregate{Stages: docs(c.stages...)}, ExecutionStats)
		if err != nil {
			t.Fatal(err)
		}
		text := value.Text(value.Document(plan))
		if !strings.Contains(text, c.scan) {
			t.Errorf("%v: no %s: %s", c.stages, c.scan, text)
		}
		front := plan.Lookup("stages", "0", "$cursor", "executionStats")
		keys, read := front.Document().Lookup("totalKeysExamined").AsInt64(), front.Document().Lookup("totalDocsExamined").AsInt64()
		if keys > c.keys || read > c.docs {
			t.Errorf("%v: %d keys and %d documents were examined, and %d and %d would do", c.stages, keys, read, c.keys, c.docs)
		}
		if n := plan.Lookup("stages", "1", "nReturned").AsInt64(); n == 0 || n > 5 {
			t.Errorf("%v: %d groups", c.stages, n)
		}
	}
}
