package wal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// Accept makes what Recover decided final: it begins a new epoch, whose first segment holds a copy of the accepted blocks that
// were not known durable. Only then may anything of the log be shown, and blocks be appended. It may be interrupted anywhere,
// any number of times, and does not change what the next recovery decides. After an error the log must be closed.
func (l *Log) Accept() error {
	l.files.Lock()
	defer l.files.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	p := l.plan
	if p == nil {
		panic("wal: Accept before Recover")
	}
	if err := l.accept(p); err != nil {
		return l.fail(err)
	}
	return nil
}

func (l *Log) accept(p *plan) error {
	// A name that a killed process gave may be seen and not be durable. It must be before another epoch builds on it.
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	h := header{
		id:      l.lastID + 1,
		epoch:   1<<32 | epoch(uint32(l.env.Rand.Uint64())),
		first:   p.durable,
		begin:   p.durable,
		durable: p.end,
		proven:  l.proven,
	}
	if p.top != nil {
		h.epoch += p.top.epoch &^ (1<<32 - 1)
	}
	for _, sp := range p.spans {
		// Not simply the newest: one that began at this very cut holds nothing that counts any more, and will be taken away.
		if sp.lo < h.first {
			h.previous = sp.seg.epoch
		}
	}
	// From here on blocks are those of the new epoch; l.previous links them.
	tail, body, err := l.copyTail(p, &h)
	if err != nil {
		return err
	}
	probe.LogTailCopied.HitIf(len(tail) > 0)
	s, err := l.makeFirst(p, h, body)
	if err != nil {
		return err
	}

	l.mu.Lock()
	l.live = nil
	for _, sp := range p.spans {
		if sp.lo < h.first {
			sp.seg.limit = min(sp.hi, h.first)
			l.live = append(l.live, sp.seg)
		}
	}
	old := slices.DeleteFunc(l.found, func(o *segment) bool { return slices.Contains(l.live, o) })
	l.live = append(l.live, s)
	for _, o := range l.live {
		o.blocks = nil
	}
	l.found = nil
	l.end, l.durable = p.end, p.end
	l.content = p.end
	l.claimed = claim{durable: p.end, proven: l.proven}
	l.writing = l.claimed
	l.mu.Unlock()

	// The tail is read from its copy from now on.
	for i, b := range tail {
		p.blocks[len(p.blocks)-len(tail)+i] = found{block: b, seg: s}
	}
	if err := l.discard(old); err != nil {
		return err
	}
	for _, b := range l.bad {
		if err := l.env.FS.Remove(l.dir + "/" + segmentName(b.id)); err != nil {
			return fmt.Errorf("wal: removing old segments: %w", err)
		}
	}
	l.bad = nil
	return nil
}

// copyTail builds the accepted blocks from D on as blocks of the segment that h describes.
func (l *Log) copyTail(p *plan, h *header) (tail []block, body []byte, err error) {
	h.size = unit + int64(p.end-p.durable) // the blocks' headers need no more of it
	var buf []byte
	for _, b := range p.blocks {
		if b.lsn < p.durable {
			continue
		}
		d, err := b.seg.read(&b.block, &buf)
		if err != nil {
			return nil, nil, err
		}
		at := len(body)
		body = append(body, d...)
		body = append(body, make([]byte, b.size()-len(d))...)
		c := b.block
		c.previous = l.previous
		c.encode(body[at:], h)
		l.previous = c.crc
		tail = append(tail, c)
	}
	return tail, body, nil
}

// makeFirst makes the first segment of an epoch. It should not cost a start of the program much, so a new file is made small.
// If the disk is full, a start must still be possible.
func (l *Log) makeFirst(p *plan, h header, body []byte) (*segment, error) {
	need := unit + int64(len(body))
	if old := l.takeDead(p, need+unit); old != nil {
		h.size = old.bytes
		return l.make(old, h, body)
	}
	h.size = need + max(l.o.SegmentSize/4&^(unit-1), unit)
	s, err := l.make(nil, h, body)
	if !errors.Is(err, env.ErrNoSpace) || l.Err() != nil {
		return s, err
	}
	if err := trim(p.spans); err != nil {
		return nil, err
	}
	h.size = need + min(16*unit, l.o.SegmentSize/4&^(unit-1)+unit)
	return l.make(nil, h, body)
}

// takeDead takes a segment of the standard size, if that is at least size, which nothing needs even if this recovery is
// interrupted: one before all that is retained. (Not one beyond a cut: it may still be what says that a batch is durable.)
func (l *Log) takeDead(p *plan, size int64) *segment {
	if len(p.spans) == 0 || l.o.SegmentSize < size {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.found {
		if s.id < p.spans[0].seg.id && s.bytes == l.o.SegmentSize {
			l.found = slices.Delete(l.found, i, i+1)
			return s
		}
	}
	return nil
}

// trim gives back what segments have behind their last valid block: they will not be written again.
func trim(spans []span) error {
	for _, sp := range spans {
		end := int64(unit)
		if n := len(sp.seg.blocks); n > 0 {
			end = sp.seg.offset(sp.seg.blocks[n-1].end())
		}
		if sp.seg.bytes <= end {
			continue
		}
		err := sp.seg.file.Truncate(end)
		if err == nil {
			err = sp.seg.file.Datasync()
		}
		if err != nil {
			return fmt.Errorf("wal: %s: %w", sp.seg.name, err)
		}
		sp.seg.bytes = end
	}
	return nil
}
