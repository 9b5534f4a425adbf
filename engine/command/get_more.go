package command

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// getMore gives a cursor's next batch. An error ends the cursor, as its place is then unknown.
func getMore(c *call) error {
	v := c.first()
	if v.Type != bson.TypeInt64 {
		return field{parent: "getMore", name: "getMore", v: v}.wrongType("long")
	}
	ns := engine.Namespace{DB: c.database}
	var batch int64
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "collection":
			return true, f.string(&ns.Coll)
		case "batchSize":
			return true, f.natural(&batch)
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case ns.Coll == "":
		return missing("getMore", "collection")
	case c.generic.maxTime > 0:
		return mongoerr.BadValue.Errorf("cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	case batch == 0:
		batch = math.MaxInt64
	}
	c.ops.getMore.Add(1)
	cur, err := c.cursors.take(v.Int64(), ns, c.generic.session)
	if err != nil {
		return err
	}
	more := false
	defer func() { c.cursors.give(cur, more) }()
	start := c.env.Clock.Monotonic()
	at, out := bsoncore.AppendDocumentElementStart(c.out, "cursor")
	c.out = out
	var left bool
	err = c.limited(cur.left, func(c *call) (err error) {
		left, err = c.readBatch("nextBatch", cur.src, batch)
		return err
	})
	if err != nil {
		return err
	}
	if cur.left > 0 {
		cur.left = max(cur.left-(c.env.Clock.Monotonic()-start), time.Millisecond)
	}
	id := int64(0)
	if more = left; more {
		id = cur.id
	}
	c.endCursor(at, id, ns.String())
	return nil
}
