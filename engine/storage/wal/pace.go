package wal

import "time"

// pace says whether compression is worth its time. The log is as fast as compressing and writing one after the other, so of a large
// batch it pays to compress if what it saves would take longer to write: on most disks it does not. A small batch waits for the
// disk's latency, which no size changes, and is compressed so that the log lasts.
//
// All three figures are running means of what was measured; as long as they are not known everything is compressed.
type pace struct {
	write    float64 // time for a byte of a large batch to be written and durable, in nanoseconds
	compress float64 // time to compress a byte of records
	saved    float64 // part of a byte of records that compression saves

	skipped int // blocks since the last that was compressed

	// Of the batches not synced yet.
	bytes int
	took  time.Duration
}

const (
	// paceBatch is a batch, in bytes as written, that takes longer for its size than for being one.
	paceBatch = 256 << 10
	// paceTry is one in so many blocks that is compressed whatever the figures say, to keep them true.
	paceTry = 64
)

// pays decides for the next block, of a batch of size bytes of records.
func (p *pace) pays(size int) bool {
	if size < paceBatch || p.write == 0 || p.compress == 0 || p.skipped+1 >= paceTry || p.saved*p.write >= p.compress {
		p.skipped = 0
		return true
	}
	p.skipped++
	return false
}

// compressed learns from a block: raw bytes became stored.
func (p *pace) compressed(raw, stored int, took time.Duration) {
	p.compress = mean(p.compress, float64(took)/float64(raw))
	p.saved = mean(p.saved, 1-float64(stored)/float64(raw))
}

// wrote learns that n bytes were handed to the system.
func (p *pace) wrote(n int, took time.Duration) {
	p.bytes += n
	p.took += took
}

// synced learns that what was written is durable.
func (p *pace) synced(took time.Duration) {
	if p.bytes >= paceBatch {
		p.write = mean(p.write, float64(p.took+took)/float64(p.bytes))
	}
	p.bytes, p.took = 0, 0
}

// mean is the running mean of the last eight values or so.
func mean(old, value float64) float64 {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}
