// Package command is the adapter between MongoDB's commands and package engine: BSON in, a call of the engine, BSON out. It knows
// nothing of the wire, and the engine nothing of it.
//
// A command is one row of the table in commands.go and one file. The file reads the command's fields (field.go: strictly, an unknown
// field is an error), calls the engine, and appends the reply's fields to call.out. What is common to all commands
// happens around that: the generic arguments (generic.go), the checks of the row's flags, time limits, errors turned into replies,
// panics.
//
// A [Dispatcher] serves one database. It owns the clients' cursors (cursors.go); a [Client] is what is known of one
// connection, and runs one command at a time.
//
// What always holds: nothing is accepted and ignored if it changes results, durability or security. A reply is a whole
// document, whatever happened. No part of a request is kept after Run returned.
package command

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// slow is from when on a command is worth a line in the log.
const slow = 100 * time.Millisecond

// Options say what a Dispatcher tells about itself and with what it works.
type Options struct {
	Env    *env.Env
	Logger *slog.Logger
	// Process is what clients are told of it.
	Process Process
	// Warnings are shown to whoever asks getLog for startupWarnings: mongosh does, and prints them.
	Warnings []string
	// Lines gives the newest lines of the log, for getLog; it may be nil.
	Lines func() []string
	// MaxConnections is what serverStatus reports; the server enforces it.
	MaxConnections int
}

// Process is this process, as the machine knows it.
type Process struct {
	Host string // name of the machine
	PID  int
	Argv []string
}

// Dispatcher runs commands on one database.
type Dispatcher struct {
	db      *engine.DB
	opts    Options
	env     *env.Env
	log     *slog.Logger
	cursors *Cursors
	byName  map[string]*command
	started time.Time
	uptime  func() time.Duration

	// Net is the server's to count.
	Net Network

	quiet       quiet
	processID   bson.ObjectID // of this run of the server, for topologyVersion
	ops         opCounters
	operations  operations
	connections atomic.Int64 // the newest connection's number
}

// Network is what the server has seen of its clients.
type Network struct {
	Current, Refused            atomic.Int64 // connections
	BytesIn, BytesOut, Requests atomic.Int64
}

type opCounters struct {
	insert, query, update, remove, getMore, command atomic.Int64
}

// New makes a Dispatcher of db.
func New(db *engine.DB, o Options) *Dispatcher {
	start := o.Env.Clock.Monotonic()
	d := &Dispatcher{
		db: db, opts: o, env: o.Env, log: o.Logger,
		cursors: newCursors(o.Env),
		byName:  make(map[string]*command),
		started: o.Env.Clock.Now(),
		uptime:  func() time.Duration { return o.Env.Clock.Monotonic() - start },
	}
	d.operations.init(o.Env)
	d.quiet.init(o.Env)
	binary.BigEndian.PutUint32(d.processID[:], uint32(d.started.Unix()))
	binary.BigEndian.PutUint64(d.processID[4:], o.Env.Rand.Uint64())
	for i := range commands {
		c := &commands[i]
		d.byName[c.name] = c
		for _, alias := range c.aliases {
			d.byName[alias] = c
		}
	}
	return d
}

// Close kills all cursors, and ends the job that does so to idle ones.
func (d *Dispatcher) Close() { d.cursors.close() }

// Client is one connection. It runs one command at a time.
type Client struct {
	d      *Dispatcher
	ID     int32
	Remote string

	metadata bson.Raw // of the first hello
	docs     []bson.Raw
	op       operation
	names    map[string]string // of commands, fields and namespaces that it used, so that they need not be made each time
}

const (
	// namesMax is how many names a client keeps, and nameSizeMax how long they are, in bytes.
	namesMax    = 256
	nameSizeMax = 128
)

// name is b as a string.
func (cl *Client) name(b []byte) string {
	if s, ok := cl.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(cl.names) < namesMax && len(s) <= nameSizeMax {
		cl.names[s] = s
	}
	return s
}

// Connect makes a Client for a new connection.
func (d *Dispatcher) Connect(remote string) *Client {
	return &Client{d: d, ID: int32(d.connections.Add(1)), Remote: remote, names: map[string]string{}}
}

// Request is one command.
type Request struct {
	Body      bson.Raw
	Sequences []Sequence
	// DB is the database if the protocol has it outside of the body; empty if $db is in the body.
	DB string
	// Room asks for memory for a large reply, in bytes. Where there is none the reply is to be shorter. It may be nil.
	Room func(size int64) bool
	// Legacy: an OP_QUERY brought it, which only says hello.
	Legacy bool
}

// Sequence is an array of the command that was sent beside it: Count documents one after the other.
type Sequence struct {
	Name  string
	Docs  []byte
	Count int
}

// call is one command under way.
type call struct {
	*Dispatcher
	client   *Client
	ctx      context.Context
	req      Request
	command  *command
	name     string // as the client wrote it
	database string
	generic  generic
	waited   time.Duration // for what others do, which is no work
	// out ends with the reply's document, not closed yet.
	out []byte
}

// Run runs one command and appends the reply to out. ok says whether the command was one that succeeded. The request must
// have been validated.
func (cl *Client) Run(ctx context.Context, req Request, out []byte) (reply []byte, ok bool) {
	c := call{Dispatcher: cl.d, client: cl, ctx: ctx, req: req}
	start := cl.d.env.Clock.Monotonic()
	at, out := bsoncore.AppendDocumentStart(out)
	c.out = out
	err := c.run()
	if err != nil {
		c.out = appendError(c.out[:at+4], err)
	} else {
		c.out = bsoncore.AppendDoubleElement(c.out, "ok", 1)
	}
	c.out, _ = bsoncore.AppendDocumentEnd(c.out, at)
	cl.report(&c, err, cl.d.env.Clock.Monotonic()-start-c.waited)
	return c.out, err == nil
}

func (cl *Client) report(c *call, err error, took time.Duration) {
	level := slog.LevelDebug
	if took >= slow {
		level = slog.LevelInfo
	}
	if !cl.d.log.Enabled(c.ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.Int("conn", int(cl.ID)), slog.String("command", c.name), slog.String("db", c.database),
		slog.Duration("took", took), slog.Int("replyBytes", len(c.out)),
	}
	if v := c.first(); v.Type == bson.TypeString {
		attrs = append(attrs, slog.String("collection", v.StringValue()))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	what := "command"
	if took >= slow {
		what = "slow command"
	}
	cl.d.log.LogAttrs(c.ctx, level, what, attrs...)
}

// run finds the command, checks what is common to all, and runs it. A panic in a command fails that command.
func (c *call) run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("a command panicked", "conn", c.client.ID, "command", c.name, "db", c.database, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = mongoerr.InternalError.Errorf("the command %s failed for a reason of the server's own, which its log names", c.name)
		}
	}()
	if err := c.find(); err != nil {
		return err
	}
	if err := c.generic.parse(c); err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	if !c.command.counts {
		c.ops.command.Add(1)
	}
	if c.command.run == nil {
		return mongoerr.NotImplemented.Errorf("The command %s is not implemented yet", c.command.name)
	}
	c.operations.begin(c)
	defer c.operations.end(c)
	limit := c.generic.maxTime
	if c.command.waits {
		limit = 0
	}
	return c.limited(limit, c.command.run)
}

// find looks the command up: the first field's name.
func (c *call) find() error {
	it := value.Elements(c.req.Body)
	it.Next()
	c.name = c.client.name(it.Name())
	c.command = c.byName[c.name]
	if c.command == nil {
		return mongoerr.CommandNotFound.Errorf("no such command: '%s'", c.name)
	}
	if c.req.Legacy && !c.command.legacy {
		return mongoerr.UnsupportedOpQueryCommand.Errorf("Unsupported OP_QUERY command: %s. The client driver may require an upgrade.", c.name)
	}
	return nil
}

// admit checks the command's flags against what came with it.
func (c *call) admit() error {
	cmd, g := c.command, &c.generic
	if !g.hasDB {
		if c.req.DB == "" {
			return mongoerr.Code(40571).Errorf("OP_MSG requests require a $db argument")
		}
		c.database = c.req.DB
	}
	if err := catalog.CheckDB(c.database); err != nil {
		return err
	}
	if cmd.admin && c.database != "admin" {
		return mongoerr.Unauthorized.Errorf("%s may only be run against the admin database.", cmd.name)
	}
	if g.apiStrict && !cmd.stable {
		return mongoerr.APIStrictError.Errorf("Provided apiStrict:true, but the command %s is not in API Version 1", cmd.name)
	}
	if g.hasWriteConcern && !cmd.write {
		return mongoerr.InvalidOptions.Errorf("Command %s does not support writeConcern", cmd.name)
	}
	if g.hasReadConcern && !cmd.read {
		return mongoerr.InvalidOptions.Errorf("Command %s does not support readConcern", cmd.name)
	}
	return nil
}

// limited runs f with a limit of time; 0 is none.
func (c *call) limited(limit time.Duration, f func(c *call) error) error {
	if limit == 0 {
		return f(c)
	}
	outer := c.ctx
	ctx, cancel := context.WithCancelCause(outer)
	stop := c.env.Clock.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	defer func() {
		stop()
		cancel(nil)
		c.ctx = outer
	}()
	c.ctx = &killable{ctx, &c.client.op}
	err := f(c)
	if err != nil && mongoerr.From(err).Code == mongoerr.Interrupted && context.Cause(ctx) == context.DeadlineExceeded {
		return mongoerr.MaxTimeMSExpired.Errorf("operation exceeded time limit")
	}
	return err
}

// Name is a command's name as the client wrote it: that of the first field.
func Name(body bson.Raw) string {
	it := value.Elements(body)
	it.Next()
	return string(it.Name())
}

// Unwrap gives the command of an OP_QUERY, which may stand in $query beside a read preference.
func Unwrap(body bson.Raw) bson.Raw {
	it := value.Elements(body)
	if it.Next() && it.Value().Type == bson.TypeEmbeddedDocument {
		switch string(it.Name()) {
		case "$query", "query":
			return bson.Raw(it.Value().Value)
		}
	}
	return body
}

// first is the value of the command's first field: for most a collection's name.
func (c *call) first() bson.RawValue {
	it := value.Elements(c.req.Body)
	it.Next()
	return it.Value()
}

// namespace is the collection that the first field names.
func (c *call) namespace() (engine.Namespace, error) {
	v := c.first()
	if v.Type != bson.TypeString {
		return engine.Namespace{}, mongoerr.InvalidNamespace.Errorf("collection name has invalid type %s", typeName(v.Type))
	}
	ns := engine.Namespace{DB: c.database, Coll: c.client.name(value.StringBytes(v))}
	return ns, ns.Check()
}
