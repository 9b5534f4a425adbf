package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// getLog gives the newest lines of the log, or what a user should know at the start.
func getLog(c *call) error {
	v := c.first()
	if v.Type != bson.TypeString {
		return field{parent: "getLog", name: "getLog", v: v}.wrongType("string")
	}
	if err := c.noFields(); err != nil {
		return err
	}
	var lines []string
	switch name := v.StringValue(); name {
	case "*":
		c.out = appendStrings(c.out, "names", []string{"global", "startupWarnings"})
		return nil
	case "global":
		if c.opts.Lines != nil {
			lines = c.opts.Lines()
		}
	case "startupWarnings":
		lines = c.opts.Warnings
	default:
		return mongoerr.OperationFailed.Errorf("No log named '%s'", name)
	}
	c.out = bsoncore.AppendInt32Element(c.out, "totalLinesWritten", int32(len(lines)))
	c.out = appendStrings(c.out, "log", lines)
	return nil
}
