package command

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// listIndexes gives a cursor over a collection's indexes.
func listIndexes(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	batch := int64(math.MaxInt64)
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "cursor":
			return true, f.cursorOptions(&batch)
		case "includeBuildUUIDs", "includeIndexBuildInfo":
			return true, f.ignored(bson.TypeBoolean)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	specs, err := c.db.ListIndexes(c.ctx, ns)
	if err != nil {
		return err
	}
	docs := list(specs)
	return c.cursorReply(&cursor{ns: ns, src: &docs}, batch, false)
}
