package storage_test

import (
	"testing"

	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/sim/workload"
)

// The programs are package workload's: clients that count, readers, lookers and power cuts, under the scheduler.

func runs(t *testing.T, profile workload.Profile, n int) {
	images, operations, faults, judged := 0, 0, 0, judge.Counts{}
	for seed := first(); seed < first()+count(n); seed++ {
		r := workload.Run(seed, profile)
		if r.Err != nil {
			t.Fatalf("seed %d (%s): %v\nreplay: go test ./engine/storage -run '^%s$' -storage.seed %d\nor: %s",
				seed, r.Config, r.Err, t.Name(), seed, r.Replay())
		}
		images, operations, faults = images+r.Images, operations+r.Operations, faults+r.Faults
		judged.Add(r.Judged)
	}
	t.Logf("%d crash images, %d operations, %d faults, judged %+v", images, operations, faults, judged)
}

func TestScheduledClients(t *testing.T) { runs(t, workload.Recoverable, 40) }

// TestFailedSyncIsFinal lets a call of the disk fail while clients count, most often a sync: nothing that was acknowledged
// is lost, nothing after the failure is acknowledged, and readers go on.
func TestFailedSyncIsFinal(t *testing.T) { runs(t, workload.Errors, 40) }

// TestScheduleIsRepeatable: the same seed gives the same trace.
func TestScheduleIsRepeatable(t *testing.T) {
	for seed := range uint64(3) {
		a, b := workload.Run(seed, workload.Recoverable), workload.Run(seed, workload.Recoverable)
		if a.Err != nil || b.Err != nil {
			t.Fatal(a.Err, b.Err)
		}
		if a.Hash != b.Hash {
			t.Fatalf("seed %d: traces %x and %x", seed, a.Hash, b.Hash)
		}
	}
}
