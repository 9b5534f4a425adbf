package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// reseal makes a changed segment header's checksum right.
func reseal(b []byte) { binary.LittleEndian.PutUint32(b, page.Checksum(b[4:segmentHeaderSize])) }

// damage changes bytes of a file on a copy of the disk.
func damage(t testing.TB, d *simfs.FS, name string, off int64, n int, change func([]byte)) *simfs.FS {
	t.Helper()
	d = d.Kill()
	f, err := d.Open(dir+"/"+name, env.OpenExisting)
	must(t, err)
	b := make([]byte, n)
	_, err = f.ReadAt(b, off)
	must(t, err)
	change(b)
	_, err = f.WriteAt(b, off)
	must(t, err)
	must(t, f.Close())
	return d
}

// Where a byte of the log lies.
type spot struct {
	blk  *block // nil: in no block's header or payload
	head bool   // in a segment's header
}

// damagedLog is a log in several segments and two epochs, with checkpoints, whose last batch is not marked.
func damagedLog(t testing.TB) (*simfs.FS, *rig, opened) {
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, tiny, 2)
	for range 3 {
		must(t, r.append(rnd, 9000))
		must(t, r.sync())
	}
	must(t, r.checkpoint())
	must(t, r.log.Close())
	got, err := reopen(r.env, tiny, r.metas)
	must(t, err)
	r.log = got.log
	must(t, r.append(rnd, 5000))
	must(t, r.sync())
	must(t, r.checkpoint())
	for range 4 {
		must(t, r.append(rnd, 7000))
		must(t, r.sync())
	}
	must(t, r.log.Close())
	want, err := look(r.env, tiny, r.metas)
	must(t, err)
	must(t, r.check(want))
	if len(want.batches) != 4 {
		t.Fatalf("%d batches", len(want.batches))
	}
	return d, r, want
}

// One bit is flipped in every 128 bytes of the log. What was called durable is missed, and the place
// named; the last batch, which nothing called durable, ends the log; the rest does not matter.
func TestRotIsNamed(t *testing.T) {
	d, r, want := damagedLog(t)
	defer want.log.Close()
	rnd := rand.New(rand.NewPCG(1, 1))
	counts := map[string]int{}
	last := want.batches[len(want.batches)-2].end
	needed := want.log.plan.spans[0].seg.id
	for _, s := range want.log.found {
		for i := range s.bytes / 128 {
			off := i*128 + int64(rnd.IntN(128))
			bit := byte(1) << rnd.IntN(8)
			var in spot
			in.head = off < segmentHeaderSize
			for k := range s.blocks {
				b := &s.blocks[k]
				if at := s.offset(b.lsn); at <= off && off < at+blockHeaderSize+int64(b.stored) {
					in.blk = b
				}
			}
			sp := spanOf(want.log.plan, s)
			counted := in.blk != nil && sp.seg != nil && in.blk.lsn >= sp.lo && in.blk.lsn < sp.hi
			rotten := damage(t, d, s.name, off, 1, func(b []byte) { b[0] ^= bit })
			got, err := look(rotten.Env(1), tiny, r.metas)
			what := fmt.Sprintf("%s, byte %d, bit %#x", s.name, off, bit)
			switch {
			case in.head && s.id >= needed:
				counts["header"]++
				if !errors.Is(err, page.ErrCorrupt) || !strings.Contains(err.Error(), s.name+", offset 0") {
					t.Fatalf("%s, in a segment's header: %v", what, err)
				}
			case counted && in.blk.lsn >= want.chosen.lsn && in.blk.lsn < last:
				counts["durable"]++
				place := fmt.Sprintf("%s, offset %d, LSN %d", s.name, s.offset(in.blk.lsn), in.blk.lsn)
				if !errors.Is(err, page.ErrCorrupt) || !strings.Contains(err.Error(), place) {
					t.Fatalf("%s, in the durable block at %s: %v", what, place, err)
				}
			case counted && in.blk.lsn >= last:
				counts["last"]++
				if err != nil || got.end != last || len(got.batches) != len(want.batches)-1 {
					t.Fatalf("%s, in the last batch: the log ends at %d, not %d; %v", what, got.end, last, err)
				}
			default:
				counts["elsewhere"]++
				if err != nil {
					t.Fatalf("%s, where nothing is needed: %v", what, err)
				}
				must(t, same(want, got))
			}
			if err == nil {
				got.log.Close()
			}
		}
	}
	t.Logf("%v", counts)
	for _, k := range []string{"header", "durable", "last", "elsewhere"} {
		if counts[k] == 0 {
			t.Errorf("no bit flipped: %s", k)
		}
	}
}

func spanOf(p *plan, s *segment) span {
	for _, sp := range p.spans {
		if sp.seg == s {
			return sp
		}
	}
	return span{}
}

// The tail that a recovery accepted was shown to clients: from then on its damage is damage, and no torn write.
func TestRotOfAcceptedTailIsNamed(t *testing.T) {
	d, r, want := damagedLog(t)
	want.log.Close()
	got, err := reopen(d.Env(5), tiny, r.metas)
	must(t, err)
	s := got.log.live[len(got.log.live)-1]
	must(t, got.log.Close())
	if s.end() <= got.end || s.first >= got.end {
		t.Fatalf("the tail, which ends at %d, is not in %s, which begins at %d", got.end, s.name, s.first)
	}
	rotten := damage(t, d, s.name, unit+100, 1, func(b []byte) { b[0]++ })
	if _, err := look(rotten.Env(1), tiny, r.metas); !errors.Is(err, page.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	gone := damage(t, d, s.name, unit, unit, func(b []byte) { clear(b) })
	if _, err := look(gone.Env(1), tiny, r.metas); !errors.Is(err, page.ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

func TestLostSegmentIsMissed(t *testing.T) {
	d, r, want := damagedLog(t)
	defer want.log.Close()
	for i, sp := range want.log.plan.spans {
		if sp.hi > want.end || sp.lo >= want.end {
			continue // the last one: nothing tells that it was there
		}
		k := d.Kill()
		must(t, k.Remove(dir+"/"+sp.seg.name))
		if _, err := look(k.Env(1), tiny, r.metas); !errors.Is(err, page.ErrCorrupt) {
			t.Errorf("%s removed: %v", sp.seg.name, err)
		}
		if i > 0 {
			k, other := d.Kill(), want.log.plan.spans[i-1].seg
			must(t, k.Rename(dir+"/"+sp.seg.name, dir+"/tmp"))
			must(t, k.Rename(dir+"/"+other.name, dir+"/"+sp.seg.name))
			must(t, k.Rename(dir+"/tmp", dir+"/"+other.name))
			if _, err := look(k.Env(1), tiny, r.metas); !errors.Is(err, page.ErrCorrupt) {
				t.Errorf("%s and %s swapped: %v", sp.seg.name, other.name, err)
			}
		}
	}
	k := d.Kill()
	for _, s := range want.log.found {
		must(t, k.Remove(dir+"/"+s.name))
	}
	l, err := Open(k.Env(1), dir, tiny)
	must(t, err)
	if _, err := l.Recover(4096, 0); !errors.Is(err, page.ErrCorrupt) {
		t.Errorf("all segments removed: %v", err)
	}
}

// A block whose checksum is right counts only where it belongs.
func TestBlockOfAnotherPlaceIsRefused(t *testing.T) {
	o := Options{SegmentSize: 64 << 10, BlockSize: unit}
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, o, 1)
	must(t, r.append(rnd, 11000))
	must(t, r.sync())
	must(t, r.log.Mark(0))
	must(t, r.log.Close())
	le := binary.LittleEndian
	for _, c := range []struct {
		name   string
		change func([]byte)
		refuse bool
	}{
		{"nothing", func(b []byte) {}, false},
		{"another segment", func(b []byte) { b[8]++ }, true},
		{"another epoch", func(b []byte) { b[16]++ }, true},
		{"another LSN", func(b []byte) { le.PutUint64(b[24:], 3*unit) }, true},
		{"another batch", func(b []byte) { le.PutUint64(b[32:], 2*unit) }, true},
		{"more durable than possible", func(b []byte) { le.PutUint64(b[40:], 2*unit) }, true},
		{"after another block", func(b []byte) { b[56]++ }, true},
		{"stored, of another size", func(b []byte) { b[60]++ }, true},
		{"unknown flag", func(b []byte) { b[68] |= 4 }, true},
		{"larger than a block", func(b []byte) { le.PutUint32(b[64:], 1<<30) }, true},
	} {
		// The second block of the batch, at LSN 2 units.
		k := damage(t, d, "wal-1", 3*unit, unit, func(b []byte) {
			c.change(b)
			n := min(le.Uint32(b[64:]), unit-blockHeaderSize)
			le.PutUint32(b, page.Checksum(b[4:blockHeaderSize+n]))
		})
		got, err := look(k.Env(1), o, r.metas)
		// Named at its own place, and not only missed by the block after it.
		if c.refuse != (errors.Is(err, page.ErrCorrupt) && strings.Contains(err.Error(), "LSN 8192:")) || !c.refuse && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			got.log.Close()
		}
	}
}

// A write that the disk swallowed, or put elsewhere, is as bad as rot.
func TestLostWriteIsMissed(t *testing.T) {
	for _, f := range []simfs.Fault{{Lose: true}, {Misdirect: unit}, {Misdirect: 2 * unit}} {
		d := simfs.New(simfs.Options{})
		r, rnd := start(t, d, Options{SegmentSize: 64 << 10, BlockSize: unit}, 2)
		d.SetHooks(simfs.Hooks{Fault: simfs.FailNth(1, f, simfs.OpWrite)})
		must(t, r.append(rnd, 3000))
		must(t, r.sync())
		d.SetHooks(simfs.Hooks{})
		if f.Misdirect == 0 {
			must(t, r.append(rnd, 100)) // says that the lost one is durable
			must(t, r.sync())
		}
		must(t, r.log.Mark(0))
		_, err := look(d.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(1), r.o, r.metas)
		if !errors.Is(err, page.ErrCorrupt) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
