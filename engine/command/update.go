package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
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
	c.ops.update.Add(int64(len(a.statements)))
	res, err := c.db.Update(c.writeContext(a.bypass), ns, a.statements, a.ordered)
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
	ordered, bypass bool
	statements      []engine.Update
}

func (c *call) updateArgs() (*updateArgs, error) {
	a := &updateArgs{ordered: true}
	var docs []bson.Raw
	var let bson.Raw
	given := false
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "updates":
			given = true
			return true, f.documents(&docs)
		case "ordered":
			return true, f.bool(&a.ordered)
		case "let":
			return true, f.document(&let)
		case "bypassDocumentValidation":
			return true, f.bool(&a.bypass)
		case "bypassEmptyTsReplacement":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, missing("update", "updates")
	}
	if err := checkBatch(len(docs)); err != nil {
		return nil, err
	}
	a.statements = make([]engine.Update, len(docs))
	for i, d := range docs {
		if err := parseUpdate(d, &a.statements[i]); err != nil {
			return nil, err
		}
		a.statements[i].Let = let
	}
	return a, nil
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
		case "sort":
			return true, f.document(&u.Sort)
		case "c":
			return true, f.document(&u.Constants)
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
	case u.Multi && u.Sort != nil:
		return mongoerr.FailedToParse.Errorf("Cannot specify sort with multi=true")
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
