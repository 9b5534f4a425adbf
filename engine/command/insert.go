package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// insert adds documents.
func insert(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	b := batch{statements: c.client.docs[:0]}
	defer func() { c.client.keepDocs(b.statements) }()
	if err := c.parseBatch("documents", &b); err != nil {
		return err
	}
	c.ops.insert.Add(int64(len(b.statements)))
	res, err := c.db.Insert(c.writeContext(b.bypass), ns, b.statements, b.ordered)
	if err != nil {
		return err
	}
	c.out = bsoncore.AppendInt32Element(c.out, "n", int32(res.N))
	c.out = appendWriteErrors(c.out, res.Errors)
	return nil
}

// keepDocs keeps the slice for the connection's next insert, without what it points to.
func (cl *Client) keepDocs(docs []bson.Raw) {
	clear(docs)
	if cap(docs) <= 4096 {
		cl.docs = docs[:0]
	}
}
