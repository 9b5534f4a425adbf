package command

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// collStats gives a collection's figures.
func collStats(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	scale, err := c.scale()
	if err != nil {
		return err
	}
	s, err := c.db.CollStats(c.ctx, ns)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, x := range s.IndexSizes {
		total += x.Size
	}
	c.out = bsoncore.AppendStringElement(c.out, "ns", ns.String())
	c.out = appendCount(c.out, "size", s.Size/scale)
	c.out = appendCount(c.out, "count", s.Count)
	if s.Count > 0 {
		c.out = appendCount(c.out, "avgObjSize", s.Size/s.Count)
	}
	c.out = appendCount(c.out, "storageSize", s.StorageSize/scale)
	c.out = bsoncore.AppendBooleanElement(c.out, "capped", s.Capped)
	if s.Capped {
		c.out = appendCount(c.out, "max", s.Max)
		c.out = appendCount(c.out, "maxSize", s.MaxSize/scale)
	}
	c.out = appendCount(c.out, "nindexes", int64(len(s.IndexSizes)))
	c.out = nested(c.out, "indexSizes", func(dst []byte) []byte {
		for _, x := range s.IndexSizes {
			dst = appendCount(dst, x.Name, x.Size/scale)
		}
		return dst
	})
	c.out = appendCount(c.out, "totalIndexSize", total/scale)
	c.out = appendCount(c.out, "totalSize", (total+s.StorageSize)/scale)
	c.out = appendCount(c.out, "scaleFactor", scale)
	return nil
}

// scale reads the only field of collStats and dbStats: what sizes are divided by.
func (c *call) scale() (int64, error) {
	scale := int64(1)
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "scale":
			return true, f.int64(&scale)
		case "freeStorage":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err == nil && scale < 1 {
		err = mongoerr.LocationValueNegative.Errorf("BSON field 'scale' value must be >= 1, actual value '%d'", scale)
	}
	return scale, err
}
