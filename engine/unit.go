package engine

import (
	"bytes"
	"errors"
	"log/slog"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// unit is a collection locked inside a storage.Write, at head. Its edits check before they edit: an *mongoerr.Error means that
// this document was refused and nothing was done for it; any other error means that the write must be given up.
type unit struct {
	*collection
	w  *storage.Writer
	sc *storage.Collection

	log        *slog.Logger
	sortMemory int
	unchecked  bool // documents need not be valid

	learned  *catalog.Definition // with what is new about arrays; nil: nothing is
	old, new []keySet
	buf      []byte
}

// errGone: the collection was dropped since it was looked up.
var errGone = errors.New("the collection is gone")

// A statement on many documents ends its storage.Write at either of these and goes on in the next, so that the lock is not
// held for much more than a millisecond.
const (
	unitDocs  = 128
	unitBytes = 256 << 10
)

// lock takes the collection's lock. c may have been read long ago.
func (db *DB) lock(w *storage.Writer, c *collection) (*unit, error) {
	sc := w.Lock(c.id)
	if sc == nil {
		return nil, errGone
	}
	now, err := db.open(sc)
	if err != nil {
		return nil, err
	}
	if !c.is(now.def) {
		return nil, errGone
	}
	return &unit{collection: now, w: w, sc: sc, log: db.log, sortMemory: db.opt.SortMemory, old: make([]keySet, len(now.indexes)), new: make([]keySet, len(now.indexes))}, nil
}

// full says that the write has grown large enough.
func (u *unit) full(docs int) bool {
	_, size := u.w.Size()
	return docs >= unitDocs || size >= unitBytes
}

// insert adds a document that was prepared.
func (u *unit) insert(doc bson.Raw) error {
	if err := u.validate(nil, doc); err != nil {
		return err
	}
	if o := &u.def.Options; o.Capped && int64(len(doc)) > o.Size {
		return mongoerr.BadValue.Errorf("object to insert exceeds cappedMaxSize: %d bytes, and the collection holds %d", len(doc), o.Size)
	}
	if err := u.makeKeys(doc, u.new); err != nil {
		return err
	}
	for i := range u.indexes {
		if err := u.checkUnique(i, u.new[i].keys, 0, doc); err != nil {
			return err
		}
	}
	id, err := u.sc.Insert(doc)
	if err != nil {
		return err
	}
	if err := u.putAll(id); err != nil {
		return err
	}
	return u.evict()
}

// replace changes the document of a record. before is what it holds; _id is the same in both.
func (u *unit) replace(id storage.RecordID, before, after bson.Raw) error {
	if err := u.validate(before, after); err != nil {
		return err
	}
	if err := u.makeKeys(before, u.old); err != nil {
		return err
	}
	if err := u.makeKeys(after, u.new); err != nil {
		return err
	}
	for i := range u.indexes {
		if !u.indexes[i].Building { // whose tree need not have what stays
			u.old[i].keys, u.new[i].keys = difference(u.old[i].keys, u.new[i].keys)
		}
		if err := u.checkUnique(i, u.new[i].keys, id, after); err != nil {
			return err
		}
	}
	for i := range u.indexes {
		if err := u.unput(i, &u.old[i], id); err != nil {
			return err
		}
	}
	if err := u.sc.Replace(id, after); err != nil {
		return err
	}
	return u.putAll(id)
}

// remove removes a record, which holds doc.
func (u *unit) remove(id storage.RecordID, doc bson.Raw) error {
	if err := u.makeKeys(doc, u.old); err != nil {
		return err
	}
	for i := range u.indexes {
		if err := u.unput(i, &u.old[i], id); err != nil {
			return err
		}
		if err := u.note(i, id, nil); err != nil {
			return err
		}
	}
	return u.sc.Remove(id)
}

// makeKeys makes the document's keys. An index that is being built refuses nothing yet.
func (u *unit) makeKeys(doc bson.Raw, sets []keySet) error {
	for i := range u.indexes {
		err := sets[i].make(&u.indexes[i], doc)
		if err == nil {
			continue
		}
		if !u.indexes[i].Building || !refused(err) {
			return err
		}
		sets[i].keys, sets[i].unfit = nil, true
	}
	return nil
}

// difference leaves in two ascending lists what is to be removed and what is to be put. An entry whose key is in both is put if
// its trailer changes.
func difference(before, after []entry) (remove, put []entry) {
	i, j := 0, 0
	remove, put = before[:0], after[:0]
	for i < len(before) && j < len(after) {
		switch c := bytes.Compare(before[i].key, after[j].key); {
		case c < 0:
			remove = append(remove, before[i])
			i++
		case c > 0:
			put = append(put, after[j])
			j++
		default:
			if !bytes.Equal(before[i].trailer, after[j].trailer) {
				put = append(put, after[j])
			}
			i++
			j++
		}
	}
	return append(remove, before[i:]...), append(put, after[j:]...)
}

// checkUnique refuses doc if index i is unique and another record than self has one of keys.
func (u *unit) checkUnique(i int, keys []entry, self storage.RecordID, doc bson.Raw) error {
	x := &u.indexes[i]
	if !x.unique && !x.PrepareUnique || x.Building {
		return nil
	}
	for _, e := range keys {
		twice, err := u.another(x, e.key, self)
		if err != nil {
			return err
		}
		if twice {
			return duplicateKey(u.def.NS, x, e.key, doc)
		}
	}
	return nil
}

// putAll puts the new keys of all indexes.
func (u *unit) putAll(id storage.RecordID) error {
	for i := range u.indexes {
		if err := u.put(i, &u.new[i], id); err != nil {
			return err
		}
		if err := u.note(i, id, &u.new[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u *unit) put(i int, set *keySet, id storage.RecordID) error {
	x := &u.indexes[i]
	if bits := uint64(set.set.Multikey); !x.Knows(bits, set.set.Arrays) {
		if u.learned == nil {
			u.learned = u.def.Clone()
		}
		u.learned.Indexes[i].Learn(bits, set.set.Arrays)
	}
	for _, e := range set.keys {
		if err := u.sc.Put(x.Tree, u.entry(e.key, id), e.trailer); err != nil {
			return err
		}
	}
	return nil
}

func (u *unit) unput(i int, set *keySet, id storage.RecordID) error {
	x := &u.indexes[i]
	for _, e := range set.keys {
		found, err := u.sc.Delete(x.Tree, u.entry(e.key, id))
		if err != nil {
			return err
		}
		if !found && !x.Building {
			return corruptIndex(u.def.NS, x, "record %d has no entry", id)
		}
	}
	return nil
}

// entry is the key of an index entry: the document's key and, so that equal ones keep apart, its record.
func (u *unit) entry(k []byte, id storage.RecordID) []byte {
	u.buf = key.AppendRecordID(append(u.buf[:0], k...), uint64(id))
	return u.buf
}

// end writes what the unit has learned about its indexes into the descriptor.
func (u *unit) end() error {
	if u.learned == nil {
		return nil
	}
	return u.sc.SetDesc(u.learned.Encode())
}

// refused says whether err refuses one document and leaves the write as it was before.
func refused(err error) bool {
	var coded *mongoerr.Error
	return errors.As(err, &coded)
}
