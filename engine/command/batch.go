package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// batch are the fields that insert, update and delete have in common. The array of statements has a name of its own in each.
type batch struct {
	statements      []bson.Raw
	ordered, bypass bool
	let             bson.Raw // not of insert
}

// parseBatch reads the command; b.statements is room for them.
func (c *call) parseBatch(statements string, b *batch) error {
	given := false
	b.ordered = true
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case statements:
			given = true
			return true, f.documents(&b.statements)
		case "ordered":
			return true, f.bool(&b.ordered)
		case "bypassDocumentValidation":
			return true, f.bool(&b.bypass)
		case "bypassEmptyTsReplacement":
			return true, f.unsupported()
		case "let":
			return c.command.name != "insert", f.document(&b.let)
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case !given:
		return missing(c.command.name, statements)
	}
	return checkBatch(len(b.statements))
}

// checkBatch bounds the number of statements in a write command.
func checkBatch(n int) error {
	if n < 1 || n > writeBatchMax {
		return mongoerr.InvalidLength.Errorf("Write batch sizes must be between 1 and %d. Got %d operations.", writeBatchMax, n)
	}
	return nil
}

// ofUpdate reads a field of an update statement by its name in update. bulkWrite has other names for some.
func (f field) ofUpdate(name string, u *engine.Update) (bool, error) {
	switch name {
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

// checkUpdate says what an update statement lacks, whose filter and modification are called so.
func checkUpdate(parent, filter, modification string, u *engine.Update) error {
	switch {
	case u.Filter == nil:
		return missing(parent, filter)
	case u.Update.Type == 0:
		return missing(parent, modification)
	case u.Multi && u.Sort != nil:
		return mongoerr.FailedToParse.Errorf("Cannot specify sort with multi=true")
	}
	return nil
}

// ofDelete reads what a delete statement has in delete and in bulkWrite.
func (f field) ofDelete(name string, d *engine.Delete) (bool, error) {
	switch name {
	case "q":
		return true, f.document(&d.Filter)
	case "hint":
		return true, f.hint(&d.Hint)
	case "collation":
		return true, f.document(&d.Collation)
	}
	return false, nil
}
