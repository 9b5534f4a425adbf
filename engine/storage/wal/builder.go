package wal

import (
	"slices"

	"github.com/pierrec/lz4/v4"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// builder makes the blocks of one batch, for the places in the segments that they will have.
type builder struct {
	out     []byte
	records [][]byte // not yet in a block
	left    int      // bytes of them
	chunk   *[]byte
	lz4     **lz4.Compressor
	pace    *pace
	clock   env.Clock

	seg      header // where the next block goes; only what block headers need is right of those not made yet
	room     int    // left in seg
	capacity int    // of the segments after it
	rawMax   int    // of one block

	lsn      LSN // of the next block
	first    LSN // of the batch
	claim    claim
	previous uint32

	blocks, raw uint64
}

func (l *Log) builder(records [][]byte, proven uint64) *builder {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &builder{
		out:      l.out[:0],
		records:  slices.Clone(records),
		chunk:    &l.chunk,
		lz4:      &l.lz4,
		pace:     &l.pace,
		clock:    l.env.Clock,
		seg:      l.live[len(l.live)-1].header,
		capacity: int(l.o.SegmentSize - unit),
		rawMax:   l.o.BlockSize - blockHeaderSize,
		lsn:      l.end,
		first:    l.end,
		claim:    claim{durable: l.durable, proven: max(l.proven, proven)},
		previous: l.previous,
	}
	w.room = int(w.seg.end() - l.end)
	for _, r := range records {
		w.left += len(r)
	}
	w.raw = uint64(w.left)
	return w
}

// block appends the next block to out, and reports whether it was the last.
func (w *builder) block() bool {
	if w.room == 0 {
		// All segments of an epoch but its first have the standard size, and their numbers follow each other.
		w.seg.id, w.seg.first, w.seg.size = w.seg.id+1, w.lsn, int64(unit+w.capacity)
		w.room = w.capacity
	}
	at := len(w.out)
	raw := w.peek(w.rawMax)
	b := w.payload(raw)
	if b.size() > w.room {
		// Less of it, so that even stored it fits.
		w.out = w.out[:at]
		raw = raw[:min(len(raw), w.room-blockHeaderSize)]
		b = w.payload(raw)
	}
	w.advance(len(raw))
	b.lsn, b.first, b.durable, b.proven, b.previous = w.lsn, w.first, w.claim.durable, w.claim.proven, w.previous
	if w.left == 0 {
		b.flags |= flagLast
	}
	b.encode(w.out[at:], &w.seg)
	w.previous = b.crc
	w.lsn = b.end()
	w.room -= b.size()
	w.blocks++
	return w.left == 0
}

// payload appends room for a header, raw, compressed if that saves a unit, and padding.
func (w *builder) payload(raw []byte) block {
	at := len(w.out)
	full := padded(blockHeaderSize + len(raw))
	w.out = slices.Grow(w.out, full)[:at+full]
	b := block{raw: uint32(len(raw)), stored: uint32(len(raw))}
	d := w.out[at+blockHeaderSize:]
	// The compressor gives up as soon as it needs more than the space that it gets. An error means just that.
	if full > unit && w.pace.pays(int(w.raw)) {
		if *w.lz4 == nil {
			*w.lz4 = new(lz4.Compressor)
		}
		start := w.clock.Monotonic()
		if n, err := (*w.lz4).CompressBlock(raw, d[:full-unit-blockHeaderSize]); err == nil && n > 0 {
			probe.BlockCompressed.Hit()
			b.stored, b.flags = uint32(n), flagCompressed
		}
		w.pace.compressed(len(raw), int(b.stored), w.clock.Monotonic()-start)
	}
	if b.flags == 0 {
		copy(d, raw)
	}
	w.out = w.out[:at+b.size()]
	clear(w.out[at+blockHeaderSize+int(b.stored):])
	return b
}

// peek gives the next n bytes of records, or what is left. It copies them only if they are in several pieces.
func (w *builder) peek(n int) []byte {
	for len(w.records) > 0 && len(w.records[0]) == 0 {
		w.records = w.records[1:]
	}
	n = min(n, w.left)
	if n == 0 {
		return nil
	}
	if len(w.records[0]) >= n {
		return w.records[0][:n]
	}
	c := slices.Grow((*w.chunk)[:0], n)
	for _, r := range w.records {
		if c = append(c, r[:min(len(r), n-len(c))]...); len(c) == n {
			break
		}
	}
	*w.chunk = c
	return c
}

// advance passes n bytes of records.
func (w *builder) advance(n int) {
	w.left -= n
	for n > 0 {
		m := min(n, len(w.records[0]))
		w.records[0] = w.records[0][m:]
		if n -= m; len(w.records[0]) == 0 {
			w.records = w.records[1:]
		}
	}
}
