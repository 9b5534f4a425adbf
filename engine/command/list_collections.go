package command

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/query/match"
)

// listCollections gives a cursor over the collections of a database.
func listCollections(c *call) error {
	var filter bson.Raw
	nameOnly := false
	batch := int64(math.MaxInt64)
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "filter":
			return true, f.document(&filter)
		case "nameOnly":
			return true, f.bool(&nameOnly)
		case "authorizedCollections":
			return true, f.ignored(bson.TypeBoolean)
		case "cursor":
			return true, f.cursorOptions(&batch)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	infos, err := c.db.ListCollections(c.ctx, c.database)
	if err != nil {
		return err
	}
	docs := make(list, len(infos))
	for i := range infos {
		docs[i] = collectionDocument(&infos[i], nameOnly)
	}
	if docs, err = filtered(docs, filter); err != nil {
		return err
	}
	ns := engine.Namespace{DB: c.database, Coll: "$cmd.listCollections"}
	return c.cursorReply(&cursor{ns: ns, src: &docs}, batch, false)
}

func collectionDocument(info *engine.CollectionInfo, nameOnly bool) bson.Raw {
	return document(func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "name", info.Name)
		kind := "collection"
		if info.View {
			kind = "view"
		}
		dst = bsoncore.AppendStringElement(dst, "type", kind)
		if nameOnly {
			return dst
		}
		options := info.Options
		if options == nil {
			options = document(func(dst []byte) []byte { return dst })
		}
		dst = bsoncore.AppendDocumentElement(dst, "options", options)
		dst = nested(dst, "info", func(dst []byte) []byte {
			dst = bsoncore.AppendBooleanElement(dst, "readOnly", info.View)
			if info.View {
				return dst
			}
			return bsoncore.AppendBinaryElement(dst, "uuid", bson.TypeBinaryUUID, info.UUID[:])
		})
		if info.View {
			return dst
		}
		return bsoncore.AppendDocumentElement(dst, "idIndex", info.IDIndex)
	})
}

// filtered are the documents that the filter lets pass.
func filtered(docs []bson.Raw, filter bson.Raw) ([]bson.Raw, error) {
	f, err := match.Parse(filter, match.Options{})
	if err != nil {
		return nil, err
	}
	kept := docs[:0]
	for _, d := range docs {
		ok, err := f.Match(d)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, d)
		}
	}
	return kept, nil
}
