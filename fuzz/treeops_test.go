package fuzz

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
)

// FuzzTreeOps runs a program of tree operations, spelled in bytes, against a sorted list. After each step the tree's invariants
// hold, it reaches every page exactly once, and what was committed has not changed; snapshots go on showing what they showed.
func FuzzTreeOps(f *testing.F) {
	for _, seed := range treeSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 300 {
			return
		}
		newTreeRun(t, program).run()
	})
}

// treeSeeds are short programs with each kind of step and of key, for each fan-out. Short, because the fuzzer spends a minute on
// shortening each long one that it likes.
func treeSeeds() [][]byte {
	var seeds [][]byte
	for fan := range byte(4) {
		for kind := range byte(8) {
			seeds = append(seeds,
				[]byte{fan, stepRun, kind, 30, 200, 1, stepSnapshot, stepRun, kind, 90, 50, 4, stepRange, kind, 10, kind, 60, stepLook},
				[]byte{fan, stepPut, kind, 1, 5, stepPut, kind, 2, 11, stepCommit, stepDelete, kind, 1, stepRollback,
					stepPut, kind, 2, 1, stepSeek, kind, 2, 9},
				[]byte{fan, stepRun, kind, 7, 60, 2, stepDrop, 3, stepRebuild, stepEstimate, kind, 1, kind, 200, stepPut, kind, 8, 17})
		}
	}
	return seeds
}

const (
	stepPut    = iota // five bytes of them, for puts to prevail
	stepDelete = iota + 4
	stepSeek
	stepRun
	stepRange
	stepCommit
	stepRollback
	stepSnapshot
	stepLook
	stepRebuild
	stepDrop
	stepEstimate
	stepCount
)

type treeEntry struct{ key, value []byte }

type treeRun struct {
	t       *testing.T
	program []byte
	config  btree.Config
	m       *btree.Memory
	serial  int

	head, headCommitted btree.Head
	want, wantCommitted []treeEntry
	held                []treeHeld
}

type treeHeld struct {
	snap *btree.MemorySnapshot
	head btree.Head
	want []treeEntry
}

func newTreeRun(t *testing.T, program []byte) *treeRun {
	r := &treeRun{t: t, program: program, m: btree.NewMemory()}
	r.config.MaxEntries = [4]int{4, 0, 5, 12}[r.byte()%4]
	r.m.Begin()
	return r
}

func (r *treeRun) byte() byte {
	if len(r.program) == 0 {
		return 0
	}
	b := r.program[0]
	r.program = r.program[1:]
	return b
}

// Sizes around every limit of the format.
var (
	treeKeySizes   = []int{250, 255, 256, 257, 300, 500, 970, 971, 972, 973, 974, 1000, 2000, 4315, 4316, 4317, 9000}
	treeValueSizes = []int{0, 1, 8, 30, 100, 300, 700, 723, 724, 725, 979, 980, 981, 2000, 4060, 4061, 8120, 9000}
)

func (r *treeRun) key() []byte {
	kind, n := r.byte()%8, int(r.byte())
	switch kind {
	case 0:
		return []byte{byte(n)}
	case 1:
		return binary.BigEndian.AppendUint32(nil, uint32(n)*31)
	case 2:
		return append(bytes.Repeat([]byte{'p'}, n/16*16), byte(n))
	case 3:
		return bytes.Repeat([]byte{'a'}, n)
	case 4:
		size := treeKeySizes[n%len(treeKeySizes)]
		return append(bytes.Repeat([]byte{'x'}, size-1), byte(n/len(treeKeySizes)))
	case 5:
		key := []byte(nil)
		for range n % 12 {
			key = append(key, r.byte())
		}
		return key
	case 6:
		return bytes.Repeat([]byte{byte(n), 0xff, 0}, n%64*8)
	default:
		return fmt.Appendf(nil, "/%d/%s/%d", n%3, bytes.Repeat([]byte{'d'}, n%5*60), n/15)
	}
}

func (r *treeRun) value() []byte {
	r.serial++
	v := fmt.Appendf(nil, "%d.", r.serial)
	size := treeValueSizes[int(r.byte())%len(treeValueSizes)]
	if size <= len(v) {
		return v[:size]
	}
	return append(v, bytes.Repeat([]byte{byte(r.serial)}, size-len(v))...)
}

func (r *treeRun) run() {
	for len(r.program) > 0 {
		before := len(r.program)
		r.step()
		if err := r.m.Audit(r.head); err != nil {
			r.t.Fatalf("%d bytes before the end: %v", before, err)
		}
	}
	r.commit()
	r.same(btree.Tree{Head: r.head, R: r.m}, r.want)
	for _, h := range r.held {
		r.same(btree.Tree{Head: h.head, R: h.snap}, h.want)
	}
}

func (r *treeRun) step() {
	tree := btree.Tree{Head: r.head, R: r.m}
	switch step := int(r.byte()) % stepCount; step {
	default:
		r.put(r.key(), r.value())
	case stepDelete:
		r.delete(r.key())
	case stepSeek:
		r.seek(tree)
	case stepRun:
		stem, count, down := r.key(), int(r.byte()%64), r.byte()
		for i := range count {
			if down%2 == 1 {
				i = count - i
			}
			r.put(fmt.Appendf(bytes.Clone(stem), "%02d", i), stem[:min(len(stem), int(down))])
		}
	case stepRange:
		lo, hi := r.key(), r.key()
		for _, e := range slices.Clone(r.want) {
			if bytes.Compare(e.key, lo) >= 0 && bytes.Compare(e.key, hi) < 0 {
				r.delete(e.key)
			}
		}
	case stepCommit:
		r.commit()
	case stepRollback:
		r.m.Rollback()
		r.m.Begin()
		r.head, r.want = r.headCommitted, slices.Clone(r.wantCommitted)
	case stepSnapshot:
		r.commit()
		if len(r.held) < 3 {
			r.held = append(r.held, treeHeld{r.m.Snapshot(), r.head, slices.Clone(r.want)})
		}
	case stepLook:
		if len(r.held) > 0 {
			h := r.held[0]
			r.held = r.held[1:]
			r.same(btree.Tree{Head: h.head, R: h.snap}, h.want)
			h.snap.Release()
		}
		r.same(tree, r.want)
	case stepRebuild:
		r.rebuild()
	case stepDrop:
		r.drop(int(r.byte()))
	case stepEstimate:
		if n, err := tree.EstimateRange(r.key(), r.key()); err != nil || n > uint64(len(r.want)) {
			r.t.Fatalf("estimate of %d of %d keys: %v", n, len(r.want), err)
		}
	}
}

func (r *treeRun) commit() {
	r.m.Commit()
	if err := r.m.AuditCommitted(); err != nil {
		r.t.Fatal(err)
	}
	r.m.Begin()
	r.headCommitted, r.wantCommitted = r.head, slices.Clone(r.want)
}

func (r *treeRun) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(r.want, key, func(e treeEntry, key []byte) int { return bytes.Compare(e.key, key) })
}

func (r *treeRun) put(key, value []byte) {
	i, found := r.find(key)
	if found {
		r.want[i].value = value
	} else {
		r.want = slices.Insert(r.want, i, treeEntry{key, value})
	}
	if replaced, err := r.config.Put(r.m, &r.head, key, value); err != nil || replaced != found {
		r.t.Fatalf("put of %.40q: replaced %v, not %v: %v", key, replaced, found, err)
	}
}

func (r *treeRun) delete(key []byte) {
	i, want := r.find(key)
	if want {
		r.want = slices.Delete(r.want, i, i+1)
	}
	if found, err := r.config.Delete(r.m, &r.head, key); err != nil || found != want {
		r.t.Fatalf("delete of %.40q: found %v, not %v: %v", key, found, want, err)
	}
}

// seek goes to a key, or before it, and makes some moves from there.
func (r *treeRun) seek(tree btree.Tree) {
	key, moves := r.key(), r.byte()
	i, _ := r.find(key)
	it := tree.Iter()
	ok := false
	if moves&1 == 0 {
		ok = it.Seek(key)
	} else {
		i--
		ok = it.SeekBefore(key)
	}
	for {
		if want := i >= 0 && i < len(r.want); ok != want {
			r.t.Fatalf("seek of %.40q: position %d of %d: valid is %v: %v", key, i, len(r.want), ok, it.Err())
		}
		if !ok {
			return
		}
		if !bytes.Equal(it.Key(), r.want[i].key) || !bytes.Equal(it.Value(), r.want[i].value) {
			r.t.Fatalf("seek of %.40q: entry %d is %.40q, not %.40q", key, i, it.Key(), r.want[i].key)
		}
		if moves >>= 1; moves == 0 {
			return
		}
		if moves&1 == 0 {
			i++
			ok = it.Next()
		} else {
			i--
			ok = it.Prev()
		}
	}
}

// same compares a tree with a list: forwards, backwards, and by Get.
func (r *treeRun) same(tree btree.Tree, want []treeEntry) {
	it := tree.Iter()
	n := 0
	for ok := it.Seek(nil); ok; ok = it.Next() {
		if n >= len(want) || !bytes.Equal(it.Key(), want[n].key) || !bytes.Equal(it.Value(), want[n].value) {
			r.t.Fatalf("forwards, entry %d of %d is %.40q", n, len(want), it.Key())
		}
		if v, ok, err := tree.Get(want[n].key); err != nil || !ok || !bytes.Equal(v, want[n].value) {
			r.t.Fatalf("get of %.40q: %v, %v", want[n].key, ok, err)
		}
		n++
	}
	if it.Err() != nil || n != len(want) || tree.Entries != uint64(n) {
		r.t.Fatalf("forwards, %d of %d entries: %v", n, len(want), it.Err())
	}
	for ok := it.SeekLast(); ok; ok = it.Prev() {
		if n--; n < 0 || !bytes.Equal(it.Key(), want[n].key) || !bytes.Equal(it.Value(), want[n].value) {
			r.t.Fatalf("backwards, entry %d of %d is %.40q", n, len(want), it.Key())
		}
	}
	if it.Err() != nil || n != 0 {
		r.t.Fatalf("backwards, %d of %d entries are missing: %v", n, len(want), it.Err())
	}
}

// rebuild drops the tree and builds it anew from the list.
func (r *treeRun) rebuild() {
	for done := false; !done; {
		var err error
		if done, err = btree.DropStep(r.m, &r.head, 5); err != nil {
			r.t.Fatal(err)
		}
	}
	i := -1
	var err error
	r.head, err = r.config.Build(r.m, func() ([]byte, []byte, bool, error) {
		if i++; i == len(r.want) {
			return nil, nil, false, nil
		}
		return r.want[i].key, r.want[i].value, true, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// drop drops the tree in steps, each of which leaves the first entries of it, and rolls that back.
func (r *treeRun) drop(pages int) {
	r.commit()
	for done := false; !done; {
		var err error
		before := r.head.Pages
		if done, err = btree.DropStep(r.m, &r.head, pages); err != nil {
			r.t.Fatal(err)
		}
		if r.head.Pages >= before && before > 0 {
			r.t.Fatalf("a step of a drop left %d of %d pages", r.head.Pages, before)
		}
		if err := r.m.Audit(r.head); err != nil {
			r.t.Fatalf("in the middle of a drop: %v", err)
		}
		it, n := (btree.Tree{Head: r.head, R: r.m}).Iter(), 0
		for ok := it.Seek(nil); ok; ok = it.Next() {
			if n >= len(r.want) || !bytes.Equal(it.Key(), r.want[n].key) || !bytes.Equal(it.Value(), r.want[n].value) {
				r.t.Fatalf("in the middle of a drop, entry %d of %d is %.40q", n, len(r.want), it.Key())
			}
			n++
		}
		if it.Err() != nil {
			r.t.Fatal(it.Err())
		}
	}
	r.m.Rollback()
	r.m.Begin()
	r.head = r.headCommitted
}
