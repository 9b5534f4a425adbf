package command

import (
	"bytes"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/value"
)

// aggregate runs a pipeline, and opens a cursor if the first batch does not hold all that comes out of it.
func aggregate(c *call) error {
	c.req.Body = bytes.Clone(c.req.Body) // the cursor may outlive the request
	a, err := c.aggregateArgs()
	switch {
	case err != nil:
		return err
	case a.explain:
		return c.explainAggregate(a, engine.QueryPlanner)
	case !a.cursor:
		return mongoerr.FailedToParse.Errorf("The 'cursor' option is required, except for aggregate with the explain argument")
	}
	cur, err := c.db.Aggregate(c.writeContext(a.bypass), a.ns, a.query)
	if err != nil {
		return err
	}
	ns := a.ns
	if ns.Coll == "" {
		ns.Coll = "$cmd.aggregate"
	}
	return c.cursorReply(&cursor{ns: ns, src: cur}, a.batch, false)
}

// aggregateArgs are the fields of aggregate.
type aggregateArgs struct {
	ns                      engine.Namespace
	query                   engine.Aggregate
	batch                   int64
	cursor, explain, bypass bool
}

func (c *call) aggregateArgs() (*aggregateArgs, error) {
	a := &aggregateArgs{batch: firstBatch, query: engine.Aggregate{Operations: c.list}}
	a.query.Sessions, a.query.Strict = c.localSessions, c.generic.apiStrict
	var err error
	if v := c.first(); value.IsNumber(v.Type) {
		if whole(v) != 1 {
			return nil, mongoerr.FailedToParse.Errorf("Invalid command format: the 'aggregate' field must specify a collection name or 1")
		}
		a.ns.DB = c.database
	} else if a.ns, err = c.namespace(); err != nil {
		return nil, err
	}
	given := false
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "pipeline":
			given = true
			var err error
			a.query.Stages, err = pipeline.Split(f.v)
			return true, err
		case "cursor":
			a.cursor = !f.null()
			return true, f.cursorOptions(&a.batch)
		case "hint":
			return true, f.hint(&a.query.Hint)
		case "collation":
			return true, f.document(&a.query.Collation)
		case "let":
			return true, f.document(&a.query.Let)
		case "explain":
			return true, f.bool(&a.explain)
		case "bypassDocumentValidation":
			return true, f.bool(&a.bypass)
		case "allowDiskUse":
			allow := true
			err := f.bool(&allow)
			a.query.MemoryOnly = !allow
			return true, err
		}
		return false, nil
	})
	if err == nil && !given {
		err = missing("aggregate", "pipeline")
	}
	return a, err
}

func (c *call) explainAggregate(a *aggregateArgs, v engine.Verbosity) error {
	plan, err := c.db.ExplainAggregate(c.ctx, a.ns, a.query, v)
	if err != nil {
		return err
	}
	c.explained(plan, c.req.Body)
	return nil
}
