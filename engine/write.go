package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// WriteError is one statement's failure: its position in the command, and an error that mongoerr understands.
type WriteError struct {
	Index int
	Err   error
}

// InsertResult tells how many documents are in, and which were refused. If the insert was ordered there is at most one
// error, and no later document was tried.
type InsertResult struct {
	N      int
	Errors []WriteError
}

// Insert adds documents, and makes the collection if there is none. A document without _id gets an ObjectID; _id is moved
// to the front. The error is one of the whole command (bad namespace, storage failed): what InsertResult says has happened
// nevertheless, unless the error says that the outcome is unknown.
//
// The documents are not kept.
func (db *DB) Insert(ctx context.Context, ns Namespace, docs []bson.Raw, ordered bool) (InsertResult, error) {
	panic("not built yet")
}

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

// Delete is one delete statement.
type Delete struct {
	Filter    bson.Raw
	Multi     bool // limit 0; otherwise one document at most
	Hint      bson.RawValue
	Collation bson.Raw
}

// DeleteResult sums up the statements.
type DeleteResult struct {
	N      int
	Errors []WriteError
}

// Delete runs the statements in order.
func (db *DB) Delete(ctx context.Context, ns Namespace, statements []Delete, ordered bool) (DeleteResult, error) {
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
