package storage_test

import "github.com/multiforadb/multiforadb/engine/storage"

// first and count are the seeds of a run: one if it was asked for, else n, or more in a long run.
func first() uint64 {
	if s := storage.Seed(); s != 0 {
		return s
	}
	return storage.From()
}

func count(n int) uint64 {
	if storage.Seed() != 0 {
		return 1
	}
	return uint64(max(n*storage.Seeds()/8, 1))
}
