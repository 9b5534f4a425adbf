package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Find is a query.
type Find struct {
	Filter     bson.Raw // nil is {}
	Sort       bson.Raw
	Projection bson.Raw
	Hint       bson.RawValue // zero, an index's name, or its key pattern
	Skip       int64
	Limit      int64 // 0 is none
	Collation  bson.Raw
	// ShowRecordID adds the field $recordId.
	ShowRecordID bool
}

// Cursor is a query under way. Between batches it holds a position and no snapshot, so it keeps nothing from being reused
// and needs no closing. It belongs to one goroutine at a time.
type Cursor struct{ _ int }

// Find plans the query and answers with a cursor before its first document. A collection that does not exist is an empty
// one.
func (db *DB) Find(ctx context.Context, ns Namespace, f Find) (*Cursor, error) {
	panic("not built yet")
}

// Batch calls emit with the next documents, from one snapshot: until emit says stop, or docs documents were emitted, or
// there are no more. The documents die when emit returns. emit answers false if it could not take the document, which
// is then the first of the next batch.
//
// more is false once the last document was emitted. It may be true though no document is left: the next batch is then
// empty, as MongoDB's is.
func (c *Cursor) Batch(ctx context.Context, docs int, emit func(doc bson.Raw) bool) (more bool, err error) {
	panic("not built yet")
}

// Namespace is what the cursor reads.
func (c *Cursor) Namespace() Namespace { panic("not built yet") }

// Count is a query that counts.
type Count struct {
	Filter    bson.Raw
	Hint      bson.RawValue
	Skip      int64
	Limit     int64
	Collation bson.Raw
}

// Count runs c. Without a filter it is answered from the collection's head.
func (db *DB) Count(ctx context.Context, ns Namespace, c Count) (int64, error) {
	panic("not built yet")
}

// Distinct is a query for the values of one path.
type Distinct struct {
	Key       string
	Filter    bson.Raw
	Hint      bson.RawValue
	Collation bson.Raw
}

// Distinct answers with an array of the values, in their canonical order.
func (db *DB) Distinct(ctx context.Context, ns Namespace, d Distinct) (bson.RawArray, error) {
	panic("not built yet")
}

// Verbosity says how much Explain tells.
type Verbosity int

const (
	QueryPlanner Verbosity = iota
	ExecutionStats
	AllPlansExecution
)

// Explain answers with the fields explainVersion, queryPlanner and, if v asks for it, executionStats.
func (db *DB) Explain(ctx context.Context, ns Namespace, f Find, v Verbosity) (bson.Raw, error) {
	panic("not built yet")
}
