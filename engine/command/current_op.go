package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/query/match"
)

// currentOp lists the commands that run, itself among them. The fields that are not its own are a filter.
func currentOp(c *call) error {
	var tests []byte
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "$ownOps", "$all":
			// There are no users yet, so all operations are everybody's; and connections without one are not listed.
			return true, f.ignored(bson.TypeBoolean)
		}
		if f.seq != nil {
			return false, nil
		}
		tests = appendValue(tests, f.name, f.v)
		return true, nil
	})
	if err != nil {
		return err
	}
	filter, err := match.Parse(document(func(dst []byte) []byte { return append(dst, tests...) }), match.Options{})
	if err != nil {
		return err
	}
	var docs []bson.Raw
	for _, doc := range c.list() {
		ok, err := filter.Match(doc)
		if err != nil {
			return err
		}
		if ok {
			docs = append(docs, doc)
		}
	}
	c.out = appendDocs(c.out, "inprog", docs)
	return nil
}

// killOp ends a command that runs.
func killOp(c *call) error {
	given, id := false, int64(0)
	err := c.fields(func(f field) (bool, error) {
		if f.name == "op" {
			given = !f.null()
			return true, f.int64(&id)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if !given {
		return missing("killOp", "op")
	}
	if id == int64(int32(id)) {
		c.operations.kill(int32(id))
	}
	c.out = bsoncore.AppendStringElement(c.out, "info", "attempting to kill op")
	return nil
}
