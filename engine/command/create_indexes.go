package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// createIndexes builds indexes. What is in their specifications is the engine's to read.
func createIndexes(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	var specs []bson.Raw
	given := false
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "indexes":
			given = true
			return true, f.documents(&specs)
		case "ignoreUnknownIndexOptions":
			return true, f.unsupported()
		case "commitQuorum":
			if f.null() {
				return true, nil
			}
			return true, mongoerr.BadValue.Errorf("Standalones cannot specify commitQuorum")
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case !given:
		return missing("createIndexes", "indexes")
	case len(specs) == 0:
		return mongoerr.BadValue.Errorf("Must specify at least one index to create")
	}
	res, err := c.db.CreateIndexes(engine.WithProgress(c.ctx, &c.client.op.progress), ns, specs)
	if err != nil {
		return err
	}
	c.out = bsoncore.AppendInt32Element(c.out, "numIndexesBefore", int32(res.Before))
	c.out = bsoncore.AppendInt32Element(c.out, "numIndexesAfter", int32(res.After))
	if res.CreatedCollection {
		c.out = bsoncore.AppendBooleanElement(c.out, "createdCollectionAutomatically", true)
	}
	if res.After == res.Before {
		c.out = bsoncore.AppendStringElement(c.out, "note", "all indexes already exist")
	}
	return nil
}
