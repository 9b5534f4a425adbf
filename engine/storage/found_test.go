package storage

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// Found by TestStoreAgainstMaps: batches made pages and gave them up; the end of the file, where these lay, was cut off; and the next
// checkpoint, going through what the batches had made, met pages beyond the end and panicked.
func TestTrimForgetsWhatBatchesGaveUp(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), simfs.Options{})
	if err := errors.Join(w.open(), w.create(), w.wait(), w.s.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	before := w.s.Stats().FileBytes
	for _, of := range []struct{ n, size int }{{300, 50}, {40, 20_000}} { // a tree's pages, and extents
		for range of.n {
			if err := w.insertOne(of.size); err != nil {
				t.Fatal(err)
			}
		}
		id, mc := w.pick()
		err := w.write(func(wr *Writer) error { return removeAll(wr.Lock(id), mc) }, func() { clear(mc.records); clear(mc.trees[1]) })
		if err := errors.Join(err, w.wait()); err != nil {
			t.Fatal(err)
		}
		grown := w.s.Stats().FileBytes
		if err := w.s.Trim(); err != nil {
			t.Fatal(err)
		}
		if now := w.s.Stats().FileBytes; grown <= before || now >= grown {
			t.Fatalf("the file had %d bytes, then %d, and was trimmed to %d: nothing is put to the test", before, grown, now)
		}
		if err := w.s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		w.sound("after a checkpoint of what was cut off")
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
}

// insertOne stores a record and a key for it.
func (w *world) insertOne(size int) error {
	id, mc := w.pick()
	record, key := string(w.bytes(size)), string(w.bytes(12))
	var rid RecordID
	return w.write(func(wr *Writer) error {
		c := wr.Lock(id)
		var err error
		if rid, err = c.Insert([]byte(record)); err != nil {
			return err
		}
		return c.Put(1, []byte(key), nil)
	}, func() { mc.records[rid], mc.trees[1][key] = record, "" })
}

func removeAll(c *Collection, mc *modelColl) error {
	for _, rid := range sortedKeys(mc.records) {
		if err := c.Remove(rid); err != nil {
			return err
		}
	}
	for _, k := range sortedKeys(mc.trees[1]) {
		if _, err := c.Delete(1, []byte(k)); err != nil {
			return err
		}
	}
	return nil
}

// Found by TestStoreAgainstMaps: marks are no batches, so nothing was promised to them. On a full disk the one that found the segment
// full made the database fail.
func TestMarksOnAFullDiskAreNoFailure(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), simfs.Options{})
	if err := errors.Join(w.open(), w.create(), w.wait()); err != nil {
		t.Fatal(err)
	}
	w.disk.SetCapacity(w.disk.Used())
	refused := 0
	for range 3 * w.o.SegmentSize / page.Size {
		if err := w.s.Checkpoint(); errors.Is(err, ErrDiskFull) { // each has a mark say that the one before it is durable
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("the log was never full")
	}
	w.disk.SetCapacity(0)
	if err := errors.Join(w.s.Checkpoint(), w.create(), w.wait()); err != nil {
		t.Fatal(err)
	}
	w.sound("after a full disk")
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
}
