package wal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// A commit of one small document, and beside it the least that the disk takes for it.
func BenchmarkAppendSync(b *testing.B) {
	b.Run("raw pwrite and fdatasync of 4 KiB", func(b *testing.B) {
		e := realEnv(b)
		must(b, e.FS.Mkdir(dir))
		f, err := e.FS.Open(dir+"/raw", env.OpenCreate)
		must(b, err)
		defer f.Close()
		const size = 16 << 20
		_, err = f.WriteAt(make([]byte, size), 0)
		must(b, err)
		must(b, f.Datasync())
		page := make([]byte, unit)
		for i := range b.N {
			_, err := f.WriteAt(page, int64(i)*unit%size)
			must(b, err)
			must(b, f.Datasync())
		}
	})
	for _, size := range []int{1 << 10, 16 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("batch of %d KiB", size>>10), func(b *testing.B) {
			r, err := newRig(realEnv(b), Options{})
			must(b, err)
			defer r.log.Close()
			must(b, r.log.Prepare(r.o.withDefaults().SegmentSize))
			batch := [][]byte{AppendRecordPut(nil, 1, 1, random(size))}
			b.SetBytes(int64(size))
			b.ResetTimer()
			for i := range b.N {
				end, err := r.log.Append(batch, 0)
				must(b, err)
				must(b, r.log.Sync())
				if i%(16<<20/size) == 0 {
					must(b, r.log.Release(end))
				}
			}
		})
	}
}

// The log's own work, without a disk: compression, checksums, layout.
func BenchmarkBuild(b *testing.B) {
	const size = 1 << 20
	text := make([]byte, 0, size)
	for i := 0; len(text) < size; i++ {
		text = fmt.Appendf(text, `{"_id":%d,"name":"user %d","email":"u%d@example.org","visits":%d}`, i, i*7, i*7, i%13)
	}
	for _, c := range []struct {
		name string
		data []byte
	}{{"documents", text[:size]}, {"random", random(size)}} {
		b.Run(c.name, func(b *testing.B) {
			r, err := newRig(simfs.Memory(), Options{})
			must(b, err)
			defer r.log.Close()
			b.SetBytes(size)
			b.ReportAllocs()
			var w *builder
			for range b.N {
				w = r.log.builder([][]byte{c.data}, 0)
				for !w.block() {
				}
				r.log.out = w.out
			}
			b.ReportMetric(float64(len(w.out))/size, "stored/raw")
		})
	}
}

// What a start costs: reading, checking and replaying the log of two checkpoints.
func BenchmarkRecover(b *testing.B) {
	e := realEnv(b)
	r, err := newRig(e, Options{})
	must(b, err)
	const total = 48 << 20
	batch := [][]byte{AppendRecordPut(nil, 1, 1, random(16<<10))}
	for range total / (16 << 10) {
		_, err := r.log.Append(batch, 0)
		must(b, err)
	}
	must(b, r.log.Sync())
	must(b, r.log.Close())
	b.SetBytes(total)
	b.ResetTimer()
	for range b.N {
		l, err := Open(e, dir, Options{})
		must(b, err)
		_, err = l.Recover(0, 0)
		must(b, err)
		n := 0
		must(b, l.Replay(0, func(_ LSN, _ bool, records []byte) error {
			n += len(records)
			return nil
		}))
		if n < total {
			b.Fatal(n)
		}
		must(b, l.Close())
	}
}

func random(n int) []byte {
	rnd := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	rnd.Read(b)
	return b
}
