package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// progress is a bar on a terminal; elsewhere it is silent. All methods may be called concurrently.
type progress struct {
	w     io.Writer // nil: silent
	what  string
	total int64
	start time.Time
	done  atomic.Int64
	drawn atomic.Int64 // when, in nanoseconds since start
}

// progress starts a bar of total steps.
func (b *bench) progress(what string, total int64) *progress {
	p := &progress{what: what, total: total, start: time.Now()}
	if f, ok := b.stderr.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.w = f
		}
	}
	p.add(0)
	return p
}

// add counts n more steps.
func (p *progress) add(n int64) {
	done := p.done.Add(n)
	if p.w == nil {
		return
	}
	now, last := int64(time.Since(p.start)), p.drawn.Load()
	if now-last < int64(100*time.Millisecond) && done != n || !p.drawn.CompareAndSwap(last, now) {
		return
	}
	const width = 40
	full := int(width * min(done, p.total) / max(p.total, 1))
	left := ""
	if done > 0 && done < p.total {
		left = (time.Duration(float64(now) * float64(p.total-done) / float64(done))).Round(time.Second).String() + " left"
	}
	fmt.Fprintf(p.w, "\r\x1b[K%-28s [%s%s] %3d%% %s", p.what, strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*full/width, left)
}

// end takes the bar away.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
