package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/value"
)

// killCursors ends cursors before they are exhausted.
func killCursors(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	var ids []int64
	given := false
	err = c.fields(func(f field) (bool, error) {
		if f.name != "cursors" {
			return false, nil
		}
		given = true
		if f.v.Type != bson.TypeArray {
			return true, f.wrongType("array")
		}
		for it := value.Elements(f.v.Value); it.Next(); {
			e := field{parent: "killCursors.cursors", name: string(it.Name()), v: it.Value()}
			if e.v.Type != bson.TypeInt64 {
				return true, e.wrongType("long")
			}
			ids = append(ids, e.v.Int64())
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if !given {
		return missing("killCursors", "cursors")
	}
	var killed, unknown []int64
	for _, id := range ids {
		if c.cursors.killOne(id, ns) {
			killed = append(killed, id)
		} else {
			unknown = append(unknown, id)
		}
	}
	c.out = appendLongs(c.out, "cursorsKilled", killed)
	c.out = appendLongs(c.out, "cursorsNotFound", unknown)
	c.out = appendLongs(c.out, "cursorsAlive", nil)
	c.out = appendLongs(c.out, "cursorsUnknown", nil)
	return nil
}

func appendLongs(dst []byte, name string, list []int64) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, name)
	for i, n := range list {
		dst = bsoncore.AppendInt64Element(dst, indexName(i), n)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}
