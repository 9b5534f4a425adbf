package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// compact makes the space of dead records free for others. There is one file, so it does so for all collections.
func compact(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "force":
			// Nobody is kept waiting, so there is nothing to force.
			return true, f.ignored(bson.TypeBoolean)
		case "dryRun", "freeSpaceTargetMB":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	freed, err := c.db.Compact(c.ctx, ns)
	if err != nil {
		return err
	}
	c.out = bsoncore.AppendInt64Element(c.out, "bytesFreed", freed)
	return nil
}
