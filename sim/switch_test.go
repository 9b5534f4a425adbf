package sim

import (
	"sync/atomic"
	"testing"
)

// The switches of a run are its schedule, whatever the policy was; and any part of them is a schedule.
func TestSwitchesReplay(t *testing.T) {
	for seed := range uint64(40) {
		opt := Options{Seed: seed, Policy: PolicyOf(seed)}
		r := Run(opt, busy)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		opt.Switches = r.Switches
		var steps atomic.Int64 // told by one task after the other, which the race detector is not to know
		opt.Trace = func(Step) { steps.Add(1) }
		again := Run(opt, busy)
		if again.Err != nil || again.Hash != r.Hash || int(steps.Load()) != r.Steps {
			t.Fatalf("seed %d: hash %x of %d steps, then %x of %d (%v)", seed, r.Hash, r.Steps, again.Hash, steps.Load(), again.Err)
		}
		opt.Switches = r.Switches[:len(r.Switches)/2]
		if half := Run(opt, busy); half.Err != nil || len(half.Switches) > len(opt.Switches) {
			t.Fatalf("seed %d: %d of %d switches were followed (%v)", seed, len(half.Switches), len(opt.Switches), half.Err)
		}
		opt.Switches = []Switch{}
		if plain := Run(opt, busy); plain.Err != nil || len(plain.Switches) > 0 {
			t.Fatalf("seed %d: %d switches that nobody asked for (%v)", seed, len(plain.Switches), plain.Err)
		}
	}
}
