package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
)

// operations are the commands that run, for currentOp and killOp. Each client has at most one.
type operations struct {
	mu      env.Mutex
	next    int32
	running map[int32]*operation // by opid
}

// operation is a command under way. All but killed is guarded by operations.mu, and body dies with the command.
type operation struct {
	id       int32
	client   *Client
	name     string // of the command
	database string
	body     bson.Raw
	began    time.Duration
	killed   atomic.Bool
	ctx      killable
	progress engine.Progress
}

func (o *operations) init(e *env.Env) {
	o.mu.Init(e, env.RankNone, "operations")
	o.running = map[int32]*operation{}
}

// begin registers the call as its client's operation.
func (o *operations) begin(c *call) {
	op := &c.client.op
	op.killed.Store(false)
	op.progress.Clear()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next++
	op.id, op.client, op.name, op.database, op.body, op.began = o.next, c.client, c.command.name, c.database, c.req.Body, c.env.Clock.Monotonic()
	o.running[op.id] = op
	op.ctx = killable{c.ctx, op}
	c.ctx = &op.ctx
}

func (o *operations) end(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.running, c.client.op.id)
	c.client.op.body = nil
}

// kill makes an operation end soon, if there is one of that id.
func (o *operations) kill(id int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if op := o.running[id]; op != nil {
		op.killed.Store(true)
	}
}

// killable is an operation's context. What takes long asks Err now and then.
type killable struct {
	context.Context
	op *operation
}

func (k *killable) Err() error {
	if k.op.killed.Load() {
		return context.Canceled
	}
	return k.Context.Err()
}

// list describes what runs, as MongoDB's currentOp does, by opid.
func (d *Dispatcher) list() []bson.Raw {
	o := &d.operations
	now := d.env.Clock.Monotonic()
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := slices.Sorted(maps.Keys(o.running))
	docs := make([]bson.Raw, len(ids))
	for i, id := range ids {
		docs[i] = d.describe(o.running[id], now)
	}
	return docs
}

// shownMax is the size of the largest command that is shown whole, in bytes.
const shownMax = 1000

func (d *Dispatcher) describe(op *operation, now time.Duration) bson.Raw {
	kind := "command"
	switch op.name {
	case "insert", "update":
		kind = op.name
	case "find":
		kind = "query"
	case "delete":
		kind = "remove"
	case "getMore":
		kind = "getmore"
	}
	ns := op.database + ".$cmd"
	if first, err := op.body.IndexErr(0); err == nil {
		if coll, ok := first.Value().StringValueOK(); ok {
			ns = op.database + "." + coll
		}
	}
	return document(func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "type", "op")
		dst = bsoncore.AppendStringElement(dst, "host", d.opts.Process.Host)
		dst = bsoncore.AppendStringElement(dst, "desc", fmt.Sprintf("conn%d", op.client.ID))
		dst = bsoncore.AppendInt32Element(dst, "connectionId", op.client.ID)
		dst = bsoncore.AppendStringElement(dst, "client", op.client.Remote)
		dst = bsoncore.AppendBooleanElement(dst, "active", true)
		dst = bsoncore.AppendInt32Element(dst, "opid", op.id)
		dst = bsoncore.AppendInt64Element(dst, "secs_running", int64((now - op.began).Seconds()))
		dst = bsoncore.AppendInt64Element(dst, "microsecs_running", (now - op.began).Microseconds())
		dst = bsoncore.AppendStringElement(dst, "op", kind)
		dst = bsoncore.AppendStringElement(dst, "ns", ns)
		if len(op.body) <= shownMax {
			dst = bsoncore.AppendDocumentElement(dst, "command", op.body)
		} else {
			dst = nested(dst, "command", func(dst []byte) []byte {
				return bsoncore.AppendStringElement(dst, "$truncated", op.name)
			})
		}
		if what, done, total := op.progress.Get(); what != "" {
			dst = bsoncore.AppendStringElement(dst, "msg", what)
			if total > 0 {
				dst = nested(dst, "progress", func(dst []byte) []byte {
					return bsoncore.AppendInt64Element(bsoncore.AppendInt64Element(dst, "done", done), "total", total)
				})
			}
		}
		return bsoncore.AppendBooleanElement(dst, "killPending", op.killed.Load())
	})
}
