package workload

import (
	"testing"

	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

func TestEditedRuns(t *testing.T) {
	for seed := range uint64(4) {
		c := Case{Seed: seed, Profile: Recoverable}
		var last Cut
		whole := RunCase(c, Watch{Cut: func(_ int, _ string, _ *simfs.FS, cut Cut, _ error) {
			if cut.At > 0 {
				last = cut
			}
		}})
		run := func(e Edit) Result {
			t.Helper()
			c.Edit = e
			r := RunCase(c, Watch{})
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			return r
		}
		if r := run(Edit{Switches: whole.Switches, Cut: &last}); r.Hash != whole.Hash || r.Images == 0 || r.Images > 3 {
			t.Errorf("seed %d: hash %x, then %x with its schedule given, and %d images where one was asked for", seed, whole.Hash, r.Hash, r.Images)
		}
		if r := run(Edit{Switches: []sim.Switch{}}); len(r.Switches) > 0 {
			t.Errorf("seed %d: %d switches without any", seed, len(r.Switches))
		}
		for _, op := range run(Edit{Kept: map[string][]int{"client 0": {1, 3}}}).Ops {
			if op.Client != "client 0" || op.Index != 1 && op.Index != 3 {
				t.Errorf("seed %d: %+v was not dropped", seed, op)
			}
		}
	}
}
