package server

import (
	"io"
	"net"
	"os"
	"time"

	"github.com/multiforadb/multiforadb/engine/env"
)

// pipeSize is how much a direction holds before its writer waits.
const pipeSize = 64 << 10

// newPipe makes a connection within the process: what is written at one end can be read at the other. Unlike net.Pipe it has
// buffers, so that a small request costs two switches of goroutines and not six, and its waits are env's.
func newPipe(e *env.Env) (client, server net.Conn) {
	a, b := newStream(e), newStream(e)
	return &pipeEnd{in: a, out: b}, &pipeEnd{in: b, out: a}
}

// pipeEnd is one end.
type pipeEnd struct{ in, out *stream }

func (p *pipeEnd) Read(b []byte) (int, error)  { return p.in.read(b) }
func (p *pipeEnd) Write(b []byte) (int, error) { return p.out.write(b) }

func (p *pipeEnd) Close() error {
	p.in.close(true)
	p.out.close(false)
	return nil
}

func (p *pipeEnd) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *pipeEnd) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipeEnd) SetDeadline(t time.Time) error {
	p.in.readLimit.set(p.in, t)
	p.out.writeLimit.set(p.out, t)
	return nil
}

func (p *pipeEnd) SetReadDeadline(t time.Time) error {
	p.in.readLimit.set(p.in, t)
	return nil
}

func (p *pipeEnd) SetWriteDeadline(t time.Time) error {
	p.out.writeLimit.set(p.out, t)
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "in-process" }
func (pipeAddr) String() string  { return "in-process" }

// stream is one direction: bytes between a writer and a reader.
type stream struct {
	env     *env.Env
	mu      env.Mutex
	changed env.Cond

	buf                   []byte // what was written and not read
	from                  int    // buf[:from] was read
	readClosed, writeDone bool
	readLimit, writeLimit limit
}

// limit is a deadline. Of stream.mu.
type limit struct {
	passed bool
	round  int // counts the settings, so that an old timer says nothing
	stop   func() bool
}

func newStream(e *env.Env) *stream {
	s := &stream{env: e}
	s.mu.Init(e, env.RankNone, "pipe")
	s.changed.Init(e, &s.mu, "pipe")
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readClosed:
			return 0, net.ErrClosed
		case s.readLimit.passed:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case s.from < len(s.buf):
			n := copy(b, s.buf[s.from:])
			if s.from += n; s.from == len(s.buf) {
				s.buf, s.from = s.buf[:0], 0
			}
			s.changed.Broadcast()
			return n, nil
		case s.writeDone:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.writeDone:
			return written, net.ErrClosed
		case s.readClosed:
			return written, io.ErrClosedPipe
		case s.writeLimit.passed:
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		}
		if n := min(len(b), pipeSize-(len(s.buf)-s.from)); n > 0 {
			if s.from > 0 && len(s.buf)+n > cap(s.buf) {
				s.buf, s.from = s.buf[:copy(s.buf, s.buf[s.from:])], 0
			}
			s.buf = append(s.buf, b[:n]...)
			b, written = b[n:], written+n
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// close ends the stream from the reader's side, or from the writer's: what was written before can still be read.
func (s *stream) close(reader bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader {
		s.readClosed = true
		s.buf, s.from = nil, 0
	} else {
		s.writeDone = true
	}
	for _, l := range []*limit{&s.readLimit, &s.writeLimit} {
		if s.readClosed && s.writeDone && l.stop != nil {
			l.stop()
			l.stop = nil
		}
	}
	s.changed.Broadcast()
}

// set sets the deadline; the zero time is none.
func (l *limit) set(s *stream, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	l.round++
	l.passed = false
	if !t.IsZero() {
		left := t.Sub(s.env.Clock.Now())
		if l.passed = left <= 0; !l.passed {
			round := l.round
			l.stop = s.env.Clock.AfterFunc(left, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if l.round == round {
					l.passed = true
					s.changed.Broadcast()
				}
			})
		}
	}
	s.changed.Broadcast()
}
