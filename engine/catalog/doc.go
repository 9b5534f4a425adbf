// Package catalog is what a database knows of its collections: their names, and the definition of each.
//
// Two things are kept, both in the storage column's terms. Collection 0 has one tree, Names, which maps
//
//	database ‖ 0x00 ‖ collection → CollID (4 bytes, little endian)
//
// and each collection's descriptor is its Definition as one BSON document:
//
//	{ns: "db.coll", db: "db", uuid: BinData(4), options: {…}, nextTree: 4, indexes: [
//	    {spec: {v: 2, key: {_id: 1}, name: "_id_"}, tree: 1, building: false, multikey: 0}, …]}
//
// where spec is the index as listIndexes shows it, tree the number of its storage tree (never used twice in a collection)
// and multikey has bit i set once a document had an array at or above the i-th path of the key. An index that is being built has a
// second tree, side. A wildcard index has arrays, the paths at which there were arrays, or bit 1 of multikey where these are too many.
//
// Collection 0's own descriptor is a counter of changes, 8 bytes little endian. It grows with every change of names, so
// two snapshots that have the same counter have the same names.
//
// A change of names locks collection 0 first and the collection after it. A change of an index locks the collection alone.
//
// What always holds: every name leads to a collection whose definition has that name, and every collection but 0 has one
// name. CollIDs are used again after a drop; a UUID never is. Who remembers a collection beyond a snapshot remembers its
// UUID.
package catalog
