package wal

import (
	"testing"
	"time"
)

// A disk that writes a byte in 2 ns and a compressor that takes 6 ns and saves half: it does not pay. On a disk ten times as slow it does.
func TestCompressionHasToPay(t *testing.T) {
	const large = 1 << 20
	p := &pace{}
	tried := func(blocks, size int) (n int) {
		for range blocks {
			if p.pays(size) {
				n++
				p.compressed(1000, 500, 6*time.Microsecond)
			}
		}
		return n
	}
	write := func(nanos int) {
		for range 100 {
			p.wrote(large, time.Duration(nanos)*large/2)
			p.synced(time.Duration(nanos) * large / 2)
		}
	}
	if n := tried(100, large); n != 100 {
		t.Errorf("nothing is known of the disk, and %d of 100 blocks were compressed", n)
	}
	write(2)
	if n := tried(10*paceTry, large); n != 10 {
		t.Errorf("a fast disk: %d blocks were compressed, of which 10 are to learn", n)
	}
	if n := tried(100, paceBatch-1); n != 100 {
		t.Errorf("of small batches %d of 100 blocks were compressed", n)
	}
	write(20)
	if n := tried(100, large); n != 100 {
		t.Errorf("a slow disk: %d of 100 blocks were compressed", n)
	}
	p.wrote(4096, time.Second)
	p.synced(time.Second)
	if p.write > 21 {
		t.Errorf("a small batch's latency was taken for the disk's rate: %g ns", p.write)
	}
}
