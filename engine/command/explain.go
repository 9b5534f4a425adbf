package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// explain tells how a find would run.
func explain(c *call) error {
	v := c.first()
	if v.Type != bson.TypeEmbeddedDocument {
		return field{parent: "explain", name: "explain", v: v}.wrongType("object")
	}
	inner := bson.Raw(v.Value)
	verbosity := engine.AllPlansExecution
	err := c.fields(func(f field) (bool, error) {
		if f.name != "verbosity" {
			return false, nil
		}
		var level string
		if err := f.string(&level); err != nil {
			return true, err
		}
		switch level {
		case "queryPlanner":
			verbosity = engine.QueryPlanner
		case "executionStats":
			verbosity = engine.ExecutionStats
		case "allPlansExecution", "":
		default:
			return true, mongoerr.BadValue.Errorf("Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", level)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	it := value.Elements(inner)
	if !it.Next() || string(it.Name()) != "find" {
		return mongoerr.NotImplemented.Errorf("Explaining '%s' is not implemented yet", it.Name())
	}
	in := *c
	in.command, in.req = c.byName["find"], Request{Body: inner}
	ns, err := in.namespace()
	if err != nil {
		return err
	}
	var a findArgs
	if err := in.fields(a.field); err != nil {
		return err
	}
	plan, err := c.db.Explain(c.ctx, ns, a.query, verbosity)
	if err != nil {
		return err
	}
	for it := value.Elements(plan); it.Next(); {
		c.out = appendValue(c.out, string(it.Name()), it.Value())
	}
	c.out = bsoncore.AppendDocumentElement(c.out, "command", inner)
	c.out = nested(c.out, "serverInfo", func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "host", c.opts.Process.Host)
		dst = bsoncore.AppendStringElement(dst, "version", version)
		return bsoncore.AppendStringElement(dst, "gitVersion", BuildInfo().Revision)
	})
	return nil
}
