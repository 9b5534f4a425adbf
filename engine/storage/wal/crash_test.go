package wal

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

var seeds = flag.Uint64("seeds", 6, "how many random lives the crash tests live")

// judge looks at one crash image: it recovers, agrees with the model, recovers the same again after crashes inside of the
// recovery, and goes on living. depth is how many recoveries, one inside of the other, are crashed too.
func (r *rig) judge(image *simfs.FS, seed uint64, depth int) error {
	e := image.Env(seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	first, err := look(e, r.o, r.metas)
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	if err := r.check(first); err != nil {
		return err
	}

	// Crashes inside of Accept. They may keep less than this recovery saw if only the process died before it, and never
	// less than what was acknowledged.
	var nested error
	if depth > 0 {
		image.SetHooks(simfs.Hooks{Watch: func(ev simfs.Event) {
			if nested != nil || ev.When == simfs.Before || rnd.IntN(8) != 0 {
				return
			}
			for _, c := range image.Choices(rnd.Uint64(), 2) {
				if err := r.judge(image.Crash(c), rnd.Uint64(), depth-1); err != nil {
					nested = fmt.Errorf("crash in Accept, %v %v, %v: %w", ev.When, ev.Call, c, err)
					return
				}
			}
		}})
	}
	err = first.log.Accept()
	image.SetHooks(simfs.Hooks{})
	if nested != nil {
		return nested
	}
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	// From here on it was shown: it is the same after any crash.
	cs := image.Choices(seed, 4)
	again, err := reopen(image.Crash(cs[rnd.IntN(len(cs))]).Env(seed), r.o, r.metas)
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	again.log.Close()
	if err := same(first, again); err != nil {
		return err
	}
	if rnd.IntN(6) > 0 {
		return first.log.Close()
	}
	if err := (&rig{env: e, o: r.o, metas: r.metas, serial: r.serial}).life(image, first, seed); err != nil {
		return fmt.Errorf("life after recovery: %w", err)
	}
	return nil
}

// A power cut, or a kill, at every step of every call that changes something, over many random lives.
func TestLogSurvivesCrashAnywhere(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			d := simfs.New(simfs.Options{SectorSize: []int{512, 4096}[seed%2]})
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := &rig{env: d.Env(seed), o: tiny}
			step, images := uint64(0), 0
			watch := func(ev simfs.Event) {
				if step++; ev.When == simfs.Before {
					return // as after the call before
				}
				for i, c := range append(d.Choices(seed<<20+step, 4), simfs.Choice{Gen: simfs.Killed}) {
					depth := 0
					if images++; images%50 == 0 {
						depth = 1 + images/50%3
					}
					if err := r.judge(d.Crash(c), step<<8+uint64(i), depth); err != nil {
						t.Fatalf("%v %v\n%v: %v\n%s", ev.When, ev.Call, c, err, d.Describe(c))
					}
				}
			}
			must(t, d.Mkdir(dir))
			d.SetHooks(simfs.Hooks{Watch: watch})
			got, err := reopen(r.env, tiny, r.metas)
			must(t, err)
			r.log = got.log
			for range 25 {
				must(t, r.step(rnd))
				if rnd.IntN(6) == 0 {
					d.WriteBack(step, 0.3)
				}
				if rnd.IntN(8) == 0 {
					must(t, r.log.Close())
					got, err := reopen(r.env, tiny, r.metas)
					must(t, err)
					must(t, r.check(got))
					r.log = got.log
				}
			}
			t.Logf("%d images at %d steps", images, step)
		})
	}
}

// Every way in which a small batch can be torn: exhaustive over the sectors of three blocks.
func TestTornBatchCountsWholeOrNot(t *testing.T) {
	d := simfs.New(simfs.Options{SectorSize: 4096})
	r, rnd := start(t, d, Options{SegmentSize: 64 << 10, BlockSize: unit}, 2)
	must(t, r.append(rnd, 11000))
	all, ok := d.Exhaustive(4096)
	if !ok {
		t.Fatal("too many choices")
	}
	whole := 0
	for _, c := range all {
		got, err := look(d.Crash(c).Env(1), r.o, r.metas)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if err := r.check(got); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if len(got.batches) == 3 {
			whole++
		}
		got.log.Close()
	}
	if len(all) < 8 || whole == 0 || whole == len(all) {
		t.Errorf("%d choices, whole in %d", len(all), whole)
	}
}

// The last block of a batch arrives, the first does not; and then a batch of the next epoch takes its place. The old block
// is valid still, and must not be taken for a part of the new batch.
func TestRemainsOfLostBatchStayDead(t *testing.T) {
	o := Options{SegmentSize: 64 << 10, BlockSize: unit}
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, o, 1)
	lost := r.log.End()
	must(t, r.append(rnd, 11000))
	f, err := d.Open(dir+"/wal-1", env.OpenExisting)
	must(t, err)
	_, err = f.WriteAt(make([]byte, unit), int64(lost)+unit)
	must(t, err)
	r.submitted = r.submitted[:1]

	// The torn batch's later blocks lie beyond the cut.
	got, err := reopen(d.Env(2), o, r.metas)
	must(t, err)
	must(t, r.check(got))
	if got.end != lost {
		t.Fatalf("the log ends at %d, want %d", got.end, lost)
	}
	r.log = got.log
	r.serial += 100
	must(t, r.append(rnd, 10))
	must(t, r.sync())
	must(t, r.log.Close())
	got, err = reopen(d.Env(3), o, r.metas)
	must(t, err)
	must(t, r.check(got))
	if len(got.batches) != 2 || got.end != lost+unit {
		t.Errorf("%d batches up to %d", len(got.batches), got.end)
	}
	must(t, got.log.Close())
}

// A process dies between the rename that ends Accept and the sync of the directory. The next one must not build on that name
// before it is durable; and it shares no epoch with the first.
func TestAcceptMakesNamesDurableFirst(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, _ := start(t, d, tiny, 2)
	must(t, r.log.Close())
	var image *simfs.FS
	d.SetHooks(simfs.Hooks{Watch: func(ev simfs.Event) {
		if ev.Op == simfs.OpRename && ev.When == simfs.After {
			image = d.Kill()
		}
	}})
	first, err := reopen(d.Env(2), tiny, r.metas)
	must(t, err)
	if len(image.Pending()) == 0 {
		t.Fatal("the name is durable")
	}
	pending := -1
	image.SetHooks(simfs.Hooks{Watch: func(ev simfs.Event) {
		if ev.Op.Mutates() && ev.Op != simfs.OpSyncDir && pending < 0 {
			pending = len(image.Pending())
		}
	}})
	second, err := reopen(image.Env(3), tiny, r.metas)
	must(t, err)
	if pending != 0 {
		t.Errorf("%d operations pending when Accept begins to write", pending)
	}
	third, err := reopen(d.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(4), tiny, r.metas)
	must(t, err)
	must(t, same(first, second))
	must(t, same(first, third))
	a, b, c := epochOf(first), epochOf(second), epochOf(third)
	if a>>32+1 != b>>32 || b>>32 != c>>32 || b == c {
		t.Errorf("epochs %x, then %x, or %x", a, b, c)
	}
}

func epochOf(o opened) epoch { return o.log.live[len(o.log.live)-1].epoch }

// Segments are used again with all their old blocks in them. None may pass for a new one.
func TestStaleBlocksOfUsedSegmentsAreIgnored(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, tiny, 0)
	for range 60 {
		must(t, r.append(rnd, 3000))
		must(t, r.sync())
		must(t, r.checkpoint())
		must(t, r.log.Prepare(2*tiny.SegmentSize))
	}
	if r.log.Stats().Recycled < 10 {
		t.Fatalf("%+v", r.log.Stats())
	}
	must(t, r.log.Close())
	got, err := reopen(d.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(2), tiny, r.metas)
	must(t, err)
	must(t, r.check(got))
	if got.end != r.log.End() {
		t.Errorf("the log ended at %d and now at %d", r.log.End(), got.end)
	}
}

// A log that is opened again and again, killed each time before or in Accept, keeps what it had.
func TestRecoveryMayBeInterruptedForEver(t *testing.T) {
	for seed := range uint64(20) {
		d := simfs.New(simfs.Options{})
		r, rnd := start(t, d, tiny, 3)
		must(t, r.append(rnd, 20000)) // not synced
		d = d.Kill()
		var last opened
		for round := range 30 {
			got, err := look(d.Env(seed*100+uint64(round)), tiny, r.metas)
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			must(t, r.check(got))
			if last.log != nil {
				// Shown to clients in the last round: it may not change any more.
				must(t, same(last, got))
			}
			// Accept is crashed at a random one of its steps, or not at all.
			at, n := rnd.IntN(40), 0
			var image *simfs.FS
			d.SetHooks(simfs.Hooks{Watch: func(simfs.Event) {
				if n++; n == at {
					cs := append(d.Choices(seed+uint64(round), 6), simfs.Choice{Gen: simfs.Killed})
					image = d.Crash(cs[rnd.IntN(len(cs))])
				}
			}})
			must(t, got.log.Accept())
			d.SetHooks(simfs.Hooks{})
			must(t, got.log.Close())
			if image == nil {
				last = got
				image = d.Crash(simfs.Choice{Gen: simfs.Random, Seed: seed, P: 0.5})
			}
			d = image
		}
	}
}
