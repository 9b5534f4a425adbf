package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// process is a server that was started here.
type process struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // read it only when ended is closed
	ended chan struct{}
	err   error

	address string
	started time.Time
	ready   time.Duration // from the start to the first answer
}

// own gives multiforadb's program, built from this module.
func (b *bench) own() (string, error) {
	if b.built != "" {
		return b.built, nil
	}
	dir, err := b.tempDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "multiforadb")
	cmd := exec.CommandContext(b.ctx, "go", "build", "-o", program, "github.com/multiforadb/multiforadb/cmd/multiforadb")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the server (--server names one that is there): %w\n%s", err, out)
	}
	b.built = program
	return program, nil
}

func (b *bench) tempDir() (_ string, err error) {
	if b.temp == "" {
		b.temp, err = os.MkdirTemp("", "bench-")
	}
	return b.temp, err
}

// freeAddress is one of this machine where nobody listens, for now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// launch starts a program that will serve at address: {port} in args is replaced.
func launch(address, program string, args ...string) (*process, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	p := &process{address: address, ended: make(chan struct{})}
	p.cmd = exec.Command(program)
	for _, a := range args {
		p.cmd.Args = append(p.cmd.Args, strings.ReplaceAll(a, "{port}", port))
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// An interrupt from the terminal is for the program that measures; it ends the server.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// wait returns when the server answers.
func (p *process) wait(ctx context.Context) error {
	for {
		if err := answers(ctx, p.address); err == nil {
			p.ready = time.Since(p.started)
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the server did not start: %v\n%s", p.err, &p.log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// answers asks ping over a connection of its own: a driver would look for its server at long intervals only.
func answers(ctx context.Context, address string) error {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	if _, err := nc.Write(pingMessage); err != nil {
		return err
	}
	_, err = nc.Read(make([]byte, 1))
	return err
}

// pingMessage is an OP_MSG with {ping: 1, $db: "admin"}.
var pingMessage = func() []byte {
	at, b := bsoncore.AppendDocumentStart(append(make([]byte, 12), "\xdd\x07\x00\x00\x00\x00\x00\x00\x00"...))
	b = bsoncore.AppendInt32Element(b, "ping", 1)
	b = bsoncore.AppendStringElement(b, "$db", "admin")
	b, _ = bsoncore.AppendDocumentEnd(b, at)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}()

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // that it has ended is as well
	<-p.ended
}
