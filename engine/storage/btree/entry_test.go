package btree_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
)

// Keys and values of every size around the limits of the format come back, and go.
func TestSizesAroundTheLimits(t *testing.T) {
	sizes := []int{0, 1, 63, 64, 127, 128, 254, 255, 256, 257, 723, 724, 725, 971, 972, 973, 979, 980, 981,
		4059, 4060, 4061, 8120, 8121, 70000}
	b := newBench(t, 0)
	var want model
	for _, k := range sizes {
		for _, v := range sizes {
			for _, end := range []string{"a", "b"} {
				key := append(bytes.Repeat([]byte{'k'}, k), end...)
				value := bytes.Repeat([]byte{byte(v)}, v)
				want, _ = want.put(key, value)
				b.put(key, value)
			}
		}
	}
	b.audit()
	if err := want.same(b.tree()); err != nil {
		t.Fatal(err)
	}
	for _, e := range want {
		b.delete([]byte(e.key))
	}
	b.audit()
	if b.m.Pages() != 0 {
		t.Errorf("%d pages are left of an empty tree", b.m.Pages())
	}
}

func TestLargestValues(t *testing.T) {
	b := newBench(t, 0)
	value := make([]byte, 16<<20)
	r := rand.New(rand.NewPCG(1, 7))
	for i := range value {
		value[i] = byte(r.Uint32())
	}
	key := value[:1<<20]
	b.put(key, value)
	b.put([]byte("beside"), value[5:])
	b.audit()
	got, ok, err := b.tree().Get(key)
	if err != nil || !ok || !bytes.Equal(got, value) {
		t.Fatalf("%v, %v, %d bytes", err, ok, len(got))
	}
	if _, err := b.Put(b.m, &b.head, make([]byte, btree.KeySizeMax+1), nil); err == nil {
		t.Error("a key above the limit was taken")
	}
}

// The value given to Put may lie in a page of the tree that the Put changes.
func TestPutOfOwnValue(t *testing.T) {
	b := newBench(t, 0)
	for i := range 200 {
		b.put(fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte{byte(i)}, 200))
	}
	for i := range 200 {
		v, ok, err := b.tree().Get(fmt.Appendf(nil, "%03d", i))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		b.put(fmt.Appendf(nil, "%03d copy", i), v)
	}
	for i := range 200 {
		v, _, _ := b.tree().Get(fmt.Appendf(nil, "%03d copy", i))
		if !bytes.Equal(v, bytes.Repeat([]byte{byte(i)}, 200)) {
			t.Fatalf("copy %d is wrong", i)
		}
	}
	b.audit()
}

func TestIterMoves(t *testing.T) {
	for _, entries := range []int{0, 4} {
		b := newBench(t, entries)
		it := b.tree().Iter()
		if it.Seek(nil) || it.SeekLast() || it.SeekBefore([]byte("x")) || it.Next() || it.Prev() || it.Key() != nil || it.Err() != nil {
			t.Fatal("an Iter found something in an empty tree")
		}
		const n = 1000
		key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
		for i := range n {
			b.put(key(i*2), key(i))
		}
		it = b.tree().Iter()
		for i := range 2 * n {
			// Every even number is a key; i rounded up is the first that is not less.
			at, before := (i+1)/2*2, (i-1)/2*2
			if ok := it.Seek(key(i)); ok != (at < 2*n) || ok && !bytes.Equal(it.Key(), key(at)) {
				t.Fatalf("Seek(%d): %v %q", i, ok, it.Key())
			}
			if ok := it.SeekBefore(key(i)); ok != (i > 0) || ok && !bytes.Equal(it.Key(), key(before)) {
				t.Fatalf("SeekBefore(%d): %v %q", i, ok, it.Key())
			}
			if i > 0 {
				if ok := it.Next(); ok != (before+2 < 2*n) || ok && !bytes.Equal(it.Key(), key(before+2)) {
					t.Fatalf("Next after SeekBefore(%d): %v %q", i, ok, it.Key())
				}
			}
		}
		if !it.SeekLast() || !bytes.Equal(it.Key(), key(2*n-2)) || it.Next() || it.Valid() || it.Prev() {
			t.Fatal("SeekLast")
		}
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	b := newBench(t, 0)
	for i := range 20000 {
		b.put(scattered(i), record(i))
	}
	tree := b.tree()
	key := scattered(777)
	if n := testing.AllocsPerRun(100, func() {
		if _, ok, err := tree.Get(key); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
	it := tree.Iter()
	it.Seek(nil)
	it.Key()
	if n := testing.AllocsPerRun(1000, func() {
		it.Next()
		_, _ = it.Key(), it.Value()
	}); n != 0 {
		t.Errorf("Next allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { it.Seek(key) }); n != 0 {
		t.Errorf("Seek allocates %v times", n)
	}
	b.put(key, record(1))
	if n := testing.AllocsPerRun(100, func() { b.put(key, record(1)) }); n > 1 { // record makes one
		t.Errorf("Put allocates %v times", n)
	}
}
