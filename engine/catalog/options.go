package catalog

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// ParseOptions reads a collection's options as create has them, refuses what is not supported, and gives those that are
// to be kept. Options that say what is the case anyway (capped: false, an empty validator) are not kept.
func ParseOptions(options bson.Raw) (bson.Raw, error) {
	kept := bsoncore.NewDocumentBuilder()
	if options == nil {
		return bson.Raw(kept.Build()), nil
	}
	for it := value.Elements(options); it.Next(); {
		name, v := string(it.Name()), it.Value()
		switch name {
		case "capped", "timeseries", "clusteredIndex", "changeStreamPreAndPostImages", "viewOn", "pipeline", "size", "max", "expireAfterSeconds":
			if value.Truth(v) {
				return nil, mongoerr.NotImplemented.Errorf("the collection option '%s' is not supported yet", name)
			}
		case "validator":
			if doc, ok := v.DocumentOK(); !ok || len(doc) > 5 {
				return nil, mongoerr.NotImplemented.Errorf("the collection option 'validator' is not supported yet")
			}
		case "collation":
			if err := CheckCollation(v); err != nil {
				return nil, err
			}
		case "validationLevel", "validationAction", "storageEngine", "indexOptionDefaults", "autoIndexId", "idIndex":
			// Without a validator, another storage engine or another index on _id they say nothing.
		default:
			return nil, mongoerr.Code(40415).Errorf("BSON field 'create.%s' is an unknown field.", name)
		}
	}
	return bson.Raw(kept.Build()), nil
}
