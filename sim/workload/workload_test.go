package workload

import "testing"

// The engine is green on a few seeds of every profile; that its faults are seen is what package mutants shows.
func TestRunIsGreenAndRepeatable(t *testing.T) {
	for _, profile := range Profiles {
		var total Result
		for seed := range uint64(6) {
			r := Run(seed, profile)
			if r.Err != nil {
				t.Fatalf("seed %d (%s): %v\nreplay: %s", seed, r.Config, r.Err, r.Replay())
			}
			if seed == 0 {
				if again := Run(seed, profile); again.Hash != r.Hash || again.Images != r.Images {
					t.Fatalf("seed %d: hashes %x and %x, %d and %d images", seed, r.Hash, again.Hash, r.Images, again.Images)
				}
			}
			total.Images, total.Operations, total.Faults = total.Images+r.Images, total.Operations+r.Operations, total.Faults+r.Faults
			total.Judged.Add(r.Judged)
		}
		t.Logf("%s: %d images, %d operations, %d faults, judged %+v", profile, total.Images, total.Operations, total.Faults, total.Judged)
		if total.Images == 0 || total.Operations == 0 || profile != Recoverable && total.Faults == 0 {
			t.Errorf("%s: nothing was put to the test", profile)
		}
	}
}

// Seeds that have found something: see spec/found.md.
func TestFoundBefore(t *testing.T) {
	for _, c := range []Case{{Seed: 1236, Profile: Errors}} {
		if r := RunCase(c, Watch{}); r.Err != nil {
			t.Errorf("seed %d (%s): %v\nreplay: %s", c.Seed, r.Config, r.Err, r.Replay())
		}
	}
}
