package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
)

// distinct gives the values of one path.
func distinct(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	q, err := c.distinctArgs()
	if err != nil {
		return err
	}
	values, err := c.db.Distinct(c.ctx, ns, q)
	if err != nil {
		return err
	}
	c.out = appendValue(c.out, "values", bson.RawValue{Type: bson.TypeArray, Value: values})
	return nil
}

func (c *call) distinctArgs() (engine.Distinct, error) {
	var q engine.Distinct
	given := false
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "key":
			given = true
			return true, f.string(&q.Key)
		case "query":
			return true, f.document(&q.Filter)
		case "hint":
			return true, f.hint(&q.Hint)
		case "collation":
			return true, f.document(&q.Collation)
		}
		return false, nil
	})
	if err == nil && !given {
		err = missing("distinct", "key")
	}
	return q, err
}
