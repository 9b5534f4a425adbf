package commands

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/sim/model"
)

// parked is a cursor that a client has left open on its own documents of a collection, while it goes on changing them. Those that it has
// not touched meanwhile must come, each once, and as they were.
type parked struct {
	cursor  *engine.Cursor
	ns      string
	ddl     int32
	expect  map[string]string // documents by _id, as they were at the beginning
	seen    map[string]bool
	touched map[string]bool // since then
	all     bool            // perhaps all of them
}

// disturb notes what an operation may touch.
func (p *parked) disturb(op *model.Op) {
	if p.cursor == nil || op.NS != p.ns {
		return
	}
	switch op.Kind {
	case model.Insert:
		for _, d := range op.Docs {
			p.touched[d.ID] = true
		}
	case model.Update, model.Delete, model.Modify:
		if f := op.Filter; len(f) == 1 && f[0].Field == "_id" {
			p.touched[f[0].Value.S] = true
		} else {
			p.all = true
		}
	}
}

// parkOn opens a cursor.
func (c *client) parkOn(ns string) string {
	by := model.Filter{{Field: "g", Value: model.S(c.name)}}
	c.slow = 0
	ddl := c.ddl.Load()
	if c.defined.Load() != ddl {
		ddl = -1 // one is under way, and may do its work at any time
	}
	docs, err := c.find(context.Background(), namespace(ns), by, Plain)
	if err != nil {
		c.w.Fail(err)
	}
	p := parked{ns: ns, ddl: ddl, expect: map[string]string{}, seen: map[string]bool{}, touched: map[string]bool{}}
	for _, d := range docs {
		p.expect[d.ID] = d.Text
	}
	if p.cursor, err = c.db.Find(context.Background(), namespace(ns), engine.Find{Filter: filter(by)}); err != nil {
		c.w.Fail(err)
	}
	c.park = p
	return fmt.Sprintf("%d documents, %s", len(docs), c.takeParked(1))
}

// takeParked reads some more.
func (c *client) takeParked(n int) string {
	p := &c.park
	if p.cursor == nil {
		return "there is none"
	}
	got := 0
	more, err := p.cursor.Batch(context.Background(), n, func(b bson.Raw) bool {
		got++
		d, err := model.Decode(b)
		switch {
		case err != nil:
			c.w.Fail(err)
		case p.all || p.touched[d.ID]:
		case p.seen[d.ID]:
			c.w.Fail(fmt.Errorf("%s: a cursor on %s gave %s twice", c.name, p.ns, d.Text))
		case c.ddl.Load() == p.ddl && p.expect[d.ID] != d.Text:
			c.w.Fail(fmt.Errorf("%s: a cursor on %s gave %s, which was %q when it was opened", c.name, p.ns, d.Text, p.expect[d.ID]))
		}
		p.seen[d.ID] = true
		return true
	})
	quiet := c.ddl.Load() == p.ddl
	switch {
	case mongoerr.Is(err, mongoerr.QueryPlanKilled) && !quiet:
		p.cursor = nil
		return "the cursor was killed"
	case err != nil:
		c.w.Fail(fmt.Errorf("%s: a cursor on %s: %w", c.name, p.ns, err))
	case more:
		return fmt.Sprintf("%d documents, and more", got)
	}
	if quiet && !p.all {
		for id, text := range p.expect {
			if !p.seen[id] && !p.touched[id] {
				c.w.Fail(fmt.Errorf("%s: a cursor on %s did not give %s", c.name, p.ns, text))
			}
		}
	}
	p.cursor = nil
	return fmt.Sprintf("%d documents, and no more", got)
}
