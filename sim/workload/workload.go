// Package workload has the programs that the simulator runs against the storage engine, and judges what becomes of them.
//
// One seed is one run: the sizes of everything, the mix of clients, the policy of the scheduler, where the power fails and
// which call of the disk goes wrong all follow from it, so that [Run] of the same seed and profile gives the same hash of
// the trace, always.
//
// The program is a set of clients that count (see program.go), in a world of package sim, beside readers, the checks of
// package judge, and power cuts: at many steps of the disk an image is taken, opened, judged, now and then interrupted in
// its own recovery, and written to; the run goes on beside that.
package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/simfs"
)

// Profile is a kind of run: which faults there are, and so what must hold.
type Profile string

const (
	// Recoverable: power cuts and kills only. The whole contract holds.
	Recoverable Profile = "recoverable"
	// Errors: a call of the disk fails. Before or after, nothing that was acknowledged is lost, and a failed sync is final.
	Errors Profile = "errors"
	// Damage: durable bytes change. Never a wrong answer.
	Damage Profile = "damage"
)

// Profiles lists them all.
var Profiles = []Profile{Recoverable, Errors, Damage}

// Result is what became of a run.
type Result struct {
	Seed       uint64
	Profile    Profile
	Config     string // what the seed drew
	Hash       uint64 // of the trace
	Steps      int
	Operations int // acknowledged writes, and looks at snapshots
	Images     int // crash images opened and judged
	Faults     int // calls that failed, bytes that were damaged
	Judged     judge.Counts
	Err        error // the failure, with the choice of the image that shows it
}

// Replay is the command that runs the seed again.
func (r Result) Replay() string {
	return fmt.Sprintf("go run ./cmd/sim replay --seed %d --profile %s", r.Seed, r.Profile)
}

// run is a run under way.
type run struct {
	seed    uint64
	profile Profile
	o       storage.Options
	known   *known
	disk    *simfs.FS
	judge   *judge.Judge
	cuts    cuts
	fault   fault
}

const dir = "/db"

// Run runs one seed.
func Run(seed uint64, profile Profile) Result {
	i := uint64(slices.Index(Profiles, profile))
	r := rand.New(rand.NewPCG(seed, 9+i))
	u := &run{seed: seed, profile: profile, o: Options(r), known: new(known), disk: simfs.New(simfs.Options{})}
	u.judge = judge.New(u.disk, dir, judge.Options{})
	u.cuts = cuts{u: u, r: rand.New(rand.NewPCG(seed, 21+i)), share: 40}
	opt := sim.Options{Seed: seed, Policy: sim.PolicyOf(seed), FS: u.disk, WriteBack: []float64{0, 0.002, 0.02}[r.IntN(3)]}
	if profile == Recoverable && r.IntN(4) > 0 {
		opt.StopAt = 1 + r.IntN(6000)
	}
	if profile == Errors {
		u.fault.draw(r, seed)
	}
	u.disk.SetHooks(simfs.Hooks{Watch: u.watch, Fault: u.fault.ask})
	out := Result{Seed: seed, Profile: profile,
		Config: fmt.Sprintf("%v, stop at step %d, write-back %v, fault %v, block %d, checkpoint at %d bytes or %d edits, fan-out %d",
			opt.Policy, opt.StopAt, opt.WriteBack, &u.fault, u.o.BlockSize, u.o.CheckpointBytes, u.o.CheckpointEdits, u.o.Tree.MaxEntries)}
	res := sim.Run(opt, func(w *sim.World) { u.program(w, r) })
	defer u.disk.Discard()
	u.disk.SetHooks(simfs.Hooks{})
	out.Hash, out.Steps = res.Hash, res.Steps
	out.Err = firstError(res.Err, u.judge.Err(), u.cuts.err)
	if out.Err == nil {
		if profile == Damage {
			u.cuts.damage(60)
		} else {
			u.cuts.take("at the end", append(u.disk.Choices(seed, 4), simfs.Choice{Gen: simfs.Killed}))
		}
		out.Err = u.cuts.err
	}
	out.Operations, out.Images, out.Faults = u.known.operations, u.cuts.images, u.fault.hits+u.cuts.damaged
	out.Judged = u.judge.Counts()
	return out
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *run) watch(e simfs.Event) {
	u.judge.Watch(e)
	if u.profile != Damage {
		u.cuts.watch(e)
	}
}

// Options draws sizes so small that a short run reaches what a long one would.
func Options(r *rand.Rand) storage.Options {
	return storage.Options{
		SegmentSize:     32 << 10,
		BlockSize:       4096 << r.IntN(3),
		CheckpointBytes: 2000 + r.Int64N(20000),
		CheckpointEdits: 20 + r.Int64N(200),
		CheckpointPages: 60,
		CleanSlack:      4096 << r.IntN(4),
		Reserve:         16,
		MapReserve:      1 << 28,
		Geometry:        page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8},
		Tree:            btree.Config{MaxEntries: 4 * r.IntN(2)},
	}
}
