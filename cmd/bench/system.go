package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// database is the one that measurements work in, and drop.
const database = "bench"

// systemFlags say what is measured.
type systemFlags struct {
	URI    []string `name:"uri" placeholder:"URI" help:"Server to measure, as mongodb://127.0.0.1:27017; without one a server is started."`
	Server string   `type:"existingfile" placeholder:"PROGRAM" help:"The server's program to start; without one it is built (which wants Go, and this module as the current directory)."`
	Dir    string   `default:"." type:"existingdir" help:"Where files are made, in a directory that is removed again: it should be on the disk that is meant (the current directory)."`
	Limits size     `name:"limits-size" default:"128m" help:"How much is written to measure the disk's limits (${default})."`
	JSON   bool     `help:"Print JSON."`
	Seed   uint64   `default:"1" help:"Chooses the documents (${default})."`
}

func (f *systemFlags) json() bool { return f.JSON }

// system is a server under test, and its client.
type system struct {
	name   string
	client *mongo.Client
	proc   *process // if it was started here
	pid    int      // 0: unknown, or of another machine
	data   string   // directory of its files, "" if unknown
	dir    string   // removed at the end
}

// connect makes a client of a server that is there.
func connect(ctx context.Context, name, uri string, more ...*options.ClientOptions) (*system, error) {
	durable := true
	o := options.Client().SetServerMonitoringMode("poll").ApplyURI(uri).SetWriteConcern(&writeconcern.WriteConcern{W: 1, Journal: &durable}).
		SetRetryReads(false).SetRetryWrites(false).SetMaxPoolSize(1024).SetAppName("bench")
	client, err := mongo.Connect(append([]*options.ClientOptions{o}, more...)...)
	if err != nil {
		return nil, err
	}
	s := &system{name: name, client: client}
	st, err := s.status(ctx)
	if err != nil {
		_ = client.Disconnect(ctx)
		return nil, err
	}
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		s.pid = int(st.get("pid"))
	}
	return s, nil
}

// start starts a server of our own, with a fresh directory within parent.
func (b *bench) start(f *systemFlags) (*system, error) {
	program := f.Server
	if program == "" {
		var err error
		if program, err = b.own(); err != nil {
			return nil, err
		}
	}
	return b.spawn("multiforadb", f.Dir, program, "serve", "--port", "{port}", "--log-level", "WARN", "--db")
}

// spawn starts a program; the last of its arguments, a directory, is added.
func (b *bench) spawn(name, parent, program string, args ...string) (*system, error) {
	dir, err := os.MkdirTemp(parent, ".bench-")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "db")
	s, err := b.serve(name, program, append(args, data)...)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.dir, s.data = dir, data
	return s, nil
}

func (b *bench) serve(name, program string, args ...string) (*system, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return b.serveAt(address, name, program, args...)
}

func (b *bench) serveAt(address, name, program string, args ...string) (*system, error) {
	p, err := launch(address, program, args...)
	if err != nil {
		return nil, err
	}
	if err = p.wait(b.ctx); err == nil {
		var s *system
		if s, err = connect(b.ctx, name, "mongodb://"+address); err == nil {
			s.proc, s.pid = p, p.cmd.Process.Pid
			return s, nil
		}
	}
	p.kill()
	return nil, err
}

// systems gives those that the flags name, or starts one.
func (b *bench) systems(f *systemFlags) ([]*system, error) {
	if len(f.URI) == 0 {
		s, err := b.start(f)
		if err != nil {
			return nil, err
		}
		return []*system{s}, nil
	}
	var list []*system
	for _, uri := range f.URI {
		u, err := url.Parse(uri)
		var s *system
		if err == nil {
			s, err = connect(b.ctx, u.Host, uri)
		}
		if err != nil {
			closeAll(list)
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// one gives the system that the flags name, or starts it.
func (b *bench) one(f *systemFlags) (*system, error) {
	if len(f.URI) > 1 {
		return nil, fmt.Errorf("only compare takes several --uri")
	}
	list, err := b.systems(f)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// mongod starts the program of that name if there is one on the PATH; else it gives none.
func (b *bench) mongod(f *systemFlags) (*system, error) {
	program, err := exec.LookPath("mongod")
	if err != nil {
		return nil, nil
	}
	dir, err := os.MkdirTemp(f.Dir, ".bench-")
	if err != nil {
		return nil, err
	}
	s, err := b.serve("mongod", program, "--bind_ip", "127.0.0.1", "--port", "{port}", "--dbpath", dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.dir, s.data = dir, dir
	return s, nil
}

// close ends the connection, and the server if it was started here.
func (s *system) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody need be told
	_ = s.client.Disconnect(ctx)
	if s.proc != nil {
		s.proc.kill()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

func closeAll(list []*system) {
	for _, s := range list {
		s.close()
	}
}

// fresh is a collection that was just emptied.
func (s *system) fresh(ctx context.Context, name string) (*mongo.Collection, error) {
	c := s.client.Database(database).Collection(name)
	return c, c.Drop(ctx)
}

// status is serverStatus's answer.
func (s *system) status(ctx context.Context) (status, error) {
	raw, err := s.client.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}}).Raw()
	return status(raw), err
}

// status is a serverStatus.
type status bson.Raw

// get is the number at a path; 0 if there is none.
func (s status) get(path ...string) float64 {
	v, err := bson.Raw(s).LookupErr(path...)
	if err != nil {
		return 0
	}
	if f, ok := v.DoubleOK(); ok {
		return f
	}
	n, _ := v.AsInt64OK()
	return float64(n)
}

// own is a number of MultiforaDB's own section.
func (s status) own(path ...string) float64 {
	return s.get(append([]string{"multiforadb"}, path...)...)
}

// memory is what the server's process has in memory now, and the most it had, in bytes; zero if that is not known.
func (s *system) memory() (now, peak float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		return 0, 0
	}
	return 1024 * procField(text, "VmRSS:"), 1024 * procField(text, "VmHWM:")
}

// written is how many bytes the server's process has sent to disks; zero if that is not known.
func (s *system) written() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.pid))
	if err != nil {
		return 0
	}
	return procField(text, "write_bytes:")
}

func procField(text []byte, name string) float64 {
	_, rest, _ := strings.Cut(string(text), "\n"+name)
	line, _, _ := strings.Cut(rest, "\n")
	v, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(line, " kB")), 64) // 0: this system does not tell
	return v
}

// busy is the processor time in seconds that the server's process has had; zero if that is not known.
func (s *system) busy() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything; user and system time are the 12th and 13th fields after it, in hundredths.
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100
}
