package engine

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/storage"
)

// InsertResult tells how many documents are in, and which were refused. If the insert was ordered there is at most one
// error, and no later document was tried.
type InsertResult struct {
	N      int
	Errors []WriteError
}

// Insert adds documents, and makes the collection if there is none. A document without _id gets an ObjectID; _id is moved
// to the front. The error is one of the whole command (bad namespace, storage failed): what InsertResult says has happened
// nevertheless, unless the error says that the outcome is unknown.
//
// The documents are not kept.
func (db *DB) Insert(ctx context.Context, ns Namespace, docs []bson.Raw, ordered bool) (InsertResult, error) {
	if err := db.enter(); err != nil {
		return InsertResult{}, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return InsertResult{}, err
	}
	if err := db.noView(ns); err != nil {
		return InsertResult{}, err
	}
	c := db.writing(ctx, ns, ordered)
	ready := make([]bson.Raw, 0, min(len(docs), unitDocs))
	n := 0
	for at := 0; at < len(docs); {
		// What can be done without the lock is done before it is taken.
		ready = ready[:0]
		var bad error
		size := 0
		for i := at; i < len(docs) && len(ready) < unitDocs && size < unitBytes; i++ {
			var doc bson.Raw
			if doc, bad = db.prepare(docs[i]); bad != nil {
				break
			}
			ready = append(ready, doc)
			size += len(doc)
		}
		inserted, stop, err := c.insert(at, ready)
		n += inserted
		at += len(ready)
		if err != nil {
			return InsertResult{n, c.errors}, c.end(err)
		}
		if stop {
			break
		}
		if bad != nil {
			if c.failed(at, bad) {
				break
			}
			at++
		}
	}
	return InsertResult{n, c.errors}, c.end(nil)
}

// insert adds docs, the first of which is number at of the command. It tells how many are in, and whether the command ends here.
func (c *writing) insert(at int, docs []bson.Raw) (inserted int, stop bool, err error) {
	for done := 0; done < len(docs); {
		var tried, in int
		var bad []WriteError
		_, err := c.do(true, func(u *unit) error {
			tried, in, bad = 0, 0, bad[:0]
			for _, doc := range docs[done:] {
				if u.full(tried) {
					break
				}
				err := u.insert(doc)
				if err != nil && !refused(err) {
					return err
				}
				tried++
				if err == nil {
					in++
					continue
				}
				bad = append(bad, WriteError{at + done + tried - 1, err})
				if c.ordered {
					break
				}
			}
			return nil
		})
		if errors.Is(err, storage.ErrDiskFull) {
			// Nothing of this write was kept.
			tried, in, bad = len(docs)-done, 0, bad[:0]
			for i := range tried {
				bad = append(bad, WriteError{at + done + i, err})
			}
		} else if err != nil {
			return inserted, true, err
		}
		done += tried
		inserted += in
		for _, e := range bad {
			if c.failed(e.Index, e.Err) {
				return inserted, true, nil
			}
		}
	}
	return inserted, false, nil
}
