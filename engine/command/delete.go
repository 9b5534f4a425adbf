package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// remove is the command delete, whose name Go has taken.
func remove(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	a, err := c.deleteArgs()
	if err != nil {
		return err
	}
	c.ops.remove.Add(int64(len(a.statements)))
	res, err := c.db.Delete(c.ctx, ns, a.statements, a.ordered)
	if err != nil {
		return err
	}
	c.out = appendCount(c.out, "n", int64(res.N))
	c.out = appendWriteErrors(c.out, res.Errors)
	return nil
}

// deleteArgs are the fields of delete.
type deleteArgs struct {
	ordered    bool
	statements []engine.Delete
}

func (c *call) deleteArgs() (*deleteArgs, error) {
	a := &deleteArgs{ordered: true}
	var docs []bson.Raw
	var let bson.Raw
	given := false
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "deletes":
			given = true
			return true, f.documents(&docs)
		case "ordered":
			return true, f.bool(&a.ordered)
		case "let":
			return true, f.document(&let)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, missing("delete", "deletes")
	}
	if err := checkBatch(len(docs)); err != nil {
		return nil, err
	}
	a.statements = make([]engine.Delete, len(docs))
	for i, d := range docs {
		if err := parseDelete(d, &a.statements[i]); err != nil {
			return nil, err
		}
		a.statements[i].Let = let
	}
	return a, nil
}

func parseDelete(doc bson.Raw, d *engine.Delete) error {
	const parent = "delete.deletes"
	limited := false
	err := fieldsOf(parent, doc, func(f field) (bool, error) {
		switch f.name {
		case "q":
			return true, f.document(&d.Filter)
		case "limit":
			var n int64
			if err := f.int64(&n); err != nil {
				return true, err
			}
			if n != 0 && n != 1 {
				return true, mongoerr.FailedToParse.Errorf("The limit field in delete objects must be 0 or 1. Got %d", n)
			}
			limited, d.Multi = true, n == 0
		case "hint":
			return true, f.hint(&d.Hint)
		case "collation":
			return true, f.document(&d.Collation)
		default:
			return false, nil
		}
		return true, nil
	})
	switch {
	case err != nil:
		return err
	case d.Filter == nil:
		return missing(parent, "q")
	case !limited:
		return missing(parent, "limit")
	}
	return nil
}
