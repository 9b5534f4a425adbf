package engine

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// FindByID is the short way for the query that applications make most: {_id: value}, and nothing else. It calls emit with the document,
// if there is one. ok is false, and nothing was done, if f is not such a query, or the collection is one that needs the long way, Find.
func (db *DB) FindByID(ctx context.Context, ns Namespace, f *Find, emit func(doc bson.Raw)) (ok bool, err error) {
	id, ok := f.byID()
	if !ok || ns.Coll == viewsName {
		return false, nil
	}
	if err := db.enter(); err != nil {
		return true, err
	}
	defer db.leave()
	if err := ctx.Err(); err != nil {
		return true, err
	}
	sn := db.store.Snapshot()
	defer sn.Release()
	err = sn.Guard(func() error {
		c, sc, err := db.collection(sn, ns)
		if err != nil || c == nil {
			return err
		}
		if c.def.Options.IsView() || c.def.Options.Collation != nil {
			ok = false
			return nil
		}
		record, found, err := recordOf(c, sc, id)
		if err != nil || !found {
			return err
		}
		doc, err := sc.Record(record)
		if err == nil {
			emit(doc)
		}
		return err
	})
	return ok, clientError(err)
}

// recordOf finds the record with an _id. Strings are told apart by their bytes.
func recordOf(c *collection, sc *storage.Collection, id bson.RawValue) (record storage.RecordID, found bool, err error) {
	t, ok := sc.Tree(catalog.IDTree)
	if !ok {
		return 0, false, corruptIndex(c.def.NS, &c.indexes[0], "its tree is not there")
	}
	var room [64]byte
	want := key.Append(room[:0], id)
	it := t.Iter()
	if !it.Seek(want) {
		return 0, false, it.Err()
	}
	k, n, ok := key.CutRecordID(it.Key())
	return storage.RecordID(n), ok && bytes.Equal(k, want), it.Err()
}

// byID says whether f is a test of _id for one plain value.
func (f *Find) byID() (id bson.RawValue, ok bool) {
	it := value.Elements(f.Filter)
	if !it.Next() || string(it.Name()) != "_id" {
		return id, false
	}
	switch id = it.Value(); id.Type {
	case bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64, bson.TypeString, bson.TypeBinary, bson.TypeDateTime:
	default:
		return id, false
	}
	if it.Next() {
		return id, false
	}
	return id, len(f.Sort) == 0 && len(f.Projection) == 0 && f.Hint.Type == 0 && len(f.Min) == 0 && len(f.Max) == 0 && !f.ReturnKey && f.Skip == 0 &&
		f.Reads == nil && len(f.Collation) == 0 && len(f.Let) == 0 && !f.Tailable && !f.ShowRecordID
}
