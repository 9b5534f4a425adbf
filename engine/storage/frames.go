package storage

import (
	"sync/atomic"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// frame is heap memory that stands for pages of the data file until a checkpoint has made them durable there: one page of a
// tree or table, or the part of an extent that records are appended to.
type frame struct {
	first   page.ID
	buf     []byte // whole pages
	records bool   // part of an extent, and not a page with a header
}

// slack stands for a page at the end of an extent that no record will ever be put into. It says that the page is an extent's,
// and holds no memory.
var slack = &frame{records: true}

func (f *frame) page(id page.ID) []byte {
	off := int(id-f.first) * page.Size
	return f.buf[off : off+page.Size : off+page.Size]
}

// from gives the frame's bytes from a file offset on.
func (f *frame) from(off int64) []byte { return f.buf[off-int64(f.first)*page.Size:] }

// frames maps page ids to frames, for readers without a lock. A page id has at most one content that anyone can reach at any
// time, so one table serves all snapshots: a reader looks here first, then at the mapped file.
//
// A frame that a reader may hold is never used again: taking it out of the table leaves it to the collector. Only frames that
// no snapshot ever reached go back to the pool.
type frames struct {
	top   atomic.Pointer[[]*frameChunk]
	count atomic.Int64 // table entries: pages

	mu     env.Mutex // growth of top, the pool
	pool   [][]byte
	poison bool // simulation: reclaimed frames are overwritten, so that a stale pointer shows
}

const (
	frameChunkPages = 1024
	framePoolMax    = 1024
)

type frameChunk [frameChunkPages]atomic.Pointer[frame]

func (t *frames) init(e *env.Env) {
	t.mu.Init(e, env.RankFrames, "frames")
	t.poison = e.Sched != nil
	t.top.Store(new([]*frameChunk))
}

func (t *frames) get(id page.ID) *frame {
	top := *t.top.Load()
	if i := id / frameChunkPages; i < page.ID(len(top)) && top[i] != nil {
		return top[i][id%frameChunkPages].Load()
	}
	return nil
}

func (t *frames) slot(id page.ID) *atomic.Pointer[frame] {
	i := int(id / frameChunkPages)
	top := *t.top.Load()
	if i >= len(top) || top[i] == nil {
		t.mu.Lock()
		top = *t.top.Load()
		if i >= len(top) || top[i] == nil {
			grown := make([]*frameChunk, max(len(top), i+1))
			copy(grown, top)
			grown[i] = new(frameChunk)
			t.top.Store(&grown)
			top = grown
		}
		t.mu.Unlock()
	}
	return &top[i][id%frameChunkPages]
}

// put makes f stand for all its pages.
func (t *frames) put(f *frame) {
	for i := range len(f.buf) / page.Size {
		if old := t.slot(f.first + page.ID(i)).Swap(f); old == nil || old == slack {
			t.count.Add(1)
		}
	}
}

// closeOff makes the pages of r, the empty end of an extent, slack. No checkpoint would let go of them, since it writes what is
// filled, and a single one keeps the memory of the whole extent.
func (t *frames) closeOff(r page.Run) {
	for id := r.First; id < r.End(); id++ {
		if t.get(id) != nil && t.slot(id).Swap(slack) != slack {
			t.count.Add(-1)
		}
	}
}

// drop takes the pages of r out of the table.
func (t *frames) drop(r page.Run) {
	for id := r.First; id < r.End(); id++ {
		if t.get(id) == nil {
			continue
		}
		if old := t.slot(id).Swap(nil); old != nil && old != slack {
			t.count.Add(-1)
		}
	}
}

// newPage gives a zeroed page from the pool.
func (t *frames) newPage(id page.ID) *frame {
	var b []byte
	t.mu.Lock()
	if n := len(t.pool); n > 0 {
		b, t.pool = t.pool[n-1], t.pool[:n-1]
	}
	t.mu.Unlock()
	if b == nil {
		b = make([]byte, page.Size)
	} else {
		clear(b)
	}
	return &frame{first: id, buf: b}
}

// reclaim drops the page id, which nobody can reach, and takes its frame back into the pool.
func (t *frames) reclaim(id page.ID) {
	f := t.get(id)
	if f == nil {
		return
	}
	t.drop(page.Run{First: id, Count: 1})
	if t.poison {
		for i := range f.buf {
			f.buf[i] = 0xDD
		}
	}
	t.mu.Lock()
	if len(t.pool) < framePoolMax {
		t.pool = append(t.pool, f.buf)
	}
	t.mu.Unlock()
}

// buffers are the log buffers of writes that are done, for the next ones.
type buffers struct {
	mu   env.Mutex
	free [][]byte
}

const (
	buffersMax    = 8
	bufferSizeMax = 2 << 20
)

func (p *buffers) get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return nil
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	return b[:0]
}

func (p *buffers) put(b []byte) {
	if cap(b) == 0 || cap(b) > bufferSizeMax {
		return
	}
	p.mu.Lock()
	if len(p.free) < buffersMax {
		p.free = append(p.free, b)
	}
	p.mu.Unlock()
}
