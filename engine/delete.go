package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Delete is one delete statement.
type Delete struct {
	Filter    bson.Raw
	Multi     bool // limit 0; otherwise one document at most
	Hint      bson.RawValue
	Collation bson.Raw
	Let       bson.Raw
}

// DeleteResult sums up the statements.
type DeleteResult struct {
	N      int
	Errors []WriteError
}

// Delete runs the statements in order.
func (db *DB) Delete(ctx context.Context, ns Namespace, statements []Delete, ordered bool) (DeleteResult, error) {
	if err := db.enter(); err != nil {
		return DeleteResult{}, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return DeleteResult{}, err
	}
	if err := db.noView(ns); err != nil {
		return DeleteResult{}, err
	}
	c := db.writing(ctx, ns, ordered)
	total := 0
	for i := range statements {
		s := &statements[i]
		n, err := c.remove(s)
		total += n.matched
		if err != nil {
			if !ofStatement(err) {
				return DeleteResult{total, c.errors}, c.end(err)
			}
			if c.failed(i, err) {
				break
			}
		}
	}
	return DeleteResult{total, c.errors}, c.end(nil)
}

func (c *writing) remove(s *Delete) (tally, error) {
	in, err := c.db.terms(c.ctx, c.ns, s.Let, s.Collation)
	if err != nil {
		return tally{}, err
	}
	t, err := c.target(in, s.Filter, nil, s.Hint)
	if err != nil {
		return tally{}, err
	}
	return c.change(t, s.Multi, remove)
}

// remove is the edit that removes.
func remove(u *unit, m matched) (bool, error) { return true, u.remove(m.id, m.doc) }
