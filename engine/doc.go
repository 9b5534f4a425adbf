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
// # Errors
//
// Errors are made by package mongoerr or can be turned into MongoDB's codes by it; see errors.go for storage's.
// context.DeadlineExceeded becomes 50 MaxTimeMSExpired and context.Canceled 11601 Interrupted.
package engine
