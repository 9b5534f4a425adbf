package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Explain answers with the fields explainVersion, queryPlanner and, if v asks for it, executionStats.
func (db *DB) Explain(ctx context.Context, ns Namespace, f Find, v Verbosity) (bson.Raw, error) {
	panic("not built yet")
}
