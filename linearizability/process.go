package linearizability

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
)

// process is a server in a process of its own.
type process struct {
	cmd     *exec.Cmd
	address string
	log     bytes.Buffer
	ready   chan struct{} // closed when address is set
	ended   chan struct{} // closed when the process has ended, as err says
	err     error
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// launch starts a server on dir; it is not ready before it says so.
func launch(program, dir string) (*process, error) {
	p := &process{cmd: exec.Command(program, "serve", "--db", dir, "--port", "0"), ready: make(chan struct{}), ended: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.watch(stderr)
	return p, nil
}

func (p *process) watch(stderr io.Reader) {
	for s := bufio.NewScanner(stderr); s.Scan(); {
		p.log.WriteString(s.Text() + "\n")
		if m := listening.FindStringSubmatch(s.Text()); m != nil && p.address == "" {
			p.address = m[1]
			close(p.ready)
		}
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// wait waits until the server listens.
func (p *process) wait() error {
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return fmt.Errorf("the server did not start: %v\n%s", p.err, &p.log)
	}
}

// end sends a signal and waits for the end.
func (p *process) end(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	<-p.ended
	return p.err
}
