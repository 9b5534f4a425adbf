package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The test binary is the server too, if it is told so.
const serverEnv = "MULTIFORADB_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a server in a process of its own.
type process struct {
	cmd     *exec.Cmd
	address string
	log     *bytes.Buffer
	done    chan error
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// launch starts a server; it may not be ready.
func launch(t *testing.T, args ...string) (*process, <-chan string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(exe, args...), log: new(bytes.Buffer), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), serverEnv+"=1")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.log.WriteString(s.Text() + "\n")
			if m := listening.FindStringSubmatch(s.Text()); m != nil {
				ready <- m[1]
			}
		}
		close(ready)
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p, ready
}

// start starts a server and waits until it listens.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p, ready := launch(t, args...)
	address, ok := <-ready
	if !ok {
		t.Fatalf("the server did not start: %v\n%s", <-p.done, p.log)
	}
	p.address = address
	return p
}

// end sends a signal and waits for the end.
func (p *process) end(t *testing.T, s os.Signal) error {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	return <-p.done
}

func (p *process) connect(t *testing.T) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + p.address).
		SetServerMonitoringMode("poll").SetRetryReads(false).SetRetryWrites(false).
		SetServerSelectionTimeout(5 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The server is gone by then: the driver shall not look for it to say good-bye.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

// tool runs a command in this process.
func tool(args ...string) (code int, out string) {
	var b bytes.Buffer
	code = run(args, &b, &b)
	return code, b.String()
}

func TestServeStopsCleanlyAndKeepsWhatItHas(t *testing.T) {
	dir := t.TempDir() + "/made/by/the/server"
	for round := range 3 {
		p := start(t, "--db", dir, "--port", "0", "--ttl-sweep-secs", "0")
		ctx := context.Background()
		c := p.connect(t).Database("test").Collection("c")
		if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: round}}); err != nil {
			t.Fatal(err)
		}
		if n, err := c.EstimatedDocumentCount(ctx); err != nil || n != int64(round+1) {
			t.Errorf("round %d: %d documents, %v", round, n, err)
		}

		second, ready := launch(t, "serve", "--db", dir, "--port", "0")
		if _, ok := <-ready; ok {
			t.Error("a second server on the same directory")
		}
		if err := <-second.done; err == nil || !strings.Contains(second.log.String(), "another process has the database open") {
			t.Errorf("%v: %s", err, second.log)
		}
		if code, out := tool("check", "--db", dir); code != 1 || !strings.Contains(out, "another process has the database open") {
			t.Errorf("check beside a server: %d %s", code, out)
		}

		if err := p.end(t, []os.Signal{syscall.SIGTERM, os.Interrupt}[round%2]); err != nil {
			t.Errorf("%v\n%s", err, p.log)
		}
		if !strings.Contains(p.log.String(), "msg=stopped") {
			t.Errorf("log: %s", p.log)
		}
		if code, out := tool("check", "--db", dir); code != 0 || !strings.HasSuffix(out, "sound\n") {
			t.Errorf("check: %d %s", code, out)
		}
	}
	code, out := tool("stat", "--db", dir)
	for _, want := range []string{"data file", "live bytes", "log files", "test.c", "3 documents", "_id_"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("stat: %d, no %q in %s", code, want, out)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, x := range []struct {
		args string
		code int
		want string
	}{
		{"--version", 0, "multiforadb "},
		{"--help", 0, "check [flags]"},
		{"nonsense", 1, "unexpected argument nonsense"},
		{"serve --port 70000", 1, "--port"},
		{"serve --log-level LOUD", 1, "--log-level"},
		{"serve --port 0 --bind 203.0.113.1", 1, "cannot listen"},
		{"serve --port 0 --debug-addr 0.0.0.0:0", 1, "not an address of this machine alone"},
		{"serve --port 0 --debug-addr :6060", 1, "not an address of this machine alone"},
		{"serve --port 0 --debug-addr 127.0.0.1", 1, "missing port"},
		{"check --db " + t.TempDir(), 1, "no database in"},
		{"stat --db /nonexistent", 1, "no database in"},
	} {
		if code, out := tool(strings.Fields(x.args)...); code != x.code || !strings.Contains(out, x.want) {
			t.Errorf("%s: %d %s", x.args, code, out)
		}
	}
}

func TestDebugAddressServesProfiles(t *testing.T) {
	p := start(t, "--db", t.TempDir(), "--port", "0", "--debug-addr", "127.0.0.1:0")
	defer p.end(t, syscall.SIGKILL)
	_, url, ok := strings.Cut(p.log.String(), "url=")
	if !ok {
		t.Fatalf("log: %s", p.log)
	}
	url, _, _ = strings.Cut(url, "\n")
	for path, want := range map[string]string{"": "goroutine", "heap?debug=1": "heap profile", "goroutine?debug=1": "serve"} {
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: no %q, %v", path, want, err)
		}
	}
}

func TestServeWarnsOfOpenAddresses(t *testing.T) {
	p := start(t, "--db", t.TempDir(), "--port", "0", "--bind", "0.0.0.0")
	var reply struct{ Log []string }
	err := p.connect(t).Database("admin").RunCommand(context.Background(), bson.D{{Key: "getLog", Value: "startupWarnings"}}).Decode(&reply)
	if err != nil || len(reply.Log) != 2 || !strings.Contains(reply.Log[1], "no authentication") {
		t.Errorf("%v, %v", reply, err)
	}
	if err := p.end(t, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.log.String(), "ANYBODY WHO CAN REACH") {
		t.Errorf("log: %s", p.log)
	}
}
