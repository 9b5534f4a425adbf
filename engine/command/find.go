package command

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// find runs a query, and opens a cursor if the first batch does not hold it all.
func find(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	if done, err := c.findByID(ns); done {
		return err
	}
	// The cursor may outlive the request, and it keeps the filter as it is.
	c.req.Body = bytes.Clone(c.req.Body)
	a := findArgs{batch: firstBatch}
	if err := c.fields(a.field); err != nil {
		return err
	}
	if a.await && !a.query.Tailable {
		return mongoerr.FailedToParse.Errorf("Cannot set 'awaitData' without also setting 'tailable'")
	}
	c.ops.query.Add(1)
	var src source
	if src, err = c.db.Find(c.ctx, ns, a.query); engine.OnView(err) {
		src, err = c.db.FindOnView(c.ctx, ns, a.query)
	}
	if err != nil {
		return err
	}
	return c.cursorReply(&cursor{ns: ns, src: src, keep: a.keep, await: a.await}, a.batch, a.single)
}

func startsWithID(doc []byte) bool {
	it := value.Elements(doc)
	return it.Next() && string(it.Name()) == "_id"
}

// findByID answers a find of one document by its _id, unless there is more to it.
func (c *call) findByID(ns engine.Namespace) (done bool, err error) {
	filter := value.Lookup(c.req.Body, "filter")
	if filter.Type != bson.TypeEmbeddedDocument || !startsWithID(filter.Value) {
		return false, nil
	}
	a := findArgs{batch: firstBatch}
	if err := c.fields(a.field); err != nil || a.batch == 0 || a.await {
		return false, nil // the long way says what is wrong
	}
	start := len(c.out)
	at, out := bsoncore.AppendDocumentElementStart(c.out, "cursor")
	array, out := bsoncore.AppendArrayElementStart(out, "firstBatch")
	room := true
	done, err = c.db.FindByID(c.ctx, ns, &a.query, func(doc bson.Raw) {
		if room = len(doc) <= batchCounted || c.req.Room == nil || c.req.Room(int64(len(doc)-batchCounted)); room {
			out = appendElement(out, 0, doc)
		}
	})
	if !done {
		c.out = out[:start]
		return false, nil
	}
	if err == nil && !room {
		err = noRoom()
	}
	c.ops.query.Add(1)
	c.out, _ = bsoncore.AppendArrayEnd(out, array)
	c.endCursor(at, 0, ns.String())
	return true, err
}

// findArgs are the fields of find.
type findArgs struct {
	query        engine.Find
	batch        int64
	single, keep bool
	await        bool // data, at the end
}

func (a *findArgs) field(f field) (bool, error) {
	switch f.name {
	case "filter":
		return true, f.document(&a.query.Filter)
	case "sort":
		return true, f.document(&a.query.Sort)
	case "projection":
		return true, f.document(&a.query.Projection)
	case "hint":
		return true, f.hint(&a.query.Hint)
	case "skip":
		return true, f.natural(&a.query.Skip)
	case "limit":
		return true, f.natural(&a.query.Limit)
	case "batchSize":
		return true, f.natural(&a.batch)
	case "singleBatch":
		return true, f.bool(&a.single)
	case "noCursorTimeout":
		return true, f.bool(&a.keep)
	case "collation":
		return true, f.document(&a.query.Collation)
	case "showRecordId":
		return true, f.bool(&a.query.ShowRecordID)
	case "allowDiskUse":
		allow := true
		err := f.bool(&allow)
		a.query.MemoryOnly = !allow
		return true, err
	case "allowPartialResults", "oplogReplay":
		// Nothing is ever partial.
		return true, f.ignored(bson.TypeBoolean)
	case "let":
		return true, f.document(&a.query.Let)
	case "tailable":
		return true, f.bool(&a.query.Tailable)
	case "awaitData":
		return true, f.bool(&a.await)
	case "min":
		return true, f.document(&a.query.Min)
	case "max":
		return true, f.document(&a.query.Max)
	case "returnKey":
		return true, f.bool(&a.query.ReturnKey)
	}
	return false, nil
}
