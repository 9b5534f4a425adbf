package engine

import (
	"context"
)

// compactSteps is how many steps of cleaning there are from one checkpoint to the next, which lets go of what they emptied.
const compactSteps = 1000

// Compact moves records together until nothing is worth it any more, and publishes that, so that the space is free for whatever
// comes. It does so for the whole database, while reads and writes go on; the file keeps its size. freed is in bytes.
func (db *DB) Compact(ctx context.Context, ns Namespace) (freed int64, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	if _, err := db.ListIndexes(ctx, ns); err != nil { // there is such a collection
		return 0, err
	}
	before := db.store.Stats()
	// Only what a checkpoint has written is cleaned.
	if err := db.store.Checkpoint(); err != nil {
		return 0, clientError(err)
	}
	for step := 1; ; step++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		more, err := db.store.CleanStep()
		if err != nil {
			return 0, clientError(err)
		}
		// Others may delete as fast as this cleans: each byte is moved once.
		more = more && db.store.Stats().CleanedBytes-before.CleanedBytes <= before.ExtentBytes
		if !more || step%compactSteps == 0 {
			if err := db.store.Checkpoint(); err != nil {
				return 0, clientError(err)
			}
		}
		if !more {
			break
		}
	}
	// What only the meta page before reaches is free after one more.
	if err := db.store.Checkpoint(); err != nil {
		return 0, clientError(err)
	}
	after := db.store.Stats()
	return max(0, before.ExtentBytes-after.ExtentBytes), nil
}
