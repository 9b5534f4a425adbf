package command

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
)

// count counts what a filter lets pass.
func count(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	q, err := c.countArgs()
	if err != nil {
		return err
	}
	n, err := c.db.Count(c.ctx, ns, q)
	if err != nil {
		return err
	}
	c.out = appendCount(c.out, "n", n)
	return nil
}

func (c *call) countArgs() (engine.Count, error) {
	var q engine.Count
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "query":
			return true, f.document(&q.Filter)
		case "limit":
			err := f.int64(&q.Limit)
			// A negative limit is what it was in old clients: the same without its sign.
			if q.Limit < 0 {
				q.Limit = max(-q.Limit, -math.MaxInt64)
			}
			return true, err
		case "skip":
			return true, f.natural(&q.Skip)
		case "hint":
			return true, f.hint(&q.Hint)
		case "collation":
			return true, f.document(&q.Collation)
		case "fields":
			// Old clients send a projection, which cannot change a number.
			return true, f.ignored(bson.TypeEmbeddedDocument, bson.TypeString)
		}
		return false, nil
	})
	return q, err
}
