package engine

import (
	"context"
	"sync/atomic"
)

// Progress is how far a long call has come, for others to look at while it runs. The zero value says nothing.
type Progress struct {
	what        atomic.Pointer[string]
	done, total atomic.Int64
}

type progressKey struct{}

// WithProgress gives a context with which an index build tells p how far it is.
func WithProgress(ctx context.Context, p *Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// progressOf is the Progress to tell; never nil.
func progressOf(ctx context.Context) *Progress {
	if p, ok := ctx.Value(progressKey{}).(*Progress); ok {
		return p
	}
	return &Progress{}
}

func (p *Progress) begin(what string, total int64) {
	p.done.Store(0)
	p.total.Store(total)
	p.what.Store(&what)
}

func (p *Progress) add(n int64) { p.done.Add(n) }

// Clear makes p say nothing.
func (p *Progress) Clear() { p.what.Store(nil) }

// Get tells what is being done; it is "" if nothing is.
func (p *Progress) Get() (what string, done, total int64) {
	if s := p.what.Load(); s != nil {
		what = *s
	}
	return what, p.done.Load(), p.total.Load()
}
