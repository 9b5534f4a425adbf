package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// dropIndexes drops one index, several, or all but that on _id.
func dropIndexes(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	var which bson.RawValue
	err = c.fields(func(f field) (bool, error) {
		if f.name != "index" || f.seq != nil {
			return false, nil
		}
		which = f.v
		switch f.v.Type {
		case bson.TypeString, bson.TypeArray, bson.TypeEmbeddedDocument:
			return true, nil
		}
		return true, f.wrongType("string")
	})
	if err != nil {
		return err
	}
	if which.Type == 0 {
		return missing("dropIndexes", "index")
	}
	before, err := c.db.DropIndexes(c.ctx, ns, which)
	if err != nil {
		return err
	}
	c.out = bsoncore.AppendInt32Element(c.out, "nIndexesWas", int32(before))
	if which.Type == bson.TypeString && which.StringValue() == "*" {
		c.out = bsoncore.AppendStringElement(c.out, "msg", "non-_id indexes dropped for collection")
	}
	return nil
}
