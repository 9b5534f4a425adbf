package btree_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
)

// objectID is a key like those of an _id index: a type byte, then 12 bytes that ascend.
func objectID(i int) []byte {
	key := append([]byte{0x50}, "\x65\x01\x02\x03\xaa\xbb\xcc\xdd\xee"...)
	return append(key, byte(i>>16), byte(i>>8), byte(i))
}

func scattered(i int) []byte {
	return binary.BigEndian.AppendUint64([]byte{0x30}, uint64(i)*0x9E3779B97F4A7C15)
}

func record(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i))[1:] }

func loaded(b *testing.B, n int, key func(int) []byte) *bench {
	t := newBench(b, 0)
	for i := range n {
		t.put(key(i), record(i))
	}
	t.commit()
	b.ResetTimer()
	b.ReportAllocs()
	return t
}

func BenchmarkPutAscending(b *testing.B) {
	t := loaded(b, 0, nil)
	key := objectID(0)
	for i := range b.N {
		binary.BigEndian.PutUint32(key[9:], uint32(i))
		t.put(key, key[10:])
	}
}

func BenchmarkPutRandom(b *testing.B) {
	t := loaded(b, 0, nil)
	key := scattered(0)
	for i := range b.N {
		binary.BigEndian.PutUint64(key[1:], uint64(i)*0x9E3779B97F4A7C15)
		t.put(key, key[1:5])
	}
}

// One write for each Put: three pages are copied.
func BenchmarkPutRandomCommit(b *testing.B) {
	t := loaded(b, 200_000, scattered)
	r := rand.New(rand.NewPCG(1, 1))
	for range b.N {
		t.put(scattered(r.IntN(1<<30)), record(1))
		t.commit()
	}
}

func BenchmarkDeletePut(b *testing.B) {
	t := loaded(b, 200_000, scattered)
	r := rand.New(rand.NewPCG(1, 1))
	for range b.N {
		key := scattered(r.IntN(200_000))
		t.delete(key)
		t.put(key, record(1))
	}
}

func BenchmarkGet(b *testing.B) {
	for name, key := range map[string]func(int) []byte{"ascending": objectID, "scattered": scattered} {
		b.Run(name, func(b *testing.B) {
			t := loaded(b, 200_000, key)
			r := rand.New(rand.NewPCG(1, 1))
			keys := make([][]byte, 1<<16)
			for i := range keys {
				keys[i] = key(r.IntN(200_000))
			}
			b.ResetTimer()
			tree := t.tree()
			for i := range b.N {
				if _, ok, _ := tree.Get(keys[i&(1<<16-1)]); !ok {
					b.Fatal("lost")
				}
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	t := loaded(b, 200_000, scattered)
	it := t.tree().Iter()
	sum := 0
	for range b.N {
		if !it.Next() {
			it.Seek(nil)
		}
		sum += len(it.Key()) + len(it.Value())
	}
	if it.Err() != nil || sum < 0 {
		b.Fatal(it.Err())
	}
}

func BenchmarkSeek(b *testing.B) {
	t := loaded(b, 200_000, scattered)
	r := rand.New(rand.NewPCG(1, 1))
	it := t.tree().Iter()
	key := scattered(0)
	for range b.N {
		binary.BigEndian.PutUint64(key[1:], r.Uint64())
		it.Seek(key)
	}
}

func BenchmarkBuild(b *testing.B) {
	t := loaded(b, 0, nil)
	i := 0
	key := objectID(0)
	_, err := btree.Config{}.Build(t.m, func() ([]byte, []byte, bool, error) {
		i++
		binary.BigEndian.PutUint32(key[9:], uint32(i))
		return key, key[10:], i <= b.N, nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
