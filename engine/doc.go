// Package engine is the database in process: commands' meaning without their wire form. The storage column, which knows
// bytes, and the query column, which knows documents, meet here and nowhere else.
//
// # One write, one read
//
// A write searches on the visible snapshot without a lock, then, in a storage.Write that locks the collection, reads each
// candidate again at head, evaluates the filter again and edits: the record, and the entries of every index. One document
// with its index entries is a unit; one storage.Write carries up to 128 of them, so the lock is held for about a
// millisecond. Every reply of a write, errors and no-ops included, waits for the commit of what it looked at.
//
// A read pins the visible snapshot for one batch of a cursor, plans (package query), and runs. Between batches a Cursor
// holds a position and no pin.
//
// # Indexes
//
// An entry's key is the document's key in the index (package key) and the RecordID behind it, in unique indexes, too: whether a key is taken is
// looked up under the collection's lock. Its value is what the key forgets. The index on _id is tree 1 of its collection.
//
// An index build runs beside writers: they keep what it has put up to date, and tell it of the records that it need not put (side.go). The first
// of its writes enters the index as being built, the last as ready. One that is found half-built at Open is dropped: nobody was told that it exists.
// A path on which a document has had an array stays known as such (Multikey) as long as the index lives; the planner depends on it.
//
// # One insert, from socket to disk
//
//	conn.serve (server)          reads a message (wire.Reader) and has its command run (command.Client.Run)
//	insert (command)             takes the command's fields apart, calls DB.Insert
//	DB.Insert                    without a lock: checks each document, gives it an _id; then, many at a time, in a storage.Write:
//	unit.insert                  under the collection's lock: makes the keys of all indexes (package key), looks for them in those
//	                             that are unique, then
//	  storage.Collection.Insert  puts the document behind the last one in the open extent (slab.Write) and its place
//	                             into the record table (slab.Table), and
//	  storage.Collection.Put     puts an entry into the tree of each index (btree), all in pages of the write's own; each adds a record
//	                             to the write's log
//	storage.Writer.install       hangs it all into the open batch, and the new heads into the collection
//	writing.end, Commit.Wait     seal, wal.Log.Append and Sync, publish: the document is durable, and visible
//	conn.answer (server)         sends the reply
//
// Later a checkpoint (storage.Store.Checkpoint) writes the pages and the extent to the data file.
//
// # One find, from socket to disk
//
//	find (command)               calls DB.Find, which parses: filter (match), sort (sortkey), projection (project)
//	Cursor.Batch                 pins the visible snapshot (storage.Store.Snapshot), finds the collection in it (package catalog), and has
//	query.New                    choose a plan: ranges of an index's keys, or all records
//	query.Run.Next               walks them by way of source.go: an entry of the tree gives a RecordID, the record table its place, and
//	storage.Store.record         its bytes: from memory, if no checkpoint has written them, else from the mapped file, where the
//	                             checksum is computed once
//	Cursors (command)            keeps the cursor, if there is more, under a number, and without the pin
//
// The bytes of a snapshot die with its pin: what goes into a reply is copied before.
//
// # One pipeline
//
// DB.Aggregate parses it (package pipeline), which splits off a front that is a find; this is planned like any other. What comes out
// flows through the stages, all in one snapshot: other collections (world.go) are read in it, too. $out and $merge write (sink.go) while
// the snapshot is pinned, and so never see what they write. Between batches there is no pin here either; see Aggregation.
//
// Expressions anywhere (in $expr, computed fields, updates) are evaluated with the command's terms (terms.go).
//
// # Errors
//
// Errors are made by package mongoerr or can be turned into MongoDB's codes by it; see errors.go for storage's.
// context.DeadlineExceeded becomes 50 MaxTimeMSExpired and context.Canceled 11601 Interrupted.
package engine
