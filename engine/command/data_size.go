package command

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
)

// dataSize gives the size of a collection's documents.
func dataSize(c *call) error {
	v := c.first()
	if v.Type != bson.TypeString {
		return field{parent: "dataSize", name: "dataSize", v: v}.wrongType("string")
	}
	db, coll, _ := strings.Cut(strings.Clone(v.StringValue()), ".")
	ns := engine.Namespace{DB: db, Coll: coll}
	if err := ns.Check(); err != nil {
		return err
	}
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "estimate":
			// The exact size is at hand.
			return true, f.ignored(bson.TypeBoolean)
		case "keyPattern", "min", "max":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	began := c.env.Clock.Monotonic()
	s, err := c.db.CollStats(c.ctx, ns)
	if err != nil {
		return err
	}
	c.out = appendCount(c.out, "size", s.Size)
	c.out = appendCount(c.out, "numObjects", s.Count)
	c.out = bsoncore.AppendInt32Element(c.out, "millis", int32((c.env.Clock.Monotonic() - began).Milliseconds()))
	c.out = bsoncore.AppendBooleanElement(c.out, "estimate", false)
	return nil
}
