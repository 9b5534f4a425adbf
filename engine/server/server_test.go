package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/server/wire"
)

// Most of what a server does it can do without a database: a command that asks for one panics, which is a test as well.

func listen(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != ErrClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func marshal(t testing.TB, cmd bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opMsg is a request: a reply has the same bytes.
func opMsg(doc []byte, c wire.Compressor, checksum bool) []byte {
	var r wire.Reply
	r.Begin(&wire.Message{Op: wire.OpMsg, Compressor: c, Checksum: checksum}, 42)
	r.Buf = append(r.Buf, doc...)
	return bytes.Clone(r.End(true))
}

func opQuery(doc []byte) []byte {
	b := make([]byte, 20)
	b = append(b, "admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"...)
	b = append(b, doc...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], uint32(wire.OpQuery))
	return b
}

var ping = bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}

func TestDriverConnects(t *testing.T) {
	s := New(nil, Options{})
	address := listen(t, s)
	for _, compressor := range []string{"", "snappy", "zlib", "zstd"} {
		for _, inProcess := range []bool{false, true} {
			opts := options.Client().SetServerMonitoringMode("poll").ApplyURI("mongodb://" + address)
			if compressor != "" {
				opts.SetCompressors([]string{compressor})
			}
			if inProcess {
				opts.ApplyURI("mongodb://nowhere.invalid").SetDialer(s)
			}
			client, err := mongo.Connect(opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			for range 3 {
				if err := client.Ping(ctx, nil); err != nil {
					t.Errorf("%q, in process %v: %v", compressor, inProcess, err)
				}
			}
			var info bson.M
			if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info); err != nil || info["version"] != "8.0.0" {
				t.Errorf("%q: %v, %v", compressor, info, err)
			}
			err = client.Database("a").RunCommand(ctx, bson.D{{Key: "nonsense", Value: 1}}).Err()
			if ce, ok := errors.AsType[mongo.CommandError](err); !ok || ce.Code != 59 || ce.Name != "CommandNotFound" {
				t.Errorf("%q: %v", compressor, err)
			}
			if err := client.Disconnect(ctx); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRawProtocol(t *testing.T) {
	s := New(nil, Options{})
	nc, err := net.Dial("tcp", listen(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	r := wire.NewReader(nc)
	doc := marshal(t, ping)
	silent := opMsg(doc, 0, false)
	silent[16] |= 2 // moreToCome
	bad := opMsg([]byte{9, 0, 0, 0, 1, 2, 3, 4, 5}, 0, false)
	requests := [][]byte{
		silent, opMsg(doc, 0, true), opMsg(doc, wire.Snappy, false), bad, silent, opMsg(doc, wire.Zlib, true), opMsg(doc, wire.Zstd, false),
		opMsg(marshal(t, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "a"}}), 0, false),
		opMsg(marshal(t, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}), wire.Zlib, false),
	}
	if _, err := nc.Write(bytes.Join(requests, nil)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		ok         float64
		compressor wire.Compressor
		checksum   bool
	}{{1, 0, true}, {1, wire.Snappy, false}, {0, 0, false}, {1, wire.Zlib, true}, {1, wire.Zstd, false}, {0, 0, false}, {1, 0, false}} {
		m, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got := bson.Raw(m.Body).Lookup("ok").Double(); got != want.ok || m.Compressor != want.compressor || m.Checksum != want.checksum {
			t.Errorf("%+v: %s", want, bson.Raw(m.Body))
		}
	}

	wrapped := bson.D{{Key: "$query", Value: bson.D{{Key: "isMaster", Value: 1}}}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}}
	for _, x := range []struct {
		query bson.D
		flags byte
		field string
	}{
		{bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}}, 8, "helloOk"},
		{wrapped, 8, "ismaster"},
		{ping, 10, "codeName"},
	} {
		if _, err := nc.Write(opQuery(marshal(t, x.query))); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 36)
		if _, err := io.ReadFull(nc, head); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.LittleEndian.Uint32(head)-36)
		if _, err := io.ReadFull(nc, body); err != nil {
			t.Fatal(err)
		}
		if _, err := bson.Raw(body).LookupErr(x.field); err != nil || head[16] != x.flags {
			t.Errorf("%v: flags %d, %s", x.query, head[16], bson.Raw(body))
		}
	}
}

// Whatever one client does, another's ping is answered.
func TestHostileClientsHarmNobody(t *testing.T) {
	s := New(nil, Options{})
	address := listen(t, s)
	good, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	sound := opMsg(marshal(t, ping), 0, false)
	huge := bytes.Clone(sound)
	binary.LittleEndian.PutUint32(huge, 48_000_000)
	wrong := bytes.Clone(sound)
	binary.LittleEndian.PutUint32(wrong, 1<<31-1)
	r := wire.NewReader(good)
	for _, attack := range [][]byte{
		[]byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"), {}, sound[:7], huge, wrong, bytes.Repeat([]byte{0xff}, 1000), make([]byte, 1000),
	} {
		bad, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Write(attack); err != nil {
			t.Fatal(err)
		}
		if _, err := good.Write(sound); err != nil {
			t.Fatal(err)
		}
		if m, err := r.Read(); err != nil || bson.Raw(m.Body).Lookup("ok").Double() != 1 {
			t.Fatalf("after %q: %v", attack, err)
		}
		_ = bad.Close()
	}
}

func TestTooManyConnections(t *testing.T) {
	s := New(nil, Options{MaxConnections: 2})
	defer s.Close()
	ctx := context.Background()
	a, err := s.DialContext(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DialContext(ctx, "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DialContext(ctx, "", ""); err == nil {
		t.Error("a third connection")
	}
	if n := s.commands.Net.Refused.Load(); n != 1 {
		t.Errorf("%d refused", n)
	}
	_ = a.Close()
}

// A client may be silent between messages for ever, but not within one.
func TestStalledClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := New(nil, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx := context.Background()
		idle, err := s.DialContext(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		stalled, err := s.DialContext(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		sound := opMsg(marshal(t, ping), 0, false)
		if _, err := stalled.Write(sound[:20]); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := stalled.Read(make([]byte, 1)); err != io.EOF || time.Since(start) != stallMax {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(24 * time.Hour)
		if _, err := idle.Write(sound); err != nil {
			t.Fatal(err)
		}
		if m, err := wire.NewReader(idle).Read(); err != nil || m.RequestID == 0 {
			t.Errorf("the idle client: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "i/o timeout") {
			t.Errorf("log: %s", &log)
		}
		if _, err := s.DialContext(ctx, "", ""); err != ErrClosed {
			t.Errorf("after Close: %v", err)
		}
	})
}

// Requests wait for memory that others hold, and nobody waits for ever.
func TestLargeMessagesShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, Options{MessageMemory: 5 << 20})
		ctx := context.Background()
		dial := func() net.Conn {
			nc, err := s.DialContext(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			return nc
		}
		large := opMsg(marshal(t, bson.D{{Key: "ping", Value: strings.Repeat("x", 3<<20)}, {Key: "$db", Value: "admin"}}), 0, false)
		holder, waiter, small := dial(), dial(), dial()
		if _, err := holder.Write(large[:1000]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		answered := make(chan time.Duration)
		go func() {
			_, werr := waiter.Write(large)
			m, rerr := wire.NewReader(waiter).Read()
			if werr != nil || rerr != nil || bson.Raw(m.Body).Lookup("ok").Double() != 1 {
				t.Errorf("the one who waits: %v, %v", werr, rerr)
			}
			answered <- time.Since(start)
		}()
		if _, err := small.Write(opMsg(marshal(t, ping), 0, false)); err != nil {
			t.Fatal(err)
		}
		if _, err := wire.NewReader(small).Read(); err != nil || time.Since(start) != 0 {
			t.Errorf("a small message: %v after %v", err, time.Since(start))
		}
		if took := <-answered; took != stallMax {
			t.Errorf("the one who waits was answered after %v", took)
		}
		synctest.Wait() // what a message took is given back after its answer
		if !s.budget.try(5 << 20) {
			t.Error("some of the budget was lost")
		}
		s.budget.give(5 << 20)

		// Who still waits when the server closes is sent away.
		holder, waiter = dial(), dial()
		if _, err := holder.Write(large[:1000]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := waiter.Write(large[:1000]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start = time.Now()
		if err := s.Close(); err != nil || time.Since(start) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
	})
}

func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe(env.Real())
		data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
		var wg sync.WaitGroup
		wg.Go(func() {
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 70_001)
				if _, err := a.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			_ = a.Close()
		})
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		wg.Wait()
		if _, err := b.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("write to a closed end: %v", err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read at a closed end: %v", err)
		}

		a, b = newPipe(env.Real())
		start := time.Now()
		_ = a.SetDeadline(start.Add(time.Second))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("a read with a deadline: %v after %v", err, time.Since(start))
		}
		synctest.Wait() // the write's timer fires at the same instant
		if n, err := a.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || n != 0 {
			t.Errorf("a write past its deadline: %d, %v", n, err)
		}
		_ = a.SetDeadline(time.Time{})
		_ = a.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := a.Write(make([]byte, pipeSize+1)); !errors.Is(err, os.ErrDeadlineExceeded) || n != pipeSize {
			t.Errorf("a write that nobody reads: %d, %v", n, err)
		}
		// A deadline that was moved must not fire at its old time.
		_ = a.SetReadDeadline(time.Now().Add(time.Second))
		_ = a.SetReadDeadline(time.Now().Add(time.Hour))
		go func() {
			time.Sleep(time.Minute)
			_, _ = b.Write([]byte("x"))
		}()
		if n, err := a.Read(make([]byte, 9)); n != 1 || err != nil {
			t.Errorf("a read whose deadline was moved: %d, %v", n, err)
		}
		_ = a.Close()
		_ = b.Close()
	})
}

func BenchmarkPing(b *testing.B) {
	s := New(nil, Options{})
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(l)
	request := opMsg(marshal(b, ping), 0, false)
	for name, dial := range map[string]func() (net.Conn, error){
		"pipe":   func() (net.Conn, error) { return s.DialContext(context.Background(), "", "") },
		"socket": func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) },
	} {
		b.Run(name, func(b *testing.B) {
			nc, err := dial()
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			r := wire.NewReader(nc)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(request); err != nil {
					b.Fatal(err)
				}
				if _, err := r.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
