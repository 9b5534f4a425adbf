package main

import (
	"io"
	"strings"
	"sync"
)

// logTailMax is how many lines getLog can show.
const logTailMax = 1024

// logTail writes the log through, and keeps its newest lines. slog writes one line a call.
type logTail struct {
	out io.Writer

	mu    sync.Mutex
	lines []string // a ring
	next  int
}

func (t *logTail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSuffix(string(line), "\n")
	if len(t.lines) < logTailMax {
		t.lines = append(t.lines, s)
	} else {
		t.lines[t.next] = s
		t.next = (t.next + 1) % logTailMax
	}
	return t.out.Write(line)
}

// Lines are the newest lines, oldest first.
func (t *logTail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(append([]string(nil), t.lines[t.next:]...), t.lines[:t.next]...)
}
