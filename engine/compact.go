package engine

import "context"

// Compact makes the data file as small as it can be, for the whole database, while reads and writes go on: records and pages move to
// the front of the file, and the space behind them goes back to the file system. freed is in bytes.
func (db *DB) Compact(ctx context.Context, ns Namespace) (freed int64, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	if _, err := db.ListIndexes(ctx, ns); err != nil { // there is such a collection
		return 0, err
	}
	freed, err = db.store.Compact(ctx.Err)
	return max(0, freed), clientError(err)
}
