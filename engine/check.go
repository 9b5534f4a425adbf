package engine

import (
	"bytes"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Check proves, on the visible snapshot, what storage cannot: every name leads to a collection of that name, and every collection has one;
// every tree is an index's; every document is valid, and documents and index entries map onto each other both ways. It calls report with each thing that is wrong, and goes
// on. The storage column's own Check is the other half.
func (db *DB) Check(ctx context.Context, report func(fault error)) error {
	return db.read(func(sn *storage.Snapshot) error {
		list, err := catalog.List(sn.Collection(0), "")
		if err != nil {
			report(err)
			return nil
		}
		named := map[storage.CollID]bool{0: true}
		for _, e := range list {
			named[e.ID] = true
			c, sc, err := db.collection(sn, e.Namespace)
			switch {
			case err != nil:
				report(err)
				continue
			case c.def.NS != e.Namespace:
				report(fmt.Errorf("catalog: %s leads to collection %d, which is %s: %w", e.Namespace, e.ID, c.def.NS, storage.ErrCorrupt))
			}
			if err := db.checkCollection(ctx, c, sc, report); err != nil {
				return err
			}
		}
		for _, id := range sn.Collections() {
			if !named[id] {
				report(fmt.Errorf("catalog: no name leads to collection %d: %w", id, storage.ErrCorrupt))
			}
		}
		return nil
	})
}

// Validation is what Validate found.
type Validation struct {
	Records int64
	Indexes []IndexKeys
	Faults  []error
}

// IndexKeys is an index and how many entries it has.
type IndexKeys struct {
	Name string
	Keys int64
}

// faultsMax bounds what Validate tells.
const faultsMax = 100

// Validate proves, on the visible snapshot, that each document of a collection is valid, and that documents and index entries map onto
// each other. What lies below, pages and checksums, is met on the way, but not gone through: that is storage.Store.Check's.
func (db *DB) Validate(ctx context.Context, ns Namespace) (Validation, error) {
	var v Validation
	if err := ns.Check(); err != nil {
		return v, err
	}
	err := db.read(func(sn *storage.Snapshot) error {
		c, sc, err := db.collection(sn, ns)
		if err != nil {
			return err
		}
		if c == nil {
			return mongoerr.NamespaceNotFound.Errorf("Collection '%s' does not exist to validate.", ns)
		}
		if c.def.Options.IsView() {
			return onView(ns)
		}
		v.Records = int64(sc.Count())
		for i := range c.def.Indexes {
			x := &c.def.Indexes[i]
			if t, ok := sc.Tree(x.Tree); ok {
				v.Indexes = append(v.Indexes, IndexKeys{x.Name, int64(t.Entries)})
			}
		}
		return db.checkCollection(ctx, c, sc, func(fault error) {
			if len(v.Faults) < faultsMax {
				v.Faults = append(v.Faults, fault)
			}
		})
	})
	return v, err
}

func (db *DB) checkCollection(ctx context.Context, c *collection, sc *storage.Collection, report func(error)) error {
	trees := map[storage.TreeID]bool{}
	for i := range c.def.Indexes {
		trees[c.def.Indexes[i].Tree], trees[c.def.Indexes[i].Side] = true, true
	}
	for _, id := range sc.Trees() {
		if !trees[id] {
			report(fmt.Errorf("%s: tree %d belongs to no index: %w", c.def.NS, id, storage.ErrCorrupt))
		}
	}
	tick := db.tick(ctx)
	sets := make([]keySet, len(c.indexes))
	want := make([]uint64, len(c.indexes))
	var buf []byte
	it := sc.Records(0, false)
	for it.Next() {
		if err := tick(); err != nil {
			return err
		}
		doc := bson.Raw(it.Bytes())
		if err := value.Validate(doc); err != nil {
			report(fmt.Errorf("%s: record %d: %v: %w", c.def.NS, it.ID(), err, storage.ErrCorrupt))
			continue
		}
		for i := range c.indexes {
			x := &c.indexes[i]
			t, ok := sc.Tree(x.Tree)
			if !ok || x.Building {
				continue
			}
			if err := sets[i].make(x, doc); err != nil {
				report(corruptIndex(c.def.NS, x, "record %d has no keys: %v", it.ID(), err))
				continue
			}
			if bits := uint64(sets[i].set.Multikey) &^ x.Multikey; bits != 0 {
				report(corruptIndex(c.def.NS, x, "record %d has arrays that the definition does not know of (%#x)", it.ID(), bits))
			}
			want[i] += uint64(len(sets[i].keys))
			for _, e := range sets[i].keys {
				buf = key.AppendRecordID(append(buf[:0], e.key...), uint64(it.ID()))
				trailer, ok, err := t.Get(buf)
				if err != nil {
					report(err)
				} else if !ok || !bytes.Equal(trailer, e.trailer) {
					report(corruptIndex(c.def.NS, x, "record %d has no entry, or another, for one of its keys", it.ID()))
				}
			}
		}
	}
	if err := it.Err(); err != nil {
		report(err)
		return nil
	}
	for i := range c.indexes {
		x := &c.indexes[i]
		t, ok := sc.Tree(x.Tree)
		switch {
		case !ok:
			report(corruptIndex(c.def.NS, x, "its tree is not there"))
		case !x.Building && t.Entries != want[i]:
			report(corruptIndex(c.def.NS, x, "%d entries for %d keys of documents", t.Entries, want[i]))
		}
		if x.unique && !x.Building && ok {
			checkNoTwice(c, x, t.Iter(), report)
		}
	}
	return nil
}

// checkNoTwice looks for two entries of one key.
func checkNoTwice(c *collection, x *index, it *btree.Iter, report func(error)) {
	var last []byte
	for ok := it.Seek(nil); ok; ok = it.Next() {
		k, id, ok := key.CutRecordID(it.Key())
		switch {
		case !ok:
			report(corruptIndex(c.def.NS, x, "an entry is too short"))
		case last != nil && bytes.Equal(k, last):
			report(corruptIndex(c.def.NS, x, "record %d has a key that another record has, too", id))
		}
		last = append(last[:0], k...)
	}
	if err := it.Err(); err != nil {
		report(err)
	}
}
