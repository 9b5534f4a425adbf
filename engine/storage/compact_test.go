package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// After most of it was deleted the file is nearly as small as what is left of it, and what is left is all there.
func TestCompactShrinksTheFile(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(*fromFlag, 11)), simfs.Options{Forgetful: true})
	w.o = Options{Manual: true, MapReserve: 1 << 30}
	if err := errors.Join(w.open(), w.create()); err != nil {
		t.Fatal(err)
	}
	id, mc := w.pick()
	if err := w.write(func(wr *Writer) error { return wr.Lock(id).CreateTree(7) }, func() { mc.trees[7] = map[string]string{} }); err != nil {
		t.Fatal(err)
	}
	live := 0
	key := func(rid RecordID) []byte { return fmt.Appendf(nil, "%016d", uint64(rid)*0x9E3779B97F4A7C15%1e9) }
	for range 15 {
		var rids []RecordID
		var records [][]byte
		for range 100 {
			records = append(records, w.bytes(4000+w.r.IntN(20_000)))
		}
		if err := w.write(func(wr *Writer) error {
			c := wr.Lock(id)
			rids = rids[:0]
			for _, record := range records {
				rid, err := c.Insert(record)
				if err == nil {
					err = c.Put(7, key(rid), []byte("some value for it"))
				}
				if err != nil {
					return err
				}
				rids = append(rids, rid)
			}
			return nil
		}, func() {
			for i, rid := range rids {
				mc.records[rid], mc.trees[7][string(key(rid))] = string(records[i]), "some value for it"
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.wait(), w.s.Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}
	for from := RecordID(1); from <= 1500; from += 100 {
		var gone []RecordID
		for rid := from; rid < from+100; rid++ {
			if w.r.IntN(10) > 0 {
				gone = append(gone, rid)
			} else {
				live += len(mc.records[rid])
			}
		}
		if err := w.write(func(wr *Writer) error {
			c := wr.Lock(id)
			for _, rid := range gone {
				if _, err := c.Delete(7, key(rid)); err != nil {
					return err
				}
				if err := c.Remove(rid); err != nil {
					return err
				}
			}
			return nil
		}, func() {
			for _, rid := range gone {
				delete(mc.records, rid)
				delete(mc.trees[7], string(key(rid)))
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	before := w.s.storedPages() * page.Size
	if _, err := w.s.Compact(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	w.sound("compacted")
	size, err := w.s.file.Size()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes live; %d bytes stored before, %d after, in a file of %d", live, before, w.s.storedPages()*page.Size, size)
	if stored := w.s.storedPages() * page.Size; stored > int64(live)*3/2 {
		t.Errorf("%d bytes of storage for %d", stored, live)
	}
	if size > int64(live)*2 {
		t.Errorf("a file of %d bytes for %d", size, live)
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What checkpoints have not written yet is in memory only: a compaction leaves it where it is, and comes to an end.
func TestCompactLeavesWhatIsNotWritten(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(*fromFlag, 12)), simfs.Options{})
	if err := errors.Join(w.open(), w.create()); err != nil {
		t.Fatal(err)
	}
	id, mc := w.pick()
	put := func(n int) (rids []RecordID) {
		for range n {
			record := w.bytes(3000)
			var rid RecordID
			if err := w.write(func(wr *Writer) (err error) {
				rid, err = wr.Lock(id).Insert(record)
				return err
			}, func() { mc.records[rid] = string(record) }); err != nil {
				t.Fatal(err)
			}
			rids = append(rids, rid)
		}
		return rids
	}
	old := put(40)
	if err := errors.Join(w.wait(), w.s.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	mark := w.s.alloc.Truncatable()
	put(40)
	for _, rid := range old { // room in front
		if err := w.write(func(wr *Writer) error { return wr.Lock(id).Remove(rid) }, func() { delete(mc.records, rid) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.wait(), w.s.Checkpoint(), w.s.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	put(20)
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	steps := 0
	c := compaction{s: w.s, mark: mark}
	if err := c.run(func() error {
		if steps++; steps > 500 {
			return errStopped
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.sound("compacted")
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
}
