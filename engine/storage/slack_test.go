package storage

import (
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/simfs"
)

// An extent is closed when the next record does not fit, and its empty end was kept in memory, with the memory of the whole
// extent, until the database was closed. A checkpoint leaves nothing but what open extents can still take.
func TestCheckpointLeavesOpenExtentsOnly(t *testing.T) {
	s, err := Open(simfs.Memory(), testDir, Options{Manual: true, MapReserve: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 0))
	write := func(f func(w *Writer) error) {
		t.Helper()
		c, err := s.Write(f)
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(func(w *Writer) error {
		w.Lock(0)
		_, err := w.Create(nil)
		return err
	})
	for range 5 {
		for range 30 {
			write(func(w *Writer) error {
				_, err := w.Lock(1).Insert(make([]byte, 10_000+r.IntN(200_000)))
				return err
			})
		}
		if err := s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		open := s.coll(1).head.Load().open
		if n, empty := s.Stats().FramePages, int64(open.run.Count-open.fill/4096); n > empty {
			t.Errorf("%d pages in memory, and the open extent has %d empty ones", n, empty)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// The empty pages of a large open extent alone were more than a checkpoint was called for by, so that one followed the other
// without an end, and writers waited for ever. (Found by a simulated history; in production it took some hundred collections.)
func TestOpenExtentsCallForNoCheckpoint(t *testing.T) {
	s, err := Open(simfs.Memory(), testDir, Options{CheckpointPages: 20, MapReserve: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := s.Write(func(w *Writer) error {
			c := w.Lock(1)
			if c == nil {
				w.Lock(0)
				var err error
				if c, err = w.Create(nil); err != nil {
					return err
				}
			}
			for range 20 {
				if _, err := c.Insert(make([]byte, 20_000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
