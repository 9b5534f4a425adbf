package wal

import (
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// outKept is the largest output buffer that is kept from one batch to the next.
const outKept = 4 << 20

// Append writes one batch: whole records, in pieces cut anywhere, and says in its blocks that the meta page of generation
// proven is durable (0: none newer than said before). The batch ends at end. It is not durable before Sync returns.
//
// If Err is nil after an error, nothing was written and the log goes on as if the call had not been made.
func (l *Log) Append(records [][]byte, proven uint64) (end LSN, err error) {
	l.enter()
	defer l.leave()
	return l.append(records, proven)
}

// Sync makes everything that was appended durable. An error is final.
func (l *Log) Sync() error {
	l.enter()
	defer l.leave()
	return l.sync()
}

// Mark writes an empty batch and makes it durable, so that the log says of the batches before it, and of the meta page of
// generation proven, that they are durable. It does nothing if it says so already.
func (l *Log) Mark(proven uint64) error {
	l.enter()
	defer l.leave()
	if err := l.refusal(); err != nil {
		return err
	}
	if len(l.dirty) > 0 {
		if err := l.sync(); err != nil {
			return err
		}
	}
	if l.claimed.durable >= l.content && l.claimed.proven >= proven {
		return nil
	}
	if _, err := l.append(nil, proven); err != nil {
		return err
	}
	return l.sync()
}

// enter asserts that Append, Sync and Mark have one caller at a time.
func (l *Log) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		panic("wal: two batches in flight")
	}
	if l.plan == nil || l.found != nil {
		panic("wal: append before Accept")
	}
	l.busy = true
}

func (l *Log) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
}

func (l *Log) append(records [][]byte, proven uint64) (LSN, error) {
	if err := l.refusal(); err != nil {
		return 0, err
	}
	w := l.builder(records, proven)
	for done := false; !done; {
		done = w.block()
	}
	if cap(w.out) <= outKept {
		l.out = w.out
	} else {
		l.out = nil
	}
	if err := l.Prepare(int64(len(w.out))); err != nil {
		return 0, err
	}
	start := l.env.Clock.Monotonic()
	if err := l.writeOut(w.out); err != nil {
		return 0, l.fail(err)
	}
	l.pace.wrote(len(w.out), l.env.Clock.Monotonic()-start)

	probe.BatchSpansBlocks.HitIf(w.blocks > 1)
	l.previous, l.writing = w.previous, w.claim
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = w.lsn
	l.plan.blocks = nil
	l.proven = max(l.proven, proven)
	l.stats.Blocks += w.blocks
	l.stats.Raw += w.raw
	l.stats.Written += uint64(len(w.out))
	if w.raw > 0 {
		l.content = l.end
		l.stats.Batches++
	} else {
		probe.MarkWritten.Hit()
		l.stats.Marks++
	}
	return l.end, nil
}

// writeOut writes whole blocks, which fill the segments from the end of the log on.
func (l *Log) writeOut(out []byte) error {
	for lsn := l.end; len(out) > 0; {
		l.mu.Lock()
		s := l.live[len(l.live)-1]
		if lsn == s.end() {
			s = l.ahead[0]
			l.ahead = slices.Delete(l.ahead, 0, 1)
			probe.BatchSpansSegments.HitIf(lsn > l.end)
			l.live = append(l.live, s)
		}
		l.mu.Unlock()
		n := min(len(out), int(s.end()-lsn))
		if !slices.Contains(l.dirty, s) {
			l.dirty = append(l.dirty, s)
		}
		if _, err := s.file.WriteAt(out[:n], s.offset(lsn)); err != nil {
			return fmt.Errorf("wal: %s, offset %d, LSN %d: %w", s.name, s.offset(lsn), lsn, err)
		}
		out, lsn = out[n:], lsn+LSN(n)
	}
	return nil
}

func (l *Log) sync() error {
	if err := l.refusal(); err != nil {
		return err
	}
	start := l.env.Clock.Monotonic()
	for _, s := range l.dirty {
		if err := s.file.Datasync(); err != nil {
			return l.fail(fmt.Errorf("wal: %s: %w", s.name, err))
		}
	}
	l.pace.synced(l.env.Clock.Monotonic() - start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs += uint64(len(l.dirty))
	l.dirty = l.dirty[:0]
	l.durable = l.end
	l.claimed = l.writing
	return nil
}
