package engine

import (
	"context"
	"time"
)

// CollStats are a collection's figures. Sizes are bytes.
type CollStats struct {
	Count       int64
	Size        int64 // of the documents
	StorageSize int64 // of the pages that hold them
	IndexSizes  []IndexSize
}

// IndexSize is one index's part in CollStats.
type IndexSize struct {
	Name string
	Size int64
}

// CollStats answers for one collection; a collection that does not exist has zeros.
func (db *DB) CollStats(ctx context.Context, ns Namespace) (CollStats, error) {
	panic("not built yet")
}

// DBStats are a database's figures. Sizes are bytes.
type DBStats struct {
	Collections, Indexes, Objects    int64
	DataSize, StorageSize, IndexSize int64
}

// DBStats answers for one database; one that does not exist has zeros.
func (db *DB) DBStats(ctx context.Context, database string) (DBStats, error) {
	panic("not built yet")
}

// SweepTTL removes documents that have expired at now: one bounded step. It tells how many, and whether there may be more.
func (db *DB) SweepTTL(ctx context.Context, now time.Time) (removed int, more bool, err error) {
	panic("not built yet")
}
