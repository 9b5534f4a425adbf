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
	c.ops.remove.Add(int64(len(a.deletes)))
	res, err := c.db.Delete(c.ctx, ns, a.deletes, a.ordered)
	if err != nil {
		return err
	}
	c.out = appendCount(c.out, "n", int64(res.N))
	c.out = appendWriteErrors(c.out, res.Errors)
	return nil
}

// deleteArgs are the fields of delete.
type deleteArgs struct {
	batch
	deletes []engine.Delete
}

func (c *call) deleteArgs() (*deleteArgs, error) {
	a := &deleteArgs{}
	if err := c.parseBatch("deletes", &a.batch); err != nil {
		return nil, err
	}
	a.deletes = make([]engine.Delete, len(a.statements))
	for i, doc := range a.statements {
		a.deletes[i].Let = a.let
		if err := parseDelete(doc, &a.deletes[i]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func parseDelete(doc bson.Raw, d *engine.Delete) error {
	const parent = "delete.deletes"
	limited := false
	err := fieldsOf(parent, doc, func(f field) (bool, error) {
		if f.name != "limit" {
			return f.ofDelete(f.name, d)
		}
		var n int64
		if err := f.int64(&n); err != nil {
			return true, err
		}
		if n != 0 && n != 1 {
			return true, mongoerr.FailedToParse.Errorf("The limit field in delete objects must be 0 or 1. Got %d", n)
		}
		limited, d.Multi = true, n == 0
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
