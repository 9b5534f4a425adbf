package btree_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// leafFill is the part of the leaves' bytes that is in use.
func (b *bench) leafFill() float64 {
	leaves, used := 0, 0
	err := b.tree().Walk(func(ref page.Ref, level uint8, overflow bool) error {
		if level == 0 && !overflow {
			p, err := b.m.Page(ref)
			if err != nil {
				return err
			}
			le := binary.LittleEndian
			leaves++
			used += 36 + 2*int(le.Uint16(p[24:])) + int(le.Uint16(p[28:])) + int(le.Uint16(p[30:]))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(used) / float64(leaves*page.Size)
}

// Loads in each order leave leaves as full as they can be.
func TestFillByOrderOfInsertion(t *testing.T) {
	number := func(i int64) []byte { return binary.BigEndian.AppendUint64([]byte("key"), uint64(i)) }
	const n = 30000
	for _, c := range []struct {
		name string
		key  func(r *rand.Rand, i int64) []byte
		min  float64
	}{
		{"ascending", func(_ *rand.Rand, i int64) []byte { return number(i) }, 0.985},
		{"descending", func(_ *rand.Rand, i int64) []byte { return number(n - i) }, 0.985},
		{"ascending with disorder", func(r *rand.Rand, i int64) []byte { return number(i*16 + r.Int64N(16*8)) }, 0.93},
		{"ascending in the middle", func(_ *rand.Rand, i int64) []byte {
			if i < 1000 {
				return number(i % 2 * (1 << 40) * i)
			}
			return number(1<<30 + i)
		}, 0.95},
		{"descending in the middle", func(_ *rand.Rand, i int64) []byte {
			if i < 1000 {
				return number(i % 2 * (1 << 40) * i)
			}
			return number(1<<30 - i)
		}, 0.95},
		{"ascending in 10 groups by turns", func(_ *rand.Rand, i int64) []byte {
			return fmt.Appendf(nil, "group-%02d/%s", i%10, number(i))
		}, 0.82},
		{"ascending in 10 groups by bursts", func(_ *rand.Rand, i int64) []byte {
			return fmt.Appendf(nil, "group-%02d/%s", i/20%10, number(i))
		}, 0.83},
		{"random", func(r *rand.Rand, _ int64) []byte { return number(r.Int64()) }, 0.66},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 0)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range n {
				b.put(c.key(r, int64(i)), []byte("val"))
			}
			b.audit()
			fill := b.leafFill()
			t.Logf("leaves are %.3f full", fill)
			if fill < c.min {
				t.Errorf("leaves are %.3f full, less than %.3f", fill, c.min)
			}
		})
	}
}

// Keys that differ early have short separators, so that branches are few; the prefix of a page is stored once.
func TestSeparatorsAndPrefixesAreCut(t *testing.T) {
	b := newBench(t, 0)
	r := rand.New(rand.NewPCG(1, 3))
	for range 5000 {
		b.put(fmt.Appendf(nil, "%08x%s", r.Uint32(), bytes.Repeat([]byte{'t'}, 300)), nil)
	}
	leaves, branches := 0, 0
	count := func(_ page.Ref, level uint8, _ bool) error {
		if level == 0 {
			leaves++
		} else {
			branches++
		}
		return nil
	}
	if err := b.tree().Walk(count); err != nil {
		t.Fatal(err)
	}
	if branches*100 > leaves {
		t.Errorf("%d branches above %d leaves", branches, leaves)
	}

	b = newBench(t, 0)
	for i := range 20000 {
		b.put(fmt.Appendf(nil, "%s%06d", bytes.Repeat([]byte{'p'}, 240), i), nil)
	}
	if b.head.Pages > 20000*12/page.Size {
		t.Errorf("20000 keys with a common prefix of 240 bytes take %d pages", b.head.Pages)
	}
}

// Random deletions and insertions, over and over, leave leaves about as full as random insertions alone.
func TestChurnKeepsFill(t *testing.T) {
	b := newBench(t, 0)
	r := rand.New(rand.NewPCG(1, 4))
	var live [][]byte
	for range 6 {
		for len(live) < 8000 {
			key := binary.BigEndian.AppendUint64(nil, r.Uint64())
			b.put(key, []byte("value"))
			live = append(live, key)
		}
		if fill := b.leafFill(); fill < 0.64 {
			t.Errorf("after it was filled leaves are %.3f full", fill)
		}
		r.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		for _, key := range live[4000:] {
			b.delete(key)
		}
		live = live[:4000]
		if fill := b.leafFill(); fill < 0.47 {
			t.Errorf("after half was deleted leaves are %.3f full", fill)
		}
	}
	b.audit()
}

// A queue (append at the end, delete at the front) stays small.
func TestQueueStaysSmall(t *testing.T) {
	b := newBench(t, 0)
	for i := range 30000 {
		b.put(objectID(i), []byte("val"))
		if i >= 1000 {
			b.delete(objectID(i - 1000))
		}
	}
	b.audit()
	if b.head.Pages > 8 {
		t.Errorf("1000 entries in %d pages", b.head.Pages)
	}
}

// Values that grow and shrink in place do not leave garbage that counts as full.
func TestReplacedValuesRepack(t *testing.T) {
	b := newBench(t, 0)
	r := rand.New(rand.NewPCG(1, 5))
	for range 20000 {
		b.put(binary.BigEndian.AppendUint32(nil, uint32(r.IntN(500))), make([]byte, r.IntN(60)))
	}
	b.audit()
	if b.head.Pages > 14 {
		t.Errorf("500 entries of up to 64 bytes in %d pages", b.head.Pages)
	}
}

func TestBuildFillsPages(t *testing.T) {
	for _, entries := range []int{0, 4} {
		b := newBench(t, entries)
		const n = 20000
		i := 0
		var err error
		b.head, err = b.Build(b.m, func() ([]byte, []byte, bool, error) {
			i++
			return fmt.Appendf(nil, "%08d", i), fmt.Appendf(nil, "value %d", i), i <= n, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b.audit()
		if entries == 0 && b.leafFill() < 0.985 {
			t.Errorf("leaves are %.3f full", b.leafFill())
		}
		var want model
		for i := range n {
			want = append(want, entry{fmt.Sprintf("%08d", i+1), fmt.Sprintf("value %d", i+1)})
		}
		if err := want.same(b.tree()); err != nil {
			t.Fatal(err)
		}
		// There is life after it.
		for i := range n {
			b.put(fmt.Appendf(nil, "%08d+", i), nil)
			if i%3 == 0 {
				b.delete(fmt.Appendf(nil, "%08d", i+1))
			}
		}
		b.audit()
	}
}

func TestBuildRefusesDisorder(t *testing.T) {
	for _, keys := range [][]string{{"a", "c", "b"}, {"a", "a"}, {"", ""}} {
		b := newBench(t, 0)
		i := 0
		_, err := b.Build(b.m, func() ([]byte, []byte, bool, error) {
			if i == len(keys) {
				return nil, nil, false, nil
			}
			i++
			return []byte(keys[i-1]), nil, true, nil
		})
		if err == nil {
			t.Errorf("%q was taken", keys)
		}
	}
	stop := errors.New("stop")
	b := newBench(t, 0)
	if _, err := b.Build(b.m, func() ([]byte, []byte, bool, error) { return nil, nil, false, stop }); err != stop {
		t.Errorf("the error of next became %v", err)
	}
}

// DropStep keeps to its measure, ends, and reads no leaf if there are no overflow pages.
func TestDropInSteps(t *testing.T) {
	for _, large := range []bool{false, true} {
		for _, entries := range []int{0, 4} {
			b := newBench(t, entries)
			for i := range 3000 {
				size := 10
				if large && i%100 == 0 {
					size = 20000 // five pages
				}
				b.put(fmt.Appendf(nil, "%06d", i*7919%3000), make([]byte, size))
			}
			b.commit()
			const measure = 10
			steps := 0
			for done := false; !done; steps++ {
				before := b.head.Pages
				var err error
				if done, err = btree.DropStep(b.m, &b.head, measure); err != nil {
					t.Fatal(err)
				}
				if dropped := before - b.head.Pages; dropped < 1 || dropped > measure+5+8 {
					t.Fatalf("a step dropped %d pages", dropped)
				}
				b.audit()
				if !done && b.head.Entries != btree.EntriesUnknown {
					t.Fatal("the number of entries is said to be known")
				}
				b.commit()
			}
			if b.head != (btree.Head{}) || b.m.Pages() != 0 {
				t.Fatalf("after %d steps: %+v, %d pages", steps, b.head, b.m.Pages())
			}
		}
	}
}

func TestEstimateRange(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "%07d", i) }
	for _, order := range []string{"ascending", "random"} {
		b := newBench(t, 0)
		const n = 50000
		r := rand.New(rand.NewPCG(1, 6))
		for _, i := range r.Perm(n) {
			if order == "ascending" {
				i = int(b.head.Entries)
			}
			b.put(key(i), []byte("v"))
		}
		for range 300 {
			lo := r.IntN(n)
			want := r.IntN(1 + r.IntN(n-lo))
			got, err := b.tree().EstimateRange(key(lo), key(lo+want))
			if err != nil {
				t.Fatal(err)
			}
			if off := math.Abs(float64(got) - float64(want)); off > 100+0.4*float64(want) {
				t.Errorf("%s: %d keys from %d on are estimated as %d", order, want, lo, got)
			}
		}
		for _, c := range []struct {
			lo, hi   []byte
			min, max uint64
		}{
			{nil, nil, n, n}, {key(100), nil, n * 8 / 10, n}, {nil, key(n / 2), n * 4 / 10, n * 6 / 10},
			{key(5), key(5), 0, 0}, {key(500), key(5), 0, 0}, {key(5), key(6), 1, 1}, {key(n), nil, 0, 0}, {nil, []byte{}, 0, 0},
		} {
			if got, err := b.tree().EstimateRange(c.lo, c.hi); err != nil || got < c.min || got > c.max {
				t.Errorf("%s: from %q to %q: %d, %v", order, c.lo, c.hi, got, err)
			}
		}
	}
}
