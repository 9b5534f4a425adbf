package wal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// freeMax is how many released segments are kept to be used again; more are removed.
const freeMax = 2

// Prepare makes segments, as far as need be, until room bytes of log can be appended without making one. It is for the
// background, so that commits need not wait for it, and for writers that must know that a full disk will not stop them. A
// full disk is env.ErrNoSpace; neither that nor any other error harms the log unless Err says so.
func (l *Log) Prepare(room int64) error {
	if l.Err() == nil && l.Room() >= room {
		return nil
	}
	l.files.Lock()
	defer l.files.Unlock()
	for {
		if err := l.refusal(); err != nil {
			return err
		}
		if l.Room() >= room {
			return nil
		}
		if err := l.extend(); err != nil {
			return err
		}
	}
}

// Room is how many bytes of log can be appended without making a segment. See Bound.
func (l *Log) Room() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room()
}

func (l *Log) room() int64 {
	if len(l.live) == 0 {
		return 0
	}
	last := l.live[len(l.live)-1]
	if n := len(l.ahead); n > 0 {
		last = l.ahead[n-1]
	}
	return int64(last.end() - l.end)
}

// Bound is the most that a batch of raw bytes of records takes of the log. The bound of a sum is at most the sum of the
// bounds.
func Bound(raw int) int64 {
	const least = unit - blockHeaderSize // what a block holds at least, for each of its units, unless it is a batch's last
	return unit * (int64(raw+least-1)/least + 1)
}

// roomFor is the room that a batch of raw bytes of records and a few marks need.
func roomFor(raw int) int64 {
	const marks = 4
	return Bound(raw) + marks*unit
}

// Fits reports whether a batch of raw bytes of records, and a few marks, fit into the segments that are made. raw must count
// everything that was promised before and is not appended yet.
func (l *Log) Fits(raw int) bool { return l.Room() >= roomFor(raw) }

// PrepareFor is Prepare until raw bytes of records fit.
func (l *Log) PrepareFor(raw int) error { return l.Prepare(roomFor(raw)) }

// extend makes the next segment. files is held.
func (l *Log) extend() error {
	l.mu.Lock()
	last := l.live[len(l.live)-1]
	if n := len(l.ahead); n > 0 {
		last = l.ahead[n-1]
	}
	h := last.header
	h.id, h.first, h.size = last.id+1, last.end(), l.o.SegmentSize
	h.durable, h.proven = l.durable, l.claimed.proven
	var old *segment
	if n := len(l.free); n > 0 {
		old = l.free[n-1]
		l.free = l.free[:n-1]
	}
	l.mu.Unlock()

	s, err := l.make(old, h, nil)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.ahead = append(l.ahead, s)
	l.mu.Unlock()
	return nil
}

// make makes the segment that h describes, holding body behind its header: of old, which nothing needs any more and which is
// make's from now on, or from nothing if old is nil. It counts, durably, when make returns. files is held.
//
// An error before the first sync is harmless: until then there is only a file called wal-new. After it, what the directory or
// the file holds is unknown, so the log fails.
func (l *Log) make(old *segment, h header, body []byte) (*segment, error) {
	fresh := l.dir + "/" + nameNew
	s := &segment{header: h, name: segmentName(h.id), bytes: h.size, limit: h.end()}
	var err error
	if old != nil {
		// The old name must be gone before the header changes: a name and a header that differ are damage.
		if err = l.rename(l.dir+"/"+old.name, fresh); err == nil {
			s.file = old.file
			err = l.write(s, body, false)
		} else {
			old.file.Close()
		}
	} else if s.file, err = l.env.FS.Open(fresh, env.OpenCreate); err == nil {
		err = l.write(s, body, true)
	}
	if err != nil {
		if s.file != nil {
			s.file.Close()
			if l.Err() == nil {
				// The disk may be full: give back what was taken. If that does not work either, the next attempt writes over it.
				_ = l.env.FS.Remove(fresh)
			}
		}
		return nil, fmt.Errorf("wal: making %s: %w", s.name, err)
	}
	if err = s.file.Datasync(); err == nil {
		err = l.rename(fresh, l.dir+"/"+s.name)
	}
	if err != nil {
		s.file.Close()
		return nil, l.fail(fmt.Errorf("wal: making %s: %w", s.name, err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID = h.id
	if old != nil {
		probe.LogSegmentRecycled.Hit()
		l.stats.Recycled++
	} else {
		l.stats.Made++
	}
	return s, nil
}

// rename gives a file another name, durably.
func (l *Log) rename(from, to string) error {
	if err := l.env.FS.Rename(from, to); err != nil {
		return l.fail(err)
	}
	if err := l.env.FS.SyncDir(l.dir); err != nil {
		return l.fail(err)
	}
	return nil
}

// write writes a segment's header and body, and zeros behind them if the file is new. Zeros that are written, not just
// allocated, spare each later block a commit of the file system's journal.
func (l *Log) write(s *segment, body []byte, zero bool) error {
	if zero {
		if err := s.file.Truncate(s.header.size); err != nil {
			return err
		}
		if err := s.file.Allocate(0, s.header.size); err != nil {
			return err
		}
	}
	head := make([]byte, unit)
	s.header.encode(head)
	if _, err := s.file.WriteAt(head, 0); err != nil {
		return err
	}
	if len(body) > 0 {
		if _, err := s.file.WriteAt(body, unit); err != nil {
			return err
		}
	}
	if !zero {
		return nil
	}
	zeros := make([]byte, min(1<<20, s.header.size))
	for off := int64(unit + len(body)); off < s.header.size; off += int64(len(zeros)) {
		if _, err := s.file.WriteAt(zeros[:min(int64(len(zeros)), s.header.size-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// Release gives up the log below lsn: segments wholly below it are kept to be used again, or removed. What is released must
// not be needed by any meta page that a recovery may choose.
func (l *Log) Release(below LSN) error {
	l.files.Lock()
	defer l.files.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	l.mu.Lock()
	n := 0
	for n < len(l.live)-1 && l.live[n].limit <= below {
		n++
	}
	old := slices.Clone(l.live[:n])
	l.live = slices.Delete(l.live, 0, n)
	l.mu.Unlock()
	return l.discard(old)
}

// discard puts segments that nothing needs any more among the free ones, or removes them. files is held.
func (l *Log) discard(old []*segment) error {
	var errs []error
	for _, s := range old {
		l.mu.Lock()
		keep := s.bytes == l.o.SegmentSize && len(l.free) < freeMax
		if keep {
			s.blocks = nil
			l.free = append(l.free, s)
		}
		l.mu.Unlock()
		if !keep {
			probe.LogSegmentRemoved.Hit()
			errs = append(errs, s.file.Close(), l.env.FS.Remove(l.dir+"/"+s.name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("wal: removing old segments: %w", err)
	}
	return nil
}
