package server

import "github.com/multiforadb/multiforadb/engine/env"

// budget bounds the memory that all connections together spend on large messages, in bytes.
//
// A request takes all that it will need at once, before its first large buffer, and waits for it holding nothing: so
// waiting requests cannot block each other. A reply takes what there is and waits for nothing: a batch that finds none
// ends early, which every client understands.
type budget struct {
	mu     env.Mutex
	more   env.Cond
	total  int64
	free   int64
	closed bool
}

func (b *budget) init(e *env.Env, total int64) {
	b.mu.Init(e, env.RankNone, "budget")
	b.more.Init(e, &b.mu, "budget")
	b.total, b.free = total, total
}

// take waits until n bytes are free. A message larger than the whole budget waits until it is alone. It is false once the
// budget was closed.
func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < min(n, b.total) && !b.closed {
		b.more.Wait()
	}
	b.free -= n
	return !b.closed
}

// try takes n bytes if they are free.
func (b *budget) try(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free < n {
		return false
	}
	b.free -= n
	return true
}

// give gives n bytes back.
func (b *budget) give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.more.Broadcast()
}

// close ends all waits.
func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.more.Broadcast()
}
