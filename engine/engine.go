package engine

import (
	"log/slog"
	"time"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// Options say how a database is opened. The zero value is a sensible one.
type Options struct {
	// Env is the outside; nil is the real one.
	Env *env.Env
	// Logger takes what the background jobs have to say; nil discards it.
	Logger *slog.Logger
	// TTLSweep is the time between two sweeps for expired documents: 0 is a minute, and a negative value turns the loop off
	// (SweepTTL still works).
	TTLSweep time.Duration
	// SortMemory bounds what one sort may keep in memory, in bytes: 0 is 100 MiB.
	SortMemory int
	// Storage is passed on to the storage column.
	Storage storage.Options
}

// DB is an open database: all the databases, in MongoDB's sense, of one directory. Its methods may be called from many
// goroutines at once.
type DB struct{ _ int }

// Open opens the database in dir, and creates it if there is none.
func Open(dir string, o Options) (*DB, error) { panic("not built yet") }

// Close waits for calls under way, publishes a checkpoint and closes. Calls that come later answer with an error.
func (db *DB) Close() error { panic("not built yet") }
