package wal

import (
	"errors"
	"fmt"

	"github.com/pierrec/lz4/v4"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Options of a log. The zero value is the default.
type Options struct {
	// SegmentSize is the size of a segment file in bytes: a multiple of 4096, at least 8192; 0 means 16 MiB.
	SegmentSize int64
	// BlockSize is the largest size of a block in the file, in bytes: a multiple of 4096, at most 1 MiB; 0 means 256 KiB.
	BlockSize int
}

func (o Options) withDefaults() Options {
	if o.SegmentSize == 0 {
		o.SegmentSize = 16 << 20
	}
	if o.BlockSize == 0 {
		o.BlockSize = 256 << 10
	}
	if o.SegmentSize < 2*unit || o.SegmentSize > segmentMax || o.SegmentSize%unit != 0 {
		panic(fmt.Sprintf("wal: segment size %d", o.SegmentSize))
	}
	if o.BlockSize < unit || o.BlockSize > blockSizeMax || o.BlockSize%unit != 0 {
		panic(fmt.Sprintf("wal: block size %d", o.BlockSize))
	}
	return o
}

// ErrClosed: the log was closed.
var ErrClosed = errors.New("wal: the log is closed")

// Log is the write-ahead log of one directory. It lives through Open, Recover, Accept, and then any number of the others.
type Log struct {
	env *env.Env
	dir string
	o   Options

	// What Open found, until Accept.
	found []*segment // by id
	bad   []badSegment
	plan  *plan

	// files: making, taking away and using again of segment files, one at a time. Held across file calls; taken before mu.
	files  env.Mutex
	lastID uint64 // highest number of any segment file so far

	// mu: the fields below, for moments only.
	mu      env.Mutex
	live    []*segment // retained, in order; the last takes the next block
	ahead   []*segment // made for what comes after, in order
	free    []*segment // released, of the standard size: to be used again
	end     LSN        // after the last block
	durable LSN        // all below is durable
	proven  uint64     // newest meta generation that the log calls durable, or is about to
	failed  error
	busy    bool // Append, Sync or Mark is running
	stats   Stats

	// Append's own.
	previous uint32     // crc of the last block of this epoch; 0 if there is none
	content  LSN        // after the last block that has a payload
	writing  claim      // what the newest written block or header says
	claimed  claim      // what the newest durable one says
	dirty    []*segment // written since the last sync
	out      []byte
	chunk    []byte
	pace     pace
	lz4      *lz4.Compressor // made when it is first needed: it is large
}

// claim is what blocks and headers say beside their own.
type claim struct {
	durable LSN
	proven  uint64
}

// Stats counts what the log did since Open.
type Stats struct {
	Batches  uint64 // marks not counted
	Marks    uint64
	Blocks   uint64
	Raw      uint64 // bytes of records
	Written  uint64 // bytes written for them: compressed, with headers and padding
	Syncs    uint64 // fdatasyncs of segments for batches and marks
	Made     uint64 // segments made anew
	Recycled uint64 // segments used again
}

// Open reads all segments in dir, which exists, and learns which blocks are valid. It changes nothing. The caller holds the
// lock of the database.
func Open(e *env.Env, dir string, o Options) (*Log, error) {
	l := &Log{env: e, dir: dir, o: o.withDefaults()}
	l.files.Init(e, env.RankLog, "log files")
	l.mu.Init(e, env.RankLeaf, "log")
	if err := l.open(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	names, err := l.env.FS.List(l.dir)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	var buf []byte
	for _, name := range names {
		id, ok := segmentID(name)
		if !ok {
			continue
		}
		l.lastID = max(l.lastID, id)
		s, err := openSegment(l.env, l.dir, id)
		if errors.Is(err, page.ErrCorrupt) {
			l.bad = append(l.bad, badSegment{id: id, err: err})
			continue
		}
		if err != nil {
			return err
		}
		l.found = append(l.found, s)
		if want := int(min(s.bytes, blockSizeMax)); len(buf) < want {
			buf = make([]byte, want)
		}
		if err := s.scan(buf); err != nil {
			return err
		}
		l.proven = max(l.proven, s.proven)
		for i := range s.blocks {
			l.proven = max(l.proven, s.blocks[i].proven)
		}
	}
	l.claimed.proven = l.proven
	sortByID(l.found, func(s *segment) uint64 { return s.id })
	sortByID(l.bad, func(b badSegment) uint64 { return b.id })
	return nil
}

// Proven is the newest generation of a meta page that a valid block or segment header calls durable, after Accept durably so.
// It is false if none does.
func (l *Log) Proven() (gen uint64, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claimed.proven, l.claimed.proven != 0
}

// Epoch counts the recoveries of this log, the present one included. It is durable once Accept has returned.
func (l *Log) Epoch() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.live) == 0 {
		return 0
	}
	return uint64(l.live[len(l.live)-1].epoch >> 32)
}

// End is the LSN after the last batch.
func (l *Log) End() LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Durable is the LSN below which everything is known to be durable.
func (l *Log) Durable() LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Err is the failure after which nothing is appended any more, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Size is the sum of the sizes of all segment files, those kept to be used again included.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(0)
	for _, list := range [][]*segment{l.found, l.live, l.ahead, l.free} {
		for _, s := range list {
			n += s.bytes
		}
	}
	return n
}

// Stats tells what the log did so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// fail makes err the log's failure, unless it has one, and gives err back.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	return err
}

// refusal is the error for a call after a failure, or nil.
func (l *Log) refusal() error {
	err := l.Err()
	if err == nil || err == ErrClosed {
		return err
	}
	return fmt.Errorf("wal: refused after an earlier failure: %w", err)
}

// Close closes the files and writes nothing. No other call may be running.
func (l *Log) Close() error {
	l.files.Lock()
	defer l.files.Unlock()
	l.mu.Lock()
	lists := [][]*segment{l.found, l.live, l.ahead, l.free}
	l.found, l.live, l.ahead, l.free = nil, nil, nil, nil
	if l.failed == nil {
		l.failed = ErrClosed
	}
	l.mu.Unlock()
	var first error
	for _, list := range lists {
		for _, s := range list {
			if err := s.file.Close(); err != nil && first == nil {
				first = fmt.Errorf("wal: %s: %w", s.name, err)
			}
		}
	}
	return first
}
