package main

import (
	"testing"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/sim/workload"
)

// seedsEnough is within how many of the seeds that run begins with every probe must have been hit.
const seedsEnough = 200

// rare are cases among them that reach what most do not: they go first, so that the test need not go through all.
var rare = []workload.Case{{Seed: 120, Profile: workload.Errors}, {Seed: 182, Profile: workload.Errors}}

// The seeds of a plain "sim run" reach every rare place of the engine that has a probe, and all of them are green. The test ends as
// soon as nothing is missing.
func TestSeedsReachEveryProbe(t *testing.T) {
	probe.Count()
	cases := rare
	for seed := uint64(1); seed <= seedsEnough; seed++ {
		for _, profile := range workload.Profiles {
			cases = append(cases, workload.Case{Seed: seed, Profile: profile})
		}
	}
	for i, c := range cases {
		if i >= len(rare) && len(missed()) == 0 {
			t.Logf("%d runs", i)
			return
		}
		if r := play(c, workload.Watch{}); r.Err != nil {
			t.Fatalf("seed %d (%s): %v\nreplay: %s", c.Seed, r.Config, r.Err, r.Replay())
		}
	}
	for _, p := range probe.All() {
		if p.Hits == 0 {
			t.Errorf("probe %q was not hit: %s", p.Name, p.What)
		}
	}
}
