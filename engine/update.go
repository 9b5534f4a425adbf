package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Update is one update statement.
type Update struct {
	Filter       bson.Raw
	Update       bson.RawValue // a document of operators, a replacement, or (an array) a pipeline
	ArrayFilters []bson.Raw
	Multi        bool
	Upsert       bool
	Hint         bson.RawValue // zero, an index's name, or its key pattern
	Collation    bson.Raw
}

// UpdateResult sums up the statements. N in MongoDB's reply is Matched + len(Upserted).
type UpdateResult struct {
	Matched  int
	Modified int
	Upserted []Upserted
	Errors   []WriteError
}

// Upserted is a document that a statement inserted.
type Upserted struct {
	Index int
	ID    bson.RawValue
}

// Update runs the statements in order. Each document that a statement changes is a unit of its own.
func (db *DB) Update(ctx context.Context, ns Namespace, statements []Update, ordered bool) (UpdateResult, error) {
	panic("not built yet")
}

// FindAndModify changes or removes one document, and gives it back as it was or as it became.
type FindAndModify struct {
	Filter       bson.Raw
	Sort         bson.Raw
	Projection   bson.Raw
	Update       bson.RawValue // zero if Remove
	ArrayFilters []bson.Raw
	Remove       bool
	New          bool // give the document as it became
	Upsert       bool
	Hint         bson.RawValue
	Collation    bson.Raw
}

// FindAndModifyResult is what MongoDB's reply is made of.
type FindAndModifyResult struct {
	Value    bson.Raw // nil if there was no such document
	Matched  bool     // lastErrorObject.updatedExisting, and n for a removal
	Upserted *bson.RawValue
}

// FindAndModify runs f.
func (db *DB) FindAndModify(ctx context.Context, ns Namespace, f FindAndModify) (FindAndModifyResult, error) {
	panic("not built yet")
}
