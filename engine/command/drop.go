package command

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// drop drops a collection. That there is none is no error.
func drop(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	if err := c.noFields(); err != nil {
		return err
	}
	existed, indexes, err := c.db.DropCollection(c.ctx, ns)
	if err != nil || !existed {
		return err
	}
	if indexes > 0 { // a view has none
		c.out = bsoncore.AppendInt32Element(c.out, "nIndexesWas", int32(indexes))
	}
	c.out = bsoncore.AppendStringElement(c.out, "ns", ns.String())
	return nil
}
