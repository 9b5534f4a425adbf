package btree_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
)

// bench is one tree in a Memory, with a write always under way.
type bench struct {
	testing.TB
	btree.Config
	m    *btree.Memory
	head btree.Head
}

func newBench(tb testing.TB, maxEntries int) *bench {
	b := &bench{TB: tb, Config: btree.Config{MaxEntries: maxEntries}, m: btree.NewMemory()}
	b.m.Begin()
	return b
}

func (b *bench) tree() btree.Tree { return btree.Tree{Head: b.head, R: b.m} }

func (b *bench) put(key, value []byte) bool {
	b.Helper()
	replaced, err := b.Put(b.m, &b.head, key, value)
	if err != nil {
		b.Fatal(err)
	}
	return replaced
}

func (b *bench) delete(key []byte) bool {
	b.Helper()
	found, err := b.Delete(b.m, &b.head, key)
	if err != nil {
		b.Fatal(err)
	}
	return found
}

func (b *bench) commit() {
	b.m.Commit()
	b.m.Begin()
}

func (b *bench) audit() {
	b.Helper()
	if err := errors.Join(b.m.Audit(b.head), b.m.AuditCommitted()); err != nil {
		b.Fatal(err)
	}
}

type entry struct{ key, value string }

// model is what the tree should hold, sorted.
type model []entry

func (m model) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(m, string(key), func(e entry, k string) int { return bytes.Compare([]byte(e.key), []byte(k)) })
}

func (m model) put(key, value []byte) (model, bool) {
	i, ok := m.find(key)
	if ok {
		m[i].value = string(value)
		return m, true
	}
	return slices.Insert(m, i, entry{string(key), string(value)}), false
}

func (m model) delete(key []byte) (model, bool) {
	i, ok := m.find(key)
	if !ok {
		return m, false
	}
	return slices.Delete(m, i, i+1), true
}

// same compares a tree with the model: forwards, backwards, and by Get.
func (m model) same(t btree.Tree) error {
	it := t.Iter()
	i := 0
	for ok := it.Seek(nil); ok; ok = it.Next() {
		if i >= len(m) || string(it.Key()) != m[i].key || string(it.Value()) != m[i].value {
			return fmt.Errorf("forwards, entry %d of %d is %.40q", i, len(m), it.Key())
		}
		v, ok, err := t.Get([]byte(m[i].key))
		if err != nil || !ok || string(v) != m[i].value {
			return fmt.Errorf("Get of entry %d %.40q: %v, %v", i, m[i].key, ok, err)
		}
		i++
	}
	if it.Err() != nil || i != len(m) {
		return fmt.Errorf("forwards, %d of %d entries: %v", i, len(m), it.Err())
	}
	for ok := it.SeekLast(); ok; ok = it.Prev() {
		i--
		if i < 0 || string(it.Key()) != m[i].key || string(it.Value()) != m[i].value {
			return fmt.Errorf("backwards, entry %d of %d is %.40q", i, len(m), it.Key())
		}
	}
	if it.Err() != nil || i != 0 {
		return fmt.Errorf("backwards, %d of %d entries are missing: %v", i, len(m), it.Err())
	}
	if t.Entries != uint64(len(m)) {
		return fmt.Errorf("head has %d entries, not %d", t.Entries, len(m))
	}
	return nil
}

// keyMakers make keys of one kind each, few enough to meet again.
var keyMakers = map[string]func(r *rand.Rand) []byte{
	"numbers": func(r *rand.Rand) []byte { return binary.BigEndian.AppendUint64(nil, uint64(r.IntN(3000))) },
	"random": func(r *rand.Rand) []byte {
		return binary.BigEndian.AppendUint64(nil, r.Uint64()%4096*0x9E3779B97F4A7C15)
	},
	"prefixes of each other": func(r *rand.Rand) []byte {
		return bytes.Repeat([]byte{'a'}, r.IntN(2000))
	},
	"paths": func(r *rand.Rand) []byte {
		key := []byte{}
		for range 1 + r.IntN(4) {
			key = fmt.Appendf(key, "/directory-with-a-long-name-%d", r.IntN(7))
		}
		return key
	},
	"large with the difference at the end": func(r *rand.Rand) []byte {
		return fmt.Appendf(bytes.Repeat([]byte{'x'}, []int{240, 256, 300, 960, 972, 980, 3000, 9000}[r.IntN(8)]), "%03d", r.IntN(300))
	},
	"separators of all lengths": func(r *rand.Rand) []byte {
		group := r.IntN(40)
		return fmt.Appendf(nil, "%02d%s%02d", group, bytes.Repeat([]byte{'s'}, []int{0, 950, 960, 300, 968}[group%5]), r.IntN(50))
	},
	"any size": func(r *rand.Rand) []byte {
		key := make([]byte, r.IntN(1+r.IntN(1+r.IntN(1500))))
		for i := range key {
			key[i] = "\x00ab\xff"[r.IntN(4)]
		}
		return key
	},
	"long and short tails": func(r *rand.Rand) []byte {
		key := fmt.Appendf(nil, "%02d", r.IntN(20))
		if r.IntN(2) == 0 {
			key = append(key, bytes.Repeat([]byte{'t'}, 230)...)
		}
		return fmt.Appendf(key, "%02d", r.IntN(50))
	},
}

var valueSizes = []int{0, 0, 1, 3, 8, 8, 8, 20, 200, 700, 979, 980, 981, 4060, 4061, 10000}

func value(r *rand.Rand, serial int) []byte {
	v := fmt.Appendf(nil, "%d:", serial)
	size := valueSizes[r.IntN(len(valueSizes))]
	if size <= len(v) {
		return v[:size]
	}
	return append(v, bytes.Repeat([]byte{byte(serial)}, size-len(v))...)
}

// A tree under random edits equals a sorted list after each write, and each snapshot goes on showing what it showed.
func TestTreeEqualsModel(t *testing.T) {
	names := make([]string, 0, len(keyMakers))
	for name := range keyMakers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, entries := range []int{0, 4, 7} {
			t.Run(fmt.Sprintf("%s, at most %d", name, entries), func(t *testing.T) {
				for seed := range uint64(2) {
					treeEqualsModel(t, keyMakers[name], entries, seed)
				}
			})
		}
	}
}

func treeEqualsModel(t *testing.T, makeKey func(*rand.Rand) []byte, entries int, seed uint64) {
	type held struct {
		snap *btree.MemorySnapshot
		head btree.Head
		want model
	}
	r := rand.New(rand.NewPCG(seed, 1))
	b := newBench(t, entries)
	var want, committed model
	var before btree.Head
	var snaps []held
	fail := func(step int, err error) {
		if err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, step, err)
		}
	}
	for step := range 1500 {
		deletes := 4 // of 10: grow at first, shrink at last
		if step > 900 {
			deletes = 7
		}
		key := makeKey(r)
		if r.IntN(10) < deletes {
			if len(want) > 0 && r.IntN(2) == 0 {
				key = []byte(want[r.IntN(len(want))].key)
			}
			var found bool
			want, found = want.delete(key)
			if b.delete(key) != found {
				fail(step, fmt.Errorf("delete of %.40q: found is not %v", key, found))
			}
		} else {
			v := value(r, step)
			var replaced bool
			want, replaced = want.put(key, v)
			if b.put(key, v) != replaced {
				fail(step, fmt.Errorf("put of %.40q: replaced is not %v", key, replaced))
			}
		}
		if v, ok, err := b.tree().Get(key); err != nil {
			fail(step, err)
		} else if i, found := want.find(key); found != ok || found && want[i].value != string(v) {
			fail(step, fmt.Errorf("get of %.40q", key))
		}
		if step%20 == 0 {
			fail(step, errors.Join(b.m.Audit(b.head), b.m.AuditCommitted()))
			fail(step, want.same(b.tree()))
		}
		switch r.IntN(30) {
		case 0:
			b.commit()
			committed, before = slices.Clone(want), b.head
			if len(snaps) < 4 {
				snaps = append(snaps, held{b.m.Snapshot(), b.head, committed})
			}
		case 1:
			b.m.Rollback()
			b.m.Begin()
			want, b.head = slices.Clone(committed), before
		case 2:
			if len(snaps) > 0 {
				i := r.IntN(len(snaps))
				fail(step, snaps[i].want.same(btree.Tree{Head: snaps[i].head, R: snaps[i].snap}))
				snaps[i].snap.Release()
				snaps = slices.Delete(snaps, i, i+1)
			}
		}
	}
	for _, s := range snaps {
		fail(-1, s.want.same(btree.Tree{Head: s.head, R: s.snap}))
		s.snap.Release()
	}
	for _, i := range r.Perm(len(want)) {
		if !b.delete([]byte(want[i].key)) {
			fail(-1, fmt.Errorf("%.40q is gone", want[i].key))
		}
	}
	if b.head != (btree.Head{}) {
		fail(-1, fmt.Errorf("after the last deletion the head is %+v", b.head))
	}
	b.commit()
	b.audit()
}

// What a drop leaves, with branches that have a single child, can be edited like any tree once its entries are counted.
func TestEditsOfHalfDroppedTree(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 8))
		b := newBench(t, []int{0, 4}[seed%2])
		for range 600 {
			key := keyMakers["separators of all lengths"](r)
			b.put(key, make([]byte, r.IntN(50)))
		}
		for range 1 + r.IntN(3) {
			if _, err := btree.DropStep(b.m, &b.head, 1+r.IntN(int(b.head.Pages)/3)); err != nil {
				t.Fatal(err)
			}
		}
		var want model
		it := b.tree().Iter()
		for ok := it.Seek(nil); ok; ok = it.Next() {
			want = append(want, entry{string(it.Key()), string(it.Value())})
		}
		b.head.Entries = uint64(len(want))
		for range 300 {
			var key []byte
			if len(want) > 0 && r.IntN(3) > 0 {
				key = []byte(want[len(want)-1-r.IntN(min(len(want), 20))].key)
				want, _ = want.delete(key)
				b.delete(key)
			} else {
				key = keyMakers["separators of all lengths"](r)
				want, _ = want.put(key, nil)
				b.put(key, nil)
			}
			if err := b.m.Audit(b.head); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := want.same(b.tree()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
