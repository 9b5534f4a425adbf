package server

import (
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/multiforadb/multiforadb/engine/command"
	"github.com/multiforadb/multiforadb/engine/server/wire"
)

// conn is one connection, served by one goroutine.
type conn struct {
	srv    *Server
	nc     net.Conn
	client *command.Client
	reader *wire.Reader
	reply  wire.Reply
	nextID int32

	sequences []command.Sequence
	deadline  bool  // a read deadline is set
	spent     int64 // of Server.budget, on the message under way

	busy bool // of Server.mu: a command runs
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, client: s.commands.Connect(nc.RemoteAddr().String())}
	c.reader = wire.NewReader(counted{c})
	c.reader.OnWait = c.limitRead
	c.reader.OnLarge = c.spend
	return c
}

// counted counts what is read.
type counted struct{ c *conn }

func (r counted) Read(p []byte) (int, error) {
	n, err := r.c.nc.Read(p)
	r.c.srv.commands.Net.BytesIn.Add(int64(n))
	return n, err
}

// limitRead lets a client be silent for as long as it likes between messages, but not within one.
func (c *conn) limitRead(idle bool) {
	var t time.Time
	if !idle {
		t = c.srv.env.Clock.Now().Add(stallMax)
	} else if !c.deadline {
		return
	}
	c.deadline = !idle
	_ = c.nc.SetReadDeadline(t) // if it cannot be set, the read fails by itself
}

// spend takes a large request's memory from the budget.
func (c *conn) spend(size int64) error {
	if !c.srv.budget.take(size) {
		return ErrClosed
	}
	c.spent += size
	return nil
}

// trySpend takes some for a reply, if there is some.
func (c *conn) trySpend(size int64) bool {
	ok := c.srv.budget.try(size)
	if ok {
		c.spent += size
	}
	return ok
}

// refund gives back what the message took.
func (c *conn) refund() {
	c.srv.budget.give(c.spent)
	c.spent = 0
}

// serve answers until the client goes, misbehaves, or the server closes.
func (c *conn) serve() {
	log := c.srv.log.With("conn", c.client.ID, "remote", c.client.Remote)
	log.Debug("connected")
	defer func() {
		// Commands have a net of their own; this one is for the protocol's code, and costs only this connection.
		if p := recover(); p != nil {
			log.Error("a connection panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		_ = c.nc.Close()
		c.refund()
	}()
	for {
		m, err := c.reader.Read()
		if err == nil && !c.srv.setBusy(c, true) {
			return
		}
		if err == nil {
			err = c.answer(m)
		}
		if err != nil {
			if harmless(err) {
				log.Debug("disconnected")
			} else {
				log.Info("connection closed", "reason", err)
			}
			return
		}
		c.refund()
		if !c.srv.setBusy(c, false) {
			return
		}
	}
}

// answer runs one message's command, and replies unless the client wants no reply.
func (c *conn) answer(m *wire.Message) error {
	c.srv.commands.Net.Requests.Add(1)
	c.nextID++
	c.reply.Begin(m, c.nextID)
	defer c.reply.Sent()
	ok := false
	if m.Fault != nil {
		c.reply.Buf = command.AppendError(c.reply.Buf, m.Fault)
	} else {
		c.reply.Buf, ok = c.client.Run(c.srv.ctx, c.request(m), c.reply.Buf)
	}
	if m.MoreToCome {
		return nil
	}
	if !ok {
		c.reply.Fail()
	}
	out := c.reply.End(compressible(m))
	if err := c.nc.SetWriteDeadline(c.srv.env.Clock.Now().Add(stallMax + time.Duration(len(out)>>10)*time.Millisecond)); err != nil {
		return err
	}
	n, err := c.nc.Write(out)
	c.srv.commands.Net.BytesOut.Add(int64(n))
	return err
}

// request is the message as package command takes it.
func (c *conn) request(m *wire.Message) command.Request {
	c.sequences = c.sequences[:0]
	for i := range m.Sequences {
		c.sequences = append(c.sequences, command.Sequence(m.Sequences[i]))
	}
	r := command.Request{Body: m.Body, Sequences: c.sequences, Room: c.trySpend}
	if m.Op == wire.OpQuery {
		r.Legacy = true
		r.DB, r.Body = legacy(m)
	}
	return r
}

// legacy gives an OP_QUERY's database, and its command, which may be wrapped to stand beside a read preference.
func legacy(m *wire.Message) (db string, body []byte) {
	const suffix = ".$cmd"
	if n := len(m.Namespace) - len(suffix); n > 0 && m.Namespace[n:] == suffix {
		db = m.Namespace[:n]
	}
	return db, command.Unwrap(m.Body)
}

// compressible: what says hello or carries secrets is never compressed.
func compressible(m *wire.Message) bool {
	if m.Op == wire.OpQuery || len(m.Body) < 6 {
		return false
	}
	switch command.Name(m.Body) {
	case "hello", "isMaster", "ismaster", "saslStart", "saslContinue", "authenticate", "createUser", "updateUser":
		return false
	}
	return true
}
