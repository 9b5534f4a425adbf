package engine

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Namespace names a collection: its database and its own name.
type Namespace = catalog.Namespace

// CreateCollection makes an empty collection. options are the fields of MongoDB's create command that are options of a
// collection (capped, validator, …), without create itself and the generic ones; what is not supported is refused. A
// collection of that name with the same options is no error; with others it is 48 NamespaceExists.
func (db *DB) CreateCollection(ctx context.Context, ns Namespace, options bson.Raw) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if err := ns.CheckCreate(); err != nil {
		return err
	}
	o, err := catalog.ParseOptions(options)
	if err != nil {
		return err
	}
	if err := db.checkView(ctx, ns, &o); err != nil {
		return err
	}
	if _, err := match.Parse(o.Validator, shared(db.env, o.Collation)); err != nil {
		return err
	}
	c, commit, err := db.create(ns, o)
	if wait := commit.Wait(); wait != nil {
		err = wait
	}
	if err == nil && !bytes.Equal(c.def.Options.Raw, o.Raw) {
		err = mongoerr.NamespaceExists.Errorf("namespace %s already exists, but with different options: %s", ns, value.Brief(value.Document(c.def.Options.Raw), 1000))
	}
	return clientError(err)
}

// DropCollection drops the collection, and tells whether there was one and how many indexes it had.
func (db *DB) DropCollection(ctx context.Context, ns Namespace) (existed bool, indexes int, err error) {
	if err := db.enter(); err != nil {
		return false, 0, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return false, 0, err
	}
	commit, existed, indexes, err := db.drop(ns)
	if wait := commit.Wait(); wait != nil {
		err = wait
	}
	return existed, indexes, clientError(err)
}

func (db *DB) drop(ns Namespace) (commit storage.Commit, existed bool, indexes int, err error) {
	commit, err = db.store.Write(func(w *storage.Writer) error {
		existed, indexes = false, 0
		zero := w.Lock(0)
		id, ok, err := catalog.Find(zero, ns)
		if err != nil || !ok {
			return err
		}
		sc := w.Lock(id)
		c, err := db.open(sc)
		if err != nil {
			return err
		}
		if existed = true; !c.def.Options.IsView() {
			indexes = c.def.Ready()
		}
		return catalog.Drop(zero, sc, ns)
	})
	return commit, existed, indexes, err
}

// DropDatabase drops all collections of the database, and tells whether there were any. Each is dropped by itself.
func (db *DB) DropDatabase(ctx context.Context, name string) (existed bool, err error) {
	if err := db.enter(); err != nil {
		return false, err
	}
	defer db.leave()
	if err := catalog.CheckDB(name); err != nil {
		return false, err
	}
	// The list is that of head, not what is visible: a collection whose creation is on its way goes, too.
	var list []catalog.Entry
	last, err := db.store.Write(func(w *storage.Writer) (err error) {
		list, err = catalog.List(w.Lock(0), name)
		return err
	})
	for i := 0; i < len(list) && err == nil; i++ {
		var commit storage.Commit
		commit, _, _, err = db.drop(list[i].Namespace)
		last = last.Later(commit)
	}
	if wait := last.Wait(); wait != nil {
		err = wait
	}
	return len(list) > 0, clientError(err)
}

// DatabaseInfo is one entry of listDatabases.
type DatabaseInfo struct {
	Name       string
	SizeOnDisk int64 // bytes
}

// ListDatabases answers with the databases that have collections, by name.
func (db *DB) ListDatabases(ctx context.Context) ([]DatabaseInfo, error) {
	var out []DatabaseInfo
	err := db.each("", func(c *collection, sc *storage.Collection) error {
		if len(out) == 0 || out[len(out)-1].Name != c.def.NS.DB {
			out = append(out, DatabaseInfo{Name: c.def.NS.DB})
		}
		s := statsOf(c, sc)
		out[len(out)-1].SizeOnDisk += s.StorageSize
		for _, x := range s.IndexSizes {
			out[len(out)-1].SizeOnDisk += x.Size
		}
		return ctx.Err()
	})
	return out, err
}

// CollectionInfo is one entry of listCollections.
type CollectionInfo struct {
	Name    string
	Options bson.Raw
	UUID    [16]byte
	IDIndex bson.Raw // {v: 2, key: {_id: 1}, name: "_id_"}
	View    bool
}

// ListCollections answers with the collections of a database, by name.
func (db *DB) ListCollections(ctx context.Context, database string) ([]CollectionInfo, error) {
	if err := catalog.CheckDB(database); err != nil {
		return nil, err
	}
	var out []CollectionInfo
	views := false
	err := db.each(database, func(c *collection, _ *storage.Collection) error {
		view := c.def.Options.IsView()
		out = append(out, CollectionInfo{c.def.NS.Coll, c.def.Options.Raw, c.def.UUID, c.def.Indexes[0].Raw, view})
		views = views || view
		return ctx.Err()
	})
	if views {
		out = append(out, viewsInfo(database))
		slices.SortFunc(out, func(a, b CollectionInfo) int { return strings.Compare(a.Name, b.Name) })
	}
	return out, err
}

// each calls f with the collections of a database, or of all if it is "", by name, in one snapshot.
func (db *DB) each(database string, f func(c *collection, sc *storage.Collection) error) error {
	return db.read(func(sn *storage.Snapshot) error {
		list, err := catalog.List(sn.Collection(0), database)
		if err != nil {
			return err
		}
		for _, e := range list {
			c, sc, err := db.collection(sn, e.Namespace)
			if err != nil {
				return err
			}
			if err := f(c, sc); err != nil {
				return err
			}
		}
		return nil
	})
}

// ListIndexes answers with the indexes as MongoDB's listIndexes does, _id first; 26 NamespaceNotFound if there is no such
// collection.
func (db *DB) ListIndexes(ctx context.Context, ns Namespace) ([]bson.Raw, error) {
	if err := ns.Check(); err != nil {
		return nil, err
	}
	var out []bson.Raw
	err := db.read(func(sn *storage.Snapshot) error {
		c, _, err := db.collection(sn, ns)
		if err != nil {
			return err
		}
		if c == nil {
			return mongoerr.NamespaceNotFound.Errorf("ns does not exist: %s", ns)
		}
		if c.def.Options.IsView() {
			return onView(ns)
		}
		for i := range c.def.Indexes {
			if x := &c.def.Indexes[i]; !x.Building {
				out = append(out, x.Raw)
			}
		}
		return nil
	})
	return out, err
}

// DropIndexes drops the index that which tells: "*" (all but _id), a name, an array of names, or a key pattern. It
// answers with how many indexes there were before.
func (db *DB) DropIndexes(ctx context.Context, ns Namespace, which bson.RawValue) (before int, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return 0, err
	}
	c := db.writing(ctx, ns, true)
	found, err := c.do(false, func(u *unit) error {
		before = len(u.def.Indexes)
		names, err := namesToDrop(u.def, which)
		if err != nil {
			return err
		}
		d := u.def.Clone()
		for _, name := range names {
			if err := u.dropIndex(d, name); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			return nil
		}
		return u.sc.SetDesc(d.Encode())
	})
	if err == nil && !found {
		err = mongoerr.NamespaceNotFound.Errorf("ns not found %s", ns)
	}
	return before, c.end(err)
}

// namesToDrop gives the names of the indexes that dropIndexes' argument tells.
func namesToDrop(d *catalog.Definition, which bson.RawValue) ([]string, error) {
	var names []string
	switch which.Type {
	case bson.TypeString:
		name := which.StringValue()
		if name == "*" {
			for i := range d.Indexes {
				if !d.Indexes[i].IsID() {
					names = append(names, d.Indexes[i].Name)
				}
			}
			return names, nil
		}
		names = append(names, name)
	case bson.TypeArray:
		for it := value.Elements(which.Value); it.Next(); {
			name, ok := it.Value().StringValueOK()
			if !ok {
				return nil, mongoerr.TypeMismatch.Errorf("dropIndexes: the names of indexes must be strings, but one is of type %s", value.TypeName(it.Value().Type))
			}
			names = append(names, name)
		}
	case bson.TypeEmbeddedDocument:
		for i := range d.Indexes {
			if catalog.SameKey(d.Indexes[i].Key, which.Document()) {
				names = append(names, d.Indexes[i].Name)
			}
		}
		switch {
		case len(names) == 0:
			return nil, mongoerr.IndexNotFound.Errorf("can't find index with key: %s", value.Brief(which, 1000))
		case len(names) > 1:
			return nil, mongoerr.AmbiguousIndexKeyPattern.Errorf("%d indexes found for key: %s, identify by name instead", len(names), value.Brief(which, 1000))
		}
	default:
		return nil, mongoerr.TypeMismatch.Errorf("dropIndexes: the index must be told by a string, an array of strings or a key pattern, not by a value of type %s", value.TypeName(which.Type))
	}
	seen := map[string]bool{}
	unique := names[:0]
	for _, name := range names {
		i := d.Index(name)
		switch {
		case i < 0:
			return nil, mongoerr.IndexNotFound.Errorf("index not found with name [%s]", name)
		case d.Indexes[i].IsID():
			return nil, mongoerr.InvalidOptions.Errorf("cannot drop _id index")
		case !seen[name]:
			seen[name] = true
			unique = append(unique, name)
		}
	}
	return unique, nil
}
