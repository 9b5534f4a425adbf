package storage

import (
	"errors"
	"time"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// CollID is a collection's number. Collection 0 always exists: it is the caller's, for its catalog. Numbers of collections
// that were dropped and cleared away are used again, so what outlives a snapshot (a client's cursor) must remember
// something of the descriptor as well.
type CollID uint32

// TreeID is a tree's number within its collection, chosen by the caller.
type TreeID uint32

// RecordID is a record's number within its collection: 1, 2, 3 … in the order of insertion, never used twice.
type RecordID uint64

// LSN is a position in the endless log.
type LSN uint64

var (
	// ErrCorrupt is damage to bytes that were durable; the error names the place.
	ErrCorrupt = page.ErrCorrupt
	// ErrFailed: a log write or a sync failed earlier. Reads go on from the last durable state; writes are refused until the
	// database is reopened. For a write that was waiting it means "outcome unknown".
	ErrFailed = errors.New("the database has failed: a write to the disk did not succeed, and it takes no further writes until it is reopened")
	// ErrDiskFull: nothing was changed; reads and deletes go on.
	ErrDiskFull = errors.New("the disk is full")
	// ErrNoRecord: the collection has no record of that number.
	ErrNoRecord = errors.New("no such record")
	// ErrClosed: the database was closed.
	ErrClosed = errors.New("the database is closed")
)

// Options are the sizes of a Store. The zero value is right for production.
type Options struct {
	// SegmentSize is that of a log segment in bytes; 0 means 16 MiB.
	SegmentSize int64
	// BlockSize is the most raw bytes of a log block; 0 means the log's default.
	BlockSize int
	// CheckpointBytes and CheckpointEdits are how much log, raw, and how many edits call for a checkpoint; 0 means 32 MiB
	// and 120 000. Writers wait for a checkpoint when there is twice as much.
	CheckpointBytes int64
	CheckpointEdits int64
	// CheckpointPages is how many pages may be in memory only before a checkpoint is called for; 0 means 16 384 (64 MiB).
	CheckpointPages int64
	// CommitBytes is how much log the open batch may hold before it is committed without anybody waiting for it; 0 means a 32nd
	// of CheckpointBytes, or 4 096.
	CommitBytes int64
	// CleanSlack is dead space in extents, in bytes, that is not worth cleaning; 0 means 1 MiB.
	CleanSlack int64
	// MarkAfter is how long the log must be idle before a mark says that its last batch is durable; 0 means 100 ms.
	MarkAfter time.Duration
	// Reserve is the most space, in pages, that only what frees space may use; 0 means 1 024 (4 MiB). It is 0.5% of the file
	// as long as that is less, and at least 64 pages.
	Reserve int
	// MapReserve is the address range for the data file in bytes; 0 means 1 TiB, or 1 GiB on 32-bit machines.
	MapReserve int64
	// Geometry divides a data file that is made; the zero Geometry means page.DefaultGeometry.
	Geometry page.Geometry
	// Tree is how trees are edited: tests make their pages small.
	Tree btree.Config
	// Manual leaves out the background work: the caller calls Checkpoint, Mark and ClearStep itself. For simulations.
	Manual bool
}

func (o Options) withDefaults() Options {
	or := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	or(&o.SegmentSize, 16<<20)
	or(&o.CheckpointBytes, 32<<20)
	or(&o.CheckpointEdits, 120_000)
	or(&o.CheckpointPages, 16_384)
	or(&o.CommitBytes, max(o.CheckpointBytes/32, 4096))
	or(&o.CleanSlack, 1<<20)
	or(&o.MapReserve, mapReserve)
	if o.MarkAfter == 0 {
		o.MarkAfter = 100 * time.Millisecond
	}
	if o.Reserve == 0 {
		o.Reserve = 1024
	}
	if o.Geometry == (page.Geometry{}) {
		o.Geometry = page.DefaultGeometry
	}
	return o
}

// mapReserve is 1 TiB where addresses have 64 bits, else 1 GiB.
const mapReserve = int64(1) << (30 + 10*(^uint(0)>>63))
