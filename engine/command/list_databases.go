package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/value"
)

// listDatabases gives all databases at once.
func listDatabases(c *call) error {
	var filter bson.Raw
	nameOnly := false
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "filter":
			return true, f.document(&filter)
		case "nameOnly":
			return true, f.bool(&nameOnly)
		case "authorizedDatabases":
			return true, f.ignored(bson.TypeBoolean)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	infos, err := c.db.ListDatabases(c.ctx)
	if err != nil {
		return err
	}
	var docs []bson.Raw
	for _, info := range infos {
		docs = append(docs, document(func(dst []byte) []byte {
			dst = bsoncore.AppendStringElement(dst, "name", info.Name)
			if nameOnly {
				return dst
			}
			dst = bsoncore.AppendInt64Element(dst, "sizeOnDisk", info.SizeOnDisk)
			return bsoncore.AppendBooleanElement(dst, "empty", false)
		}))
	}
	if docs, err = filtered(docs, filter); err != nil {
		return err
	}
	c.out = appendDocs(c.out, "databases", docs)
	if nameOnly {
		return nil
	}
	total := int64(0)
	for _, d := range docs {
		total += whole(value.Lookup(d, "sizeOnDisk"))
	}
	c.out = bsoncore.AppendInt64Element(c.out, "totalSize", total)
	c.out = bsoncore.AppendInt64Element(c.out, "totalSizeMb", total>>20)
	return nil
}
