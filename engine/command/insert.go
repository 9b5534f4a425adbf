package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// insert adds documents.
func insert(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	docs, ordered, bypass := c.client.docs[:0], true, false
	defer func() { c.client.keepDocs(docs) }()
	given := false
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "documents":
			given = true
			return true, f.documents(&docs)
		case "ordered":
			return true, f.bool(&ordered)
		case "bypassDocumentValidation":
			return true, f.bool(&bypass)
		case "bypassEmptyTsReplacement":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if !given {
		return missing("insert", "documents")
	}
	if err := checkBatch(len(docs)); err != nil {
		return err
	}
	c.ops.insert.Add(int64(len(docs)))
	res, err := c.db.Insert(c.writeContext(bypass), ns, docs, ordered)
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

// checkBatch bounds the number of statements in a write command.
func checkBatch(n int) error {
	if n < 1 || n > writeBatchMax {
		return mongoerr.InvalidLength.Errorf("Write batch sizes must be between 1 and %d. Got %d operations.", writeBatchMax, n)
	}
	return nil
}
