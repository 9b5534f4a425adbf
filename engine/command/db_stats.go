package command

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// dbStats gives a database's figures.
func dbStats(c *call) error {
	scale, err := c.scale()
	if err != nil {
		return err
	}
	s, err := c.db.DBStats(c.ctx, c.database)
	if err != nil {
		return err
	}
	average := 0.0
	if s.Objects > 0 {
		average = float64(s.DataSize) / float64(s.Objects)
	}
	c.out = bsoncore.AppendStringElement(c.out, "db", c.database)
	c.out = appendCount(c.out, "collections", s.Collections)
	c.out = appendCount(c.out, "views", s.Views)
	c.out = appendCount(c.out, "objects", s.Objects)
	c.out = bsoncore.AppendDoubleElement(c.out, "avgObjSize", average)
	c.out = appendCount(c.out, "dataSize", s.DataSize/scale)
	c.out = appendCount(c.out, "storageSize", s.StorageSize/scale)
	c.out = appendCount(c.out, "indexes", s.Indexes)
	c.out = appendCount(c.out, "indexSize", s.IndexSize/scale)
	c.out = appendCount(c.out, "totalSize", (s.StorageSize+s.IndexSize)/scale)
	c.out = appendCount(c.out, "scaleFactor", scale)
	return nil
}
