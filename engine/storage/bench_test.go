package storage

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// benchStore opens a Store with one collection that has two trees.
func benchStore(b *testing.B, e *env.Env, dir string) *Store {
	s, err := Open(e, dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := s.Write(func(w *Writer) error {
		w.Lock(0)
		c, err := w.Create([]byte("bench"))
		if err != nil {
			return err
		}
		return errors.Join(c.CreateTree(1), c.CreateTree(2))
	})
	if err := errors.Join(err, c.Wait()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// insertSome stores n records of size bytes in one write, with an ascending and a scattered key for each.
func insertSome(s *Store, at *atomic.Uint64, n int, record []byte) error {
	c, err := s.Write(func(w *Writer) error {
		c := w.Lock(1)
		for range n {
			if _, err := c.Insert(record); err != nil {
				return err
			}
			k := at.Add(1)
			if err := c.Put(1, binary.BigEndian.AppendUint64(nil, k), record[:8]); err != nil {
				return err
			}
			if err := c.Put(2, binary.BigEndian.AppendUint64(nil, k*0x9E3779B97F4A7C15), nil); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, c.Wait())
}

func benchInsert(b *testing.B, e *env.Env, dir string, perWrite, size, clients int) {
	s := benchStore(b, e, dir)
	var at atomic.Uint64
	record := make([]byte, size)
	b.SetBytes(int64(perWrite * size))
	b.SetParallelism(clients)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := insertSome(s, &at, perWrite, record); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(s.stats.writes.Load())/float64(s.stats.batches.Load()), "writes/sync")
}

// Durable writes to a disk in memory: what the engine itself costs.
func BenchmarkInsertMemory(b *testing.B)     { benchInsert(b, simfs.Memory(), "/db", 1, 200, 1) }
func BenchmarkInsertMemoryBulk(b *testing.B) { benchInsert(b, simfs.Memory(), "/db", 100, 200, 1) }

// Durable writes to this machine's disk, by 2 and by 64 clients on 2 processors.
func BenchmarkInsertDisk(b *testing.B)     { benchInsert(b, env.Real(), b.TempDir(), 1, 200, 1) }
func BenchmarkInsertDiskMany(b *testing.B) { benchInsert(b, env.Real(), b.TempDir(), 1, 200, 32) }
func BenchmarkInsertDiskBulk(b *testing.B) { benchInsert(b, env.Real(), b.TempDir(), 64, 16<<10, 1) }

func BenchmarkRecord(b *testing.B) {
	s := benchStore(b, simfs.Memory(), "/db")
	var at atomic.Uint64
	for range 1000 {
		if err := insertSome(s, &at, 100, make([]byte, 1000)); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Checkpoint(); err != nil {
		b.Fatal(err)
	}
	sn := s.Snapshot()
	defer sn.Release()
	c := sn.Collection(1)
	b.ReportAllocs()
	b.ResetTimer()
	id := uint64(0)
	for b.Loop() {
		id = id*1103515245 + 12345
		if _, err := c.Record(RecordID(1 + id>>16%100_000)); err != nil {
			b.Fatal(err)
		}
	}
}
