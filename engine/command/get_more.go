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
	case batch == 0:
		batch = math.MaxInt64
	}
	c.ops.getMore.Add(1)
	cur, err := c.cursors.take(v.Int64(), ns, c.generic.session)
	if err != nil {
		return err
	}
	more := false
	if c.generic.maxTime > 0 && !cur.await {
		c.cursors.give(cur, true)
		return mongoerr.BadValue.Errorf("cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	defer func() { c.cursors.give(cur, more) }()
	start := c.env.Clock.Monotonic()
	at, out := bsoncore.AppendDocumentElementStart(c.out, "cursor")
	c.out = out
	var left bool
	err = c.limited(cur.left, func(c *call) (err error) {
		left, err = c.nextBatch(cur, batch)
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

const (
	// awaitTime is how long a getMore waits for documents, if the client does not say.
	awaitTime = time.Second
	// awaitStep is how long it waits until it looks whether the client is still there.
	awaitStep = time.Second / 4
)

// nextBatch is readBatch for a cursor that may have to wait.
func (c *call) nextBatch(cur *cursor, docs int64) (more bool, err error) {
	limit := c.generic.maxTime
	if limit == 0 {
		limit = awaitTime
	}
	began, start := c.env.Clock.Monotonic(), len(c.out)
	for {
		n, more, err := c.readBatch("nextBatch", cur.src, docs)
		left := limit - (c.env.Clock.Monotonic() - began)
		waits, ok := cur.src.(interface{ Await(time.Duration) })
		if err != nil || n > 0 || !more || !cur.await || !ok || left <= 0 || c.cursors.isKilled(cur) {
			return more, err
		}
		before := c.env.Clock.Monotonic()
		waits.Await(min(left, awaitStep))
		c.waited += c.env.Clock.Monotonic() - before
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
		c.out = c.out[:start]
	}
}
