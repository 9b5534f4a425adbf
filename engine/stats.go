package engine

import (
	"context"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// CollStats are a collection's figures. Sizes are bytes.
type CollStats struct {
	Count       int64
	Size        int64 // of the documents
	StorageSize int64 // of what holds them
	IndexSizes  []IndexSize

	Capped       bool
	Max, MaxSize int64 // of a capped collection; a Max of 0 is none
}

// IndexSize is one index's part in CollStats.
type IndexSize struct {
	Name string
	Size int64
}

func statsOf(c *collection, sc *storage.Collection) CollStats {
	s := CollStats{Count: int64(sc.Count()), Size: int64(sc.Bytes()), StorageSize: int64(sc.Bytes())}
	s.Capped, s.Max, s.MaxSize = c.def.Options.Capped, c.def.Options.Max, c.def.Options.Size
	for i := range c.def.Indexes {
		x := &c.def.Indexes[i]
		if t, ok := sc.Tree(x.Tree); ok {
			s.IndexSizes = append(s.IndexSizes, IndexSize{x.Name, int64(t.Head.Pages) * page.Size})
		}
	}
	return s
}

// CollStats answers for one collection; a collection that does not exist has zeros.
func (db *DB) CollStats(ctx context.Context, ns Namespace) (CollStats, error) {
	if err := ns.Check(); err != nil {
		return CollStats{}, err
	}
	var out CollStats
	err := db.read(func(sn *storage.Snapshot) error {
		c, sc, err := db.collection(sn, ns)
		switch {
		case err != nil || c == nil:
			return err
		case c.def.Options.IsView():
			return onView(ns)
		}
		out = statsOf(c, sc)
		return nil
	})
	return out, err
}

// DBStats are a database's figures. Sizes are bytes.
type DBStats struct {
	Collections, Views               int64
	Indexes, Objects                 int64
	DataSize, StorageSize, IndexSize int64
}

// DBStats answers for one database; one that does not exist has zeros.
func (db *DB) DBStats(ctx context.Context, database string) (DBStats, error) {
	var out DBStats
	err := db.each(database, func(c *collection, sc *storage.Collection) error {
		if c.def.Options.IsView() {
			out.Views++
			return ctx.Err()
		}
		s := statsOf(c, sc)
		out.Collections++
		out.Indexes += int64(len(s.IndexSizes))
		out.Objects += s.Count
		out.DataSize += s.Size
		out.StorageSize += s.StorageSize
		for _, x := range s.IndexSizes {
			out.IndexSize += x.Size
		}
		return ctx.Err()
	})
	return out, err
}
