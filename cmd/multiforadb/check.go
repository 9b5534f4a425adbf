package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// check proves that a database is sound: the storage column's invariants first (of what the newest checkpoint
// published, and of what recovery makes of it and the log), then that names, documents and index entries fit each other.
type check struct{ directory }

// Run prints each fault, or a summary.
func (c *check) Run(out output) error {
	if err := exists(c.DB); err != nil {
		return err
	}
	r, err := storage.CheckDir(env.Real(), c.DB, storage.Options{})
	if err != nil {
		return fmt.Errorf("cannot open the database in %s: %w", c.DB, err)
	}
	faults := len(r.Faults)
	for _, f := range r.Faults {
		fmt.Fprintln(out.stdout, "fault:", f)
	}
	// Documents are only worth a look if the bytes that hold them are sound.
	if faults == 0 {
		if faults, err = c.documents(out); err != nil {
			return err
		}
	}
	fmt.Fprintf(out.stdout, "%d collections, %d records of %s, %d trees with %d keys, %d pages in trees, %d in extents\n",
		r.Collections, r.Records, size(int64(r.RecordBytes)), r.Trees, r.Keys, r.TreePages, r.ExtentPages)
	if faults > 0 {
		fmt.Fprintf(out.stdout, "DAMAGED: %d faults\n", faults)
		return errFaults
	}
	fmt.Fprintln(out.stdout, "sound")
	return nil
}

// documents runs the engine's half of the check.
func (c *check) documents(out output) (faults int, err error) {
	db, err := open(c.DB)
	if err != nil {
		return 0, err
	}
	err = db.Check(context.Background(), func(f error) {
		faults++
		fmt.Fprintln(out.stdout, "fault:", f)
	})
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	return faults, err
}

// open opens a database for a tool: no job runs beside it.
func open(dir string) (*engine.DB, error) {
	db, err := engine.Open(dir, engine.Options{TTLSweep: -1, Storage: storage.Options{Manual: true}})
	if err != nil {
		return nil, fmt.Errorf("cannot open the database in %s: %w", dir, err)
	}
	return db, nil
}

// exists keeps a tool from making a new database where there is none.
func exists(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		return fmt.Errorf("no database in %s: %w", dir, err)
	}
	return nil
}
