package command

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// dropDatabase drops all collections of a database.
func dropDatabase(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	existed, err := c.db.DropDatabase(c.ctx, c.database)
	if err != nil || !existed {
		return err
	}
	c.out = bsoncore.AppendStringElement(c.out, "dropped", c.database)
	return nil
}
