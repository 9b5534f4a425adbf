package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
)

// Namespace names a collection: its database and its own name.
type Namespace = catalog.Namespace

// CreateCollection makes an empty collection. options are the fields of MongoDB's create command that are options of a
// collection (capped, validator, …), without create itself and the generic ones; what is not supported is refused. A
// collection of that name with the same options is no error; with others it is 48 NamespaceExists.
func (db *DB) CreateCollection(ctx context.Context, ns Namespace, options bson.Raw) error {
	panic("not built yet")
}

// DropCollection drops the collection, and tells whether there was one and how many indexes it had.
func (db *DB) DropCollection(ctx context.Context, ns Namespace) (existed bool, indexes int, err error) {
	panic("not built yet")
}

// DropDatabase drops all collections of the database, and tells whether there were any.
func (db *DB) DropDatabase(ctx context.Context, name string) (existed bool, err error) {
	panic("not built yet")
}

// DatabaseInfo is one entry of listDatabases.
type DatabaseInfo struct {
	Name       string
	SizeOnDisk int64 // bytes
}

// ListDatabases answers with the databases that have collections, by name.
func (db *DB) ListDatabases(ctx context.Context) ([]DatabaseInfo, error) {
	panic("not built yet")
}

// CollectionInfo is one entry of listCollections.
type CollectionInfo struct {
	Name    string
	Options bson.Raw
	UUID    [16]byte
	IDIndex bson.Raw // {v: 2, key: {_id: 1}, name: "_id_"}
}

// ListCollections answers with the collections of a database, by name.
func (db *DB) ListCollections(ctx context.Context, database string) ([]CollectionInfo, error) {
	panic("not built yet")
}

// CreateIndexesResult is what MongoDB's reply is made of. If After equals Before, all the indexes existed already.
type CreateIndexesResult struct {
	Before, After     int
	CreatedCollection bool
}

// CreateIndexes builds indexes, given as MongoDB's createIndexes has them ({key: …, name: …, unique: …}), and makes the
// collection if there is none. All of them are there afterwards, or none.
func (db *DB) CreateIndexes(ctx context.Context, ns Namespace, specs []bson.Raw) (CreateIndexesResult, error) {
	panic("not built yet")
}

// ListIndexes answers with the indexes as MongoDB's listIndexes does, _id first; 26 NamespaceNotFound if there is no such
// collection.
func (db *DB) ListIndexes(ctx context.Context, ns Namespace) ([]bson.Raw, error) {
	panic("not built yet")
}

// DropIndexes drops the index that which tells: "*" (all but _id), a name, an array of names, or a key pattern. It
// answers with how many indexes there were before.
func (db *DB) DropIndexes(ctx context.Context, ns Namespace, which bson.RawValue) (before int, err error) {
	panic("not built yet")
}
