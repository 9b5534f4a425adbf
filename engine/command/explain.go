package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// explain tells how a command would find its documents. It changes nothing.
func explain(c *call) error {
	v := c.first()
	if v.Type != bson.TypeEmbeddedDocument {
		return field{parent: "explain", name: "explain", v: v}.wrongType("object")
	}
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
	in := *c
	in.req = Request{Body: bson.Raw(v.Value)}
	if in.command = c.byName[Name(in.req.Body)]; in.command == nil {
		return mongoerr.CommandNotFound.Errorf("Explain failed due to unknown command: %s", Name(in.req.Body))
	}
	if in.command.name == "aggregate" {
		a, err := in.aggregateArgs()
		if err != nil {
			return err
		}
		err = in.explainAggregate(a, verbosity)
		c.out = in.out
		return err
	}
	ns, err := in.namespace()
	if err != nil {
		return err
	}
	find, over, err := in.searched()
	if err != nil {
		return err
	}
	plan, err := c.db.ExplainOver(c.ctx, ns, find, verbosity, over)
	if err != nil {
		return err
	}
	c.explained(plan, in.req.Body)
	return nil
}

// searched is what a command searches for, and the stage that does something with what is found.
func (c *call) searched() (engine.Find, string, error) {
	switch c.command.name {
	case "find":
		var a findArgs
		err := c.fields(a.field)
		return a.query, "", err
	case "count":
		q, err := c.countArgs()
		return engine.Find{Filter: q.Filter, Hint: q.Hint, Collation: q.Collation, Skip: q.Skip, Limit: q.Limit}, "COUNT", err
	case "distinct":
		q, err := c.distinctArgs()
		return engine.Find{Filter: q.Filter, Hint: q.Hint, Collation: q.Collation, Reads: []string{q.Key}}, "DISTINCT", err
	case "update":
		a, err := c.updateArgs()
		if err != nil {
			return engine.Find{}, "", err
		}
		if len(a.updates) != 1 {
			return engine.Find{}, "", mongoerr.InvalidLength.Errorf("explained write batches must be of size 1")
		}
		u := &a.updates[0]
		return engine.Find{Filter: u.Filter, Sort: u.Sort, Hint: u.Hint, Collation: u.Collation, Let: u.Let, Limit: one(!u.Multi)}, "UPDATE", nil
	case "delete":
		a, err := c.deleteArgs()
		if err != nil {
			return engine.Find{}, "", err
		}
		if len(a.deletes) != 1 {
			return engine.Find{}, "", mongoerr.InvalidLength.Errorf("explained write batches must be of size 1")
		}
		d := &a.deletes[0]
		return engine.Find{Filter: d.Filter, Hint: d.Hint, Collation: d.Collation, Let: d.Let, Limit: one(!d.Multi)}, "DELETE", nil
	case "findAndModify":
		m, _, err := c.findAndModifyArgs()
		over := "UPDATE"
		if m.Remove {
			over = "DELETE"
		}
		return engine.Find{Filter: m.Filter, Sort: m.Sort, Hint: m.Hint, Collation: m.Collation, Let: m.Let, Limit: 1}, over, err
	}
	return engine.Find{}, "", mongoerr.NotImplemented.Errorf("Explaining '%s' is not implemented", c.command.name)
}

// one is a limit of one document, or none.
func one(only bool) int64 {
	if only {
		return 1
	}
	return 0
}

// explained appends the reply.
func (c *call) explained(plan, command bson.Raw) {
	for it := value.Elements(plan); it.Next(); {
		c.out = appendValue(c.out, string(it.Name()), it.Value())
	}
	c.out = bsoncore.AppendDocumentElement(c.out, "command", command)
	c.out = nested(c.out, "serverInfo", func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "host", c.opts.Process.Host)
		dst = bsoncore.AppendStringElement(dst, "version", version)
		return bsoncore.AppendStringElement(dst, "gitVersion", BuildInfo().Revision)
	})
}
