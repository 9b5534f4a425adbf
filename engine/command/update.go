package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
)

// update changes documents.
func update(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	a, err := c.updateArgs()
	if err != nil {
		return err
	}
	c.ops.update.Add(int64(len(a.updates)))
	res, err := c.db.Update(c.writeContext(a.bypass), ns, a.updates, a.ordered)
	if err != nil {
		return err
	}
	c.out = appendCount(c.out, "n", int64(res.Matched+len(res.Upserted)))
	c.out = appendCount(c.out, "nModified", int64(res.Modified))
	if len(res.Upserted) > 0 {
		at, out := bsoncore.AppendArrayElementStart(c.out, "upserted")
		for i, u := range res.Upserted {
			out = nested(out, indexName(i), func(dst []byte) []byte {
				dst = bsoncore.AppendInt32Element(dst, "index", int32(u.Index))
				return appendValue(dst, "_id", u.ID)
			})
		}
		c.out, _ = bsoncore.AppendArrayEnd(out, at)
	}
	c.out = appendWriteErrors(c.out, res.Errors)
	return nil
}

// writeContext is the command's context, for writes that ask no validator if bypass is set.
func (c *call) writeContext(bypass bool) context.Context {
	if bypass {
		return engine.BypassValidation(c.ctx)
	}
	return c.ctx
}

// updateArgs are the fields of update.
type updateArgs struct {
	batch
	updates []engine.Update
}

func (c *call) updateArgs() (*updateArgs, error) {
	a := &updateArgs{}
	if err := c.parseBatch("updates", &a.batch); err != nil {
		return nil, err
	}
	a.updates = make([]engine.Update, len(a.statements))
	for i, doc := range a.statements {
		const parent = "update.updates"
		u := &a.updates[i]
		u.Let = a.let
		if err := fieldsOf(parent, doc, func(f field) (bool, error) { return f.ofUpdate(f.name, u) }); err != nil {
			return nil, err
		}
		if err := checkUpdate(parent, "q", "u", u); err != nil {
			return nil, err
		}
	}
	return a, nil
}
