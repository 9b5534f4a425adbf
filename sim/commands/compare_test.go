package commands

import (
	"flag"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

var (
	compareSeed  = flag.Uint64("compare.seed", 1, "the first seed of TestConfigurationsAgree")
	compareSeeds = flag.Uint64("compare.seeds", 3, "how many seeds TestConfigurationsAgree runs")
)

// One client's operations give the same replies, and leave the same, whatever the sizes of the engine, and on simulated files and real ones.
func TestConfigurationsAgree(t *testing.T) {
	const operations = 120
	for seed := *compareSeed; seed < *compareSeed+*compareSeeds; seed++ {
		simulated, err := Agree(seed, operations)
		if err != nil {
			t.Fatalf("%v\nreplay: go test ./sim/commands -run TestConfigurationsAgree -compare.seed=%d -compare.seeds=1", err, seed)
		}
		for _, c := range []Configuration{Configurations()[0], Configurations()[2]} {
			real, err := Compare(env.Real(), t.TempDir(), c, seed, operations)
			if err == nil {
				err = differ(simulated, real)
			}
			if err != nil {
				t.Fatalf("seed %d, %s, on real files: %v", seed, c.Name, err)
			}
		}
	}
}
