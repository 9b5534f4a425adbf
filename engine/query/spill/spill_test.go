package spill_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/multiforadb/multiforadb/engine/query/spill"
)

// dir is a Disk of ordinary files; it keeps the last one.
type dir struct {
	path string
	last *os.File
}

func (d *dir) Create() (f spill.File, err error) {
	d.last, err = os.CreateTemp(d.path, "")
	return d.last, err
}

// TestLogGivesBackWhatWasAppended appends random records, among them empty and large ones, and reads them in order and by position.
func TestLogGivesBackWhatWasAppended(t *testing.T) {
	seed := rand.Uint64()
	g := rand.New(rand.NewPCG(seed, 0))
	for round := range 50 {
		l, err := spill.Create(&dir{path: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		var want [][]byte
		var at []int64
		for range g.IntN(300) {
			data := make([]byte, g.IntN(1<<g.IntN(18)))
			for i := range data {
				data[i] = byte(g.Uint32())
			}
			cut := g.IntN(len(data) + 1)
			p, err := l.Append(data[:cut], data[cut:])
			if err != nil {
				t.Fatal(err)
			}
			want, at = append(want, data), append(at, p)
		}
		if l.Count() != len(want) {
			t.Fatalf("seed %d, round %d: %d records of %d", seed, round, l.Count(), len(want))
		}
		for range 2 {
			r, err := l.Reader()
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				if got, err := r.Next(); err != nil || got == nil || !bytes.Equal(got, w) {
					t.Fatalf("seed %d, round %d: record %d of %d: %v", seed, round, i, len(want), err)
				}
			}
			if got, err := r.Next(); err != nil || got != nil {
				t.Fatalf("seed %d, round %d: behind the end: %d bytes, %v", seed, round, len(got), err)
			}
			for range want {
				i := g.IntN(len(want))
				if got, err := r.At(at[i]); err != nil || !bytes.Equal(got, want[i]) {
					t.Fatalf("seed %d, round %d: record %d by its position: %v", seed, round, i, err)
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	d := &dir{path: t.TempDir()}
	l, err := spill.Create(d)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 3 {
		if _, err := l.Append([]byte("some bytes")); err != nil {
			t.Fatal(err)
		}
	}
	for off := range l.Size() {
		r, err := l.Reader()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := d.last.ReadAt(b, off); err != nil {
			t.Fatal(err)
		}
		d.last.WriteAt([]byte{b[0] ^ 4}, off)
		n := 0
		for data := []byte(nil); err == nil && n < 4; n++ {
			if data, err = r.Next(); err == nil && (data == nil || string(data) != "some bytes") {
				t.Errorf("offset %d: record %d is %q", off, n, data)
				break
			}
		}
		if err == nil {
			t.Errorf("offset %d: no error", off)
		}
		d.last.WriteAt(b, off)
	}
}
