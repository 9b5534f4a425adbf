package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/storage"
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
	if err := ns.Check(); err != nil {
		return nil, err
	}
	q, err := db.parse(&f)
	if err != nil {
		return nil, err
	}
	planner := bson.D{{Key: "namespace", Value: ns.String()}, {Key: "parsedQuery", Value: q.Filter.Raw()}, {Key: "indexFilterSet", Value: false}}
	reply := bson.D{{Key: "explainVersion", Value: "1"}}
	err = db.read(func(sn *storage.Snapshot) error {
		col, sc, err := db.collection(sn, ns)
		if err != nil {
			return err
		}
		if col == nil {
			planner = append(planner, bson.E{Key: "winningPlan", Value: bson.D{{Key: "stage", Value: "EOF"}}}, bson.E{Key: "rejectedPlans", Value: bson.A{}})
			reply = append(reply, bson.E{Key: "queryPlanner", Value: planner})
			return nil
		}
		p, err := query.New(q, col.plan, source{sc}.estimate)
		if err != nil {
			return err
		}
		planner = append(planner, bson.E{Key: "winningPlan", Value: p.Explain(nil)}, bson.E{Key: "rejectedPlans", Value: p.Rejected()})
		reply = append(reply, bson.E{Key: "queryPlanner", Value: planner})
		if v == QueryPlanner {
			return nil
		}
		began := db.env.Clock.Monotonic()
		r := p.Start()
		r.Attach(source{sc}, db.tick(ctx))
		for r.Next() {
		}
		reply = append(reply, bson.E{Key: "executionStats", Value: bson.D{
			{Key: "executionSuccess", Value: r.Err() == nil},
			{Key: "nReturned", Value: r.Returned()},
			{Key: "executionTimeMillis", Value: (db.env.Clock.Monotonic() - began).Milliseconds()},
			{Key: "totalKeysExamined", Value: r.KeysExamined()},
			{Key: "totalDocsExamined", Value: r.DocsExamined()},
			{Key: "executionStages", Value: p.Explain(r)},
		}})
		return r.Err()
	})
	if err != nil {
		return nil, err
	}
	return bson.Marshal(reply)
}
