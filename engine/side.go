package engine

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// sideKind is the first byte of a key in the side tree of an index that is being built, by which writers tell the build what it must
// know:
//
//	t, record id (8 bytes)    the index has this record's entries as they are at head, whatever the build's snapshot says
//	u, record id              this record has no keys: the document is one that the index does not allow
//	d, key                    a unique index has, or had, several entries of this key
//
// The writes of documents themselves go through, since the index is not there yet. What is noted as u or d is judged by the build's last
// write; only what is still wrong then makes it fail.
type sideKind byte

const (
	sideTouched sideKind = 't'
	sideUnfit   sideKind = 'u'
	sideDouble  sideKind = 'd'
)

func (k sideKind) record(id storage.RecordID) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(k)}, uint64(id))
}

func (k sideKind) key(b []byte) []byte { return append([]byte{byte(k)}, b...) }

// note tells the build of index i, if there is one, that a record has changed; set is what it has now.
func (u *unit) note(i int, id storage.RecordID, set *keySet) error {
	x := &u.indexes[i]
	if !x.Building {
		return nil
	}
	put := func(k []byte) error { return u.sc.Put(x.Side, k, nil) }
	if err := put(sideTouched.record(id)); err != nil {
		return err
	}
	if set == nil {
		return nil
	}
	if set.unfit {
		return put(sideUnfit.record(id))
	}
	for _, e := range set.keys {
		if !x.unique {
			break
		}
		twice, err := u.another(x, e.key, id)
		if err == nil && twice {
			err = put(sideDouble.key(e.key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// another says whether a record other than self has an entry of the key k.
func (u *unit) another(x *index, k []byte, self storage.RecordID) (bool, error) {
	t, ok := u.sc.Tree(x.Tree)
	if !ok {
		return false, corruptIndex(u.def.NS, x, "its tree is not there")
	}
	it := t.Iter()
	for ok := it.Seek(k); ok && bytes.HasPrefix(it.Key(), k); ok = it.Next() {
		_, id, ok := key.CutRecordID(it.Key())
		if !ok {
			return false, corruptIndex(u.def.NS, x, "an entry is too short")
		}
		if storage.RecordID(id) != self {
			return true, nil
		}
	}
	return false, it.Err()
}

// judgeSide looks at what the writers have noted, and fails if x cannot be.
func (u *unit) judgeSide(x *index) error {
	side, ok := u.sc.Tree(x.Side)
	if !ok {
		return corruptIndex(u.def.NS, x, "its side tree is not there")
	}
	it := side.Iter()
	double, unfit := []byte{byte(sideDouble)}, []byte{byte(sideUnfit)}
	for ok := it.Seek(double); ok && bytes.HasPrefix(it.Key(), double); ok = it.Next() {
		if err := u.judgeDouble(x, it.Key()[1:]); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	var set keySet
	for ok := it.Seek(unfit); ok && bytes.HasPrefix(it.Key(), unfit); ok = it.Next() {
		doc, err := u.sc.Record(storage.RecordID(binary.BigEndian.Uint64(it.Key()[1:])))
		if errors.Is(err, storage.ErrNoRecord) {
			continue
		}
		if err == nil {
			err = set.make(x, doc)
		}
		if err != nil {
			return err
		}
	}
	return it.Err()
}

// judgeDouble fails if there are several entries of the key k.
func (u *unit) judgeDouble(x *index, k []byte) error {
	t, ok := u.sc.Tree(x.Tree)
	if !ok {
		return corruptIndex(u.def.NS, x, "its tree is not there")
	}
	it := t.Iter()
	if !it.Seek(k) || !bytes.HasPrefix(it.Key(), k) {
		return it.Err()
	}
	_, id, _ := key.CutRecordID(it.Key())
	twice, err := u.another(x, k, storage.RecordID(id))
	if err != nil || !twice {
		return err
	}
	doc, err := u.sc.Record(storage.RecordID(id))
	if err != nil {
		return err
	}
	return duplicateKey(u.def.NS, x, k, doc)
}
