// Package server is the network's side of a database: it accepts connections, reads messages (package wire), has commands run
// (package command) and sends the replies.
//
// One goroutine serves one connection, one message after the other, in buffers that it uses again. A client in the same process needs
// no socket: a [Server] is a dialer for the official driver.
//
//	db, err := engine.Open(dir, engine.Options{})
//	srv := server.New(db, server.Options{})
//	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://in-process").SetDialer(srv))
//
// What always holds: whatever a client sends, the most that happens is that its own connection is closed. A connection holds
// little between messages (wire gives large buffers back), large messages of all connections share a budget of memory, and a client
// that stops in the middle of a message is dropped after a while. Requests are answered in their order.
//
// The server does not own the database: close the server first, then the database.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/command"
	"github.com/multiforadb/multiforadb/engine/env"
)

const (
	// connectionsMax is how many clients there may be, unless Options say otherwise.
	connectionsMax = 20_000
	// stallMax is how long a client may pause in the middle of a message, its own or ours.
	stallMax = 2 * time.Minute
	// messageMemory is what large messages may take together, unless Options say otherwise.
	messageMemory = 1 << 30
	// closeGrace is how long Close lets running commands finish before it cancels them.
	closeGrace = 10 * time.Second
)

// Options say how a Server works. The zero value is a sensible one.
type Options struct {
	// Env is the outside; nil is the real one. It should be the database's.
	Env *env.Env
	// Logger takes what happens to connections and commands; nil discards it.
	Logger *slog.Logger
	// MaxConnections bounds the number of clients; 0 is 20 000.
	MaxConnections int
	// MessageMemory bounds, in bytes, what all large requests and replies under way may take together; 0 is 1 GiB.
	MessageMemory int64
	// Process is what clients are told about this process.
	Process command.Process
	// Warnings are shown by mongosh when it connects.
	Warnings []string
	// Lines gives the newest lines of the log, for the command getLog; it may be nil.
	Lines func() []string
}

// Server serves one database.
type Server struct {
	env      *env.Env
	log      *slog.Logger
	max      int
	commands *command.Dispatcher
	ctx      context.Context // of all commands
	cancel   context.CancelCauseFunc
	running  env.WaitGroup // connections
	budget   budget

	mu        env.Mutex
	conns     map[*conn]bool
	listeners map[net.Listener]bool
	closed    bool
}

// ErrClosed is what Serve and DialContext return once the server was closed.
var ErrClosed = errors.New("the server is closed")

// New makes a Server of db. Give it connections by Serve and DialContext.
func New(db *engine.DB, o Options) *Server {
	if o.Env == nil {
		o.Env = env.Real()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = connectionsMax
	}
	if o.MessageMemory == 0 {
		o.MessageMemory = messageMemory
	}
	s := &Server{
		env: o.Env, log: o.Logger, max: o.MaxConnections,
		commands: command.New(db, command.Options{
			Env: o.Env, Logger: o.Logger, Process: o.Process, Warnings: o.Warnings, Lines: o.Lines, MaxConnections: o.MaxConnections,
		}),
		conns:     make(map[*conn]bool),
		listeners: make(map[net.Listener]bool),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.mu.Init(s.env, env.RankNone, "server")
	s.running.Init(s.env, "connections")
	s.budget.init(s.env, o.MessageMemory)
	return s
}

// Serve accepts connections from l, which it closes, until the server is closed (it returns ErrClosed then) or l fails.
func (s *Server) Serve(l net.Listener) error {
	if !s.addListener(l) {
		_ = l.Close()
		return ErrClosed
	}
	defer s.removeListener(l)
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.start(nc)
			continue
		}
		if s.isClosed() {
			return ErrClosed
		}
		// Out of file descriptors, most likely: that passes as clients go.
		if ne, ok := errors.AsType[net.Error](err); !ok || ne.Timeout() || errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("server: accept on %s: %w", l.Addr(), err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.log.Warn("cannot accept a connection", "address", l.Addr().String(), "error", err, "pause", pause)
		s.env.Clock.Sleep(pause)
	}
}

// DialContext connects to the server within the process. network and address mean nothing. It is what the driver's
// ClientOptions.SetDialer wants.
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	near, far := newPipe(s.env)
	if !s.start(far) {
		_ = near.Close()
		return nil, ErrClosed
	}
	return near, nil
}

// start serves a connection in a goroutine of its own. It is false, and nc closed, if there are too many or the server was
// closed.
func (s *Server) start(nc net.Conn) bool {
	c := newConn(s, nc)
	s.mu.Lock()
	full := len(s.conns) >= s.max
	if s.closed || full {
		s.mu.Unlock()
		if full {
			s.commands.Net.Refused.Add(1)
			s.log.Warn("too many connections", "remote", nc.RemoteAddr().String(), "max", s.max)
		}
		_ = nc.Close()
		return false
	}
	s.conns[c] = true
	s.running.Add(1)
	s.mu.Unlock()
	s.commands.Net.Current.Add(1)
	s.env.Go("connection", func() {
		defer s.running.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.commands.Net.Current.Add(-1)
	})
	return true
}

// Close stops accepting, closes idle connections, lets running commands finish (after ten seconds it cancels them), sends
// their replies, and returns when no connection is left.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.running.Wait()
		return nil
	}
	s.closed = true
	var errs []error
	for l := range s.listeners { // order: only a real server has any
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, c := range s.oldestFirst() {
		if !c.busy {
			_ = c.nc.Close()
		}
	}
	s.mu.Unlock()
	s.commands.Quiesce()
	s.budget.close()
	stop := s.env.Clock.AfterFunc(closeGrace, func() {
		s.cancel(ErrClosed)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.oldestFirst() {
			_ = c.nc.SetDeadline(s.env.Clock.Now())
		}
	})
	s.running.Wait()
	stop()
	s.cancel(ErrClosed)
	s.commands.Close()
	return errors.Join(errs...)
}

// oldestFirst gives the connections in the order in which they came. mu is locked.
func (s *Server) oldestFirst() []*conn {
	return slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return int(a.client.ID) - int(b.client.ID) })
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[l] = true
	return true
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	_ = l.Close()
}

// setBusy marks a connection as within a command. It is false if the connection should end instead.
func (s *Server) setBusy(c *conn, busy bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.busy = busy
	return !s.closed
}

// harmless says whether an error of a connection is only its end.
func harmless(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, ErrClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
