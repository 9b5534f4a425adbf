package engine

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Verbosity says how much Explain tells.
type Verbosity int

const (
	QueryPlanner Verbosity = iota
	ExecutionStats
	AllPlansExecution
)

// Explain answers with the fields explainVersion, queryPlanner and, if v asks for it, executionStats.
func (db *DB) Explain(ctx context.Context, ns Namespace, f Find, v Verbosity) (bson.Raw, error) {
	return db.ExplainOver(ctx, ns, f, v, "")
}

// ExplainOver is Explain for a command that does something with what the query finds: over is its stage (COUNT, UPDATE, DELETE, …).
// It only reads.
func (db *DB) ExplainOver(ctx context.Context, ns Namespace, f Find, v Verbosity, over string) (bson.Raw, error) {
	if err := ns.Check(); err != nil {
		return nil, err
	}
	in, err := db.terms(ctx, ns, f.Let, f.Collation)
	if OnView(err) && (over == "" || over == "COUNT" || over == "DISTINCT") {
		a, err := f.aggregate()
		if err != nil {
			return nil, err
		}
		return db.ExplainAggregate(ctx, ns, a, v)
	}
	if err != nil {
		return nil, err
	}
	q, err := db.parse(in, &f)
	if err != nil {
		return nil, err
	}
	reply, err := db.explain(ctx, ns, q, v, over)
	if err != nil {
		return nil, err
	}
	return bson.Marshal(reply)
}

// ExplainAggregate is Explain for a pipeline. If there are stages behind the find that it begins with, they are told as they are run,
// behind a stage $cursor, with the number of documents that each gives if v asks for it. A pipeline that writes is not executed.
func (db *DB) ExplainAggregate(ctx context.Context, ns Namespace, a Aggregate, v Verbosity) (bson.Raw, error) {
	r, err := db.aggregation(ctx, ns, a)
	if err != nil {
		return nil, err
	}
	stages := bson.A{}
	if r.pipe.NeedsSource() {
		reply, err := db.explain(ctx, ns, r.query, v, "")
		if err != nil {
			return nil, err
		}
		if r.find {
			return bson.Marshal(reply)
		}
		stages = append(stages, bson.D{{Key: "$cursor", Value: reply[1:]}})
	}
	list := r.pipe.Stages()
	if _, writes := r.pipe.Writes(); v > QueryPlanner && !writes {
		r.each = make([]int64, len(list))
		if err := r.drain(ctx); err != nil {
			return nil, err
		}
	}
	for i, s := range list {
		if r.each != nil {
			s = appendField(clone(s), "nReturned", value.Int64(r.each[i]))
		}
		stages = append(stages, s)
	}
	return bson.Marshal(bson.D{{Key: "explainVersion", Value: "1"}, {Key: "stages", Value: stages}})
}

// explain explains a query. over names the stage that does something with what it finds, if there is one.
func (db *DB) explain(ctx context.Context, ns Namespace, q query.Query, v Verbosity, over string) (bson.D, error) {
	wrap := func(plan bson.D) bson.D {
		if over == "" {
			return plan
		}
		return bson.D{{Key: "stage", Value: over}, {Key: "inputStage", Value: plan}}
	}
	count := over == "COUNT"
	q.OnlyIDs = q.OnlyIDs || count
	planner := bson.D{{Key: "namespace", Value: ns.String()}, {Key: "parsedQuery", Value: q.Filter.Raw()}, {Key: "indexFilterSet", Value: false}}
	reply := bson.D{{Key: "explainVersion", Value: "1"}}
	err := db.read(func(sn *storage.Snapshot) error {
		col, sc, err := db.collection(sn, ns)
		if err != nil {
			return err
		}
		if col == nil {
			planner = append(planner, bson.E{Key: "winningPlan", Value: wrap(bson.D{{Key: "stage", Value: "EOF"}})}, bson.E{Key: "rejectedPlans", Value: bson.A{}})
			reply = append(reply, bson.E{Key: "queryPlanner", Value: planner})
			return nil
		}
		if count && q.Filter.All() && q.Hint.Type == 0 { // as Count does it
			fast := bson.D{{Key: "stage", Value: "RECORD_STORE_FAST_COUNT"}}
			planner = append(planner, bson.E{Key: "winningPlan", Value: fast}, bson.E{Key: "rejectedPlans", Value: bson.A{}})
			if reply = append(reply, bson.E{Key: "queryPlanner", Value: planner}); v > QueryPlanner {
				reply = append(reply, executed(true, 0, 0, 0, 0, fast, v))
			}
			return nil
		}
		p, err := query.New(q, col.plan, source{sc}, &col.choices)
		if err != nil {
			return err
		}
		planner = append(planner, bson.E{Key: "winningPlan", Value: wrap(p.Explain(nil))}, bson.E{Key: "rejectedPlans", Value: p.Rejected()})
		reply = append(reply, bson.E{Key: "queryPlanner", Value: planner})
		if v == QueryPlanner {
			return nil
		}
		began := db.env.Clock.Monotonic()
		r := p.Start()
		defer r.Close()
		r.Attach(source{sc}, db.tick(ctx))
		for r.Next() {
		}
		returned := r.Returned()
		if over != "" && over != "DISTINCT" { // no documents come out of a count or a change
			returned = 0
		}
		reply = append(reply, executed(r.Err() == nil, returned, db.env.Clock.Monotonic()-began, r.KeysExamined(), r.DocsExamined(), wrap(p.Explain(r)), v))
		return r.Err()
	})
	return reply, err
}

// executed is the field executionStats.
func executed(ok bool, returned int64, took time.Duration, keys, docs int, stages bson.D, v Verbosity) bson.E {
	d := bson.D{
		{Key: "executionSuccess", Value: ok},
		{Key: "nReturned", Value: returned},
		{Key: "executionTimeMillis", Value: took.Milliseconds()},
		{Key: "totalKeysExamined", Value: keys},
		{Key: "totalDocsExamined", Value: docs},
		{Key: "executionStages", Value: stages},
	}
	if v == AllPlansExecution { // those that were not taken were not executed
		d = append(d, bson.E{Key: "allPlansExecution", Value: bson.A{}})
	}
	return bson.E{Key: "executionStats", Value: d}
}
