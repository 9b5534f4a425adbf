package commands

import (
	"testing"

	"github.com/multiforadb/multiforadb/sim/workload"
)

// The engine is green on a few seeds of every profile, and the same seed is the same run.
func TestRunIsGreenAndRepeatable(t *testing.T) {
	for _, profile := range workload.Profiles {
		var total workload.Result
		for seed := range uint64(6) {
			c := workload.Case{Seed: seed, Profile: profile, Program: Commands}
			r := Play(c, workload.Watch{})
			if r.Err != nil {
				t.Fatalf("seed %d (%s): %v\nreplay: %s", seed, r.Config, r.Err, r.Replay())
			}
			if seed == 0 {
				if again := Play(c, workload.Watch{}); again.Hash != r.Hash || again.Images != r.Images {
					t.Fatalf("seed %d: hashes %x and %x, %d and %d images", seed, r.Hash, again.Hash, r.Images, again.Images)
				}
			}
			total.Images, total.Operations, total.Faults = total.Images+r.Images, total.Operations+r.Operations, total.Faults+r.Faults
			total.Judged.Add(r.Judged)
		}
		t.Logf("%s: %d images, %d operations, %d faults, judged %+v", profile, total.Images, total.Operations, total.Faults, total.Judged)
		if total.Images == 0 || total.Operations == 0 || profile != workload.Recoverable && total.Faults == 0 {
			t.Errorf("%s: nothing was put to the test", profile)
		}
	}
}
