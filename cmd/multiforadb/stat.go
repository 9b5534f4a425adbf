package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/multiforadb/multiforadb/engine"
)

// stat tells what a database is made of.
type stat struct{ directory }

// Run prints it.
func (c *stat) Run(out output) error {
	if err := exists(c.DB); err != nil {
		return err
	}
	db, err := open(c.DB)
	if err != nil {
		return err
	}
	defer db.Close()
	w := tabwriter.NewWriter(out.stdout, 0, 8, 2, ' ', 0)
	s := db.Store().Stats()
	ratio := 0.0
	if s.LiveBytes > 0 {
		ratio = float64(s.FileBytes) / float64(s.LiveBytes)
	}
	fmt.Fprintf(w, "data file\t%s\n", size(s.FileBytes))
	fmt.Fprintf(w, "live bytes\t%s\tthe file is %.3f times that\n", size(int64(s.LiveBytes)), ratio)
	fmt.Fprintf(w, "records\t%d\tin %d collections\n", s.Records, s.Collections)
	fmt.Fprintf(w, "pages used\t%s\n", size(s.UsedBytes))
	fmt.Fprintf(w, "pages pending\t%s\tfree after a checkpoint or two\n", size(s.PendingBytes))
	fmt.Fprintf(w, "pages free\t%s\n", size(s.FreeBytes))
	fmt.Fprintf(w, "log files\t%s\n", size(s.LogBytes))
	fmt.Fprintf(w, "durable LSN\t%d\n", s.DurableLSN)
	fmt.Fprintf(w, "checkpoint LSN\t%d\n", s.CheckpointLSN)
	if err := collections(w, db); err != nil {
		return err
	}
	return w.Flush()
}

// collections lists the collections with their indexes.
func collections(w *tabwriter.Writer, db *engine.DB) error {
	ctx := context.Background()
	dbs, err := db.ListDatabases(ctx)
	if err != nil {
		return err
	}
	for _, d := range dbs {
		infos, err := db.ListCollections(ctx, d.Name)
		if err != nil {
			return err
		}
		for _, info := range infos {
			ns := engine.Namespace{DB: d.Name, Coll: info.Name}
			s, err := db.CollStats(ctx, ns)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\t%s\t%d documents in %s\n", ns, size(s.Size), s.Count, size(s.StorageSize))
			for _, x := range s.IndexSizes {
				fmt.Fprintf(w, "  %s\t%s\n", x.Name, size(x.Size))
			}
		}
	}
	return nil
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 10<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
