package command

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// findAndModify changes or removes one document, and shows it.
func findAndModify(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	m, bypass, err := c.findAndModifyArgs()
	if err != nil {
		return err
	}
	res, err := c.db.FindAndModify(c.writeContext(bypass), ns, m)
	if err != nil {
		return err
	}
	c.out = nested(c.out, "lastErrorObject", func(dst []byte) []byte {
		n := int32(0)
		if res.Matched || res.Upserted != nil {
			n = 1
		}
		dst = bsoncore.AppendInt32Element(dst, "n", n)
		if !m.Remove {
			dst = bsoncore.AppendBooleanElement(dst, "updatedExisting", res.Matched)
		}
		if res.Upserted != nil {
			dst = appendValue(dst, "upserted", *res.Upserted)
		}
		return dst
	})
	if res.Value == nil {
		c.out = bsoncore.AppendNullElement(c.out, "value")
	} else {
		c.out = bsoncore.AppendDocumentElement(c.out, "value", res.Value)
	}
	return nil
}

func (c *call) findAndModifyArgs() (m engine.FindAndModify, bypass bool, err error) {
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "query":
			return true, f.document(&m.Filter)
		case "sort":
			return true, f.document(&m.Sort)
		case "fields":
			return true, f.document(&m.Projection)
		case "update":
			return true, f.modification(&m.Update)
		case "arrayFilters":
			return true, f.documents(&m.ArrayFilters)
		case "remove":
			return true, f.bool(&m.Remove)
		case "new":
			return true, f.bool(&m.New)
		case "upsert":
			return true, f.bool(&m.Upsert)
		case "hint":
			return true, f.hint(&m.Hint)
		case "collation":
			return true, f.document(&m.Collation)
		case "bypassDocumentValidation":
			return true, f.bool(&bypass)
		case "let":
			return true, f.document(&m.Let)
		case "bypassEmptyTsReplacement":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return m, bypass, err
	}
	updates := m.Update.Type != 0
	switch {
	case m.Remove && updates:
		return m, bypass, mongoerr.FailedToParse.Errorf("Cannot specify both an update and remove=true")
	case m.Remove && m.Upsert:
		return m, bypass, mongoerr.FailedToParse.Errorf("Cannot specify both upsert=true and remove=true")
	case m.Remove && m.New:
		return m, bypass, mongoerr.FailedToParse.Errorf("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !m.Remove && !updates:
		return m, bypass, mongoerr.FailedToParse.Errorf("Either an update or remove=true must be specified")
	}
	return m, bypass, nil
}
