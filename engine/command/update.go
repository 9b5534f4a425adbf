package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
)

// update changes documents.
func update(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	var docs []bson.Raw
	ordered, given := true, false
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "updates":
			given = true
			return true, f.documents(&docs)
		case "ordered":
			return true, f.bool(&ordered)
		case "bypassDocumentValidation":
			return true, f.ignored(bson.TypeBoolean)
		case "bypassEmptyTsReplacement", "let":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if !given {
		return missing("update", "updates")
	}
	if err := checkBatch(len(docs)); err != nil {
		return err
	}
	statements := make([]engine.Update, len(docs))
	for i, d := range docs {
		if err := parseUpdate(d, &statements[i]); err != nil {
			return err
		}
	}
	c.ops.update.Add(int64(len(statements)))
	res, err := c.db.Update(c.ctx, ns, statements, ordered)
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

func parseUpdate(doc bson.Raw, u *engine.Update) error {
	const parent = "update.updates"
	err := fieldsOf(parent, doc, func(f field) (bool, error) {
		switch f.name {
		case "q":
			return true, f.document(&u.Filter)
		case "u":
			return true, f.modification(&u.Update)
		case "multi":
			return true, f.bool(&u.Multi)
		case "upsert":
			return true, f.bool(&u.Upsert)
		case "arrayFilters":
			return true, f.documents(&u.ArrayFilters)
		case "hint":
			return true, f.hint(&u.Hint)
		case "collation":
			return true, f.document(&u.Collation)
		case "c", "sort":
			return true, f.unsupported()
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case u.Filter == nil:
		return missing(parent, "q")
	case u.Update.Type == 0:
		return missing(parent, "u")
	}
	return nil
}

// modification takes what an update does: a document, or the array that a pipeline is.
func (f field) modification(dst *bson.RawValue) error {
	switch {
	case f.null():
	case f.v.Type == bson.TypeEmbeddedDocument, f.v.Type == bson.TypeArray:
		*dst = f.v
	default:
		return f.wrongType("object")
	}
	return nil
}
