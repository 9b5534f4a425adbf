package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// Names is the tree of collection 0.
const Names storage.TreeID = 1

func nameKey(ns Namespace) []byte {
	k := make([]byte, 0, len(ns.DB)+1+len(ns.Coll))
	return append(append(append(k, ns.DB...), 0), ns.Coll...)
}

// Version is the counter of changes of names, from collection 0.
func Version(zero *storage.Collection) uint64 {
	if d := zero.Desc(); len(d) == 8 {
		return binary.LittleEndian.Uint64(d)
	}
	return 0
}

// Find looks a name up.
func Find(zero *storage.Collection, ns Namespace) (id storage.CollID, ok bool, err error) {
	t, ok := zero.Tree(Names)
	if !ok {
		return 0, false, nil
	}
	v, ok, err := t.Get(nameKey(ns))
	if err != nil || !ok {
		return 0, false, err
	}
	id, err = decodeID(ns, v)
	return id, err == nil, err
}

func decodeID(ns Namespace, v []byte) (storage.CollID, error) {
	if len(v) != 4 {
		return 0, fmt.Errorf("catalog: name %s: a value of %d bytes: %w", ns, len(v), storage.ErrCorrupt)
	}
	return storage.CollID(binary.LittleEndian.Uint32(v)), nil
}

// Entry is a name and the collection it leads to.
type Entry struct {
	Namespace
	ID storage.CollID
}

// List gives the collections of a database, or of all if database is "", by name.
func List(zero *storage.Collection, database string) ([]Entry, error) {
	t, ok := zero.Tree(Names)
	if !ok {
		return nil, nil
	}
	var prefix []byte
	if database != "" {
		prefix = append([]byte(database), 0)
	}
	var out []Entry
	it := t.Iter()
	for ok := it.Seek(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		db, coll, found := strings.Cut(string(it.Key()), "\x00")
		if !found {
			return nil, fmt.Errorf("catalog: name %q has no database: %w", it.Key(), storage.ErrCorrupt)
		}
		e := Entry{Namespace: Namespace{DB: db, Coll: coll}}
		var err error
		if e.ID, err = decodeID(e.Namespace, it.Value()); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, it.Err()
}

// CheckCase refuses a new database whose name differs from another's by case only: 13297 DatabaseDifferCase.
func CheckCase(zero *storage.Collection, database string) error {
	t, ok := zero.Tree(Names)
	if !ok {
		return nil
	}
	it := t.Iter()
	for ok := it.Seek(nil); ok; {
		db, _, _ := strings.Cut(string(it.Key()), "\x00")
		if db != database && strings.EqualFold(db, database) {
			return mongoerr.DatabaseDifferCase.Errorf("db already exists with different case already have: [%s] trying to create [%s]", db, database)
		}
		ok = it.Seek(append([]byte(db), 1)) // the next database: names have no 0x00
	}
	return it.Err()
}

// Create makes a collection inside a write that has locked zero, which is collection 0 at head. The name must be free.
func Create(w *storage.Writer, zero *storage.Collection, d *Definition) (*storage.Collection, error) {
	if _, ok := zero.Tree(Names); !ok {
		if err := zero.CreateTree(Names); err != nil {
			return nil, err
		}
	}
	c, err := w.Create(d.Encode())
	if err != nil {
		return nil, err
	}
	for i := range d.Indexes {
		if err := c.CreateTree(d.Indexes[i].Tree); err != nil {
			return nil, err
		}
	}
	if err := zero.Put(Names, nameKey(d.NS), binary.LittleEndian.AppendUint32(nil, uint32(c.ID()))); err != nil {
		return nil, err
	}
	return c, bump(zero)
}

// Drop removes a collection and its name inside a write that has locked both.
func Drop(zero, c *storage.Collection, ns Namespace) error {
	if _, err := zero.Delete(Names, nameKey(ns)); err != nil {
		return err
	}
	if err := c.Drop(); err != nil {
		return err
	}
	return bump(zero)
}

func bump(zero *storage.Collection) error {
	return zero.SetDesc(binary.LittleEndian.AppendUint64(nil, Version(zero)+1))
}

// Rename gives a collection another name, which must be free, inside a write that has locked both.
func Rename(zero, c *storage.Collection, d *Definition, to Namespace) error {
	if _, err := zero.Delete(Names, nameKey(d.NS)); err != nil {
		return err
	}
	if err := zero.Put(Names, nameKey(to), binary.LittleEndian.AppendUint32(nil, uint32(c.ID()))); err != nil {
		return err
	}
	d = d.Clone()
	d.NS = to
	if err := c.SetDesc(d.Encode()); err != nil {
		return err
	}
	return bump(zero)
}
