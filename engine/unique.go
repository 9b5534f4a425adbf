package engine

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// An index becomes unique in two steps. With prepareUnique it refuses writes that would make a key double; so a later snapshot without a
// key that is double is proof that there will be none, and the definition may say unique.

// violationsMax bounds what is told of double keys, in bytes.
const violationsMax = 1 << 20

// checkConvertible looks for double keys in the index that m makes unique.
func (db *DB) checkConvertible(ctx context.Context, ns Namespace, m *CollMod) error {
	return db.read(func(sn *storage.Snapshot) error {
		c, sc, err := db.collection(sn, ns)
		if err != nil || c == nil {
			return err // which the change itself meets
		}
		i, err := m.find(c.def)
		if err != nil {
			return err
		}
		x := &c.indexes[i]
		if x.Unique {
			return nil
		}
		if !x.PrepareUnique {
			return notPrepared(x.Name)
		}
		t, ok := sc.Tree(x.Tree)
		if !ok {
			return corruptIndex(ns, x, "its tree is not there")
		}
		var last []byte
		var group []uint64
		violations := bson.A{}
		size := 0
		end := func() error {
			if len(group) < 2 {
				return nil
			}
			ids := bson.A{}
			for _, id := range group {
				doc, err := sc.Record(storage.RecordID(id))
				if err != nil {
					return err
				}
				id := value.Lookup(doc, "_id")
				ids = append(ids, bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)})
				size += len(id.Value) + 16
			}
			violations = append(violations, bson.D{{Key: "ids", Value: ids}})
			return nil
		}
		tick := db.tick(ctx)
		it := t.Iter()
		for ok := it.Seek(nil); ok && size < violationsMax; ok = it.Next() {
			k, id, _ := key.CutRecordID(it.Key())
			if last == nil || !bytes.Equal(k, last) {
				if err := end(); err != nil {
					return err
				}
				last, group = append(last[:0], k...), group[:0]
				if err := tick(); err != nil {
					return err
				}
			}
			group = append(group, id)
		}
		if err := it.Err(); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
		if len(violations) > 0 {
			return mongoerr.CannotConvertIndexToUnique.New("Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.").
				With("violations", violations)
		}
		return nil
	})
}

func notPrepared(name string) error {
	return mongoerr.InvalidOptions.Errorf("Cannot make index unique with collMod: index %s is not prepared for it, by collMod with prepareUnique: true", name)
}
