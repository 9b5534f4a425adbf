// Package workload runs programs against a simulated disk, and judges what becomes of them.
//
// One seed is one run: the sizes of everything, the mix of clients, the policy of the scheduler, where the power fails and
// which call of the disk goes wrong all follow from it, so that [Run] of the same seed and profile gives the same hash of
// the trace, always.
//
// A [Program] runs in a world of package sim, beside the checks of package judge and power cuts: at many steps of the disk an
// image is taken, opened, judged, now and then interrupted in its own recovery, and written to; the run goes on beside
// that. The program of this package is a set of clients of the storage engine that count (see program.go); that of package
// commands stands a layer higher.
package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/multiforadb/multiforadb/engine/env"
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
	Program    string // as the case names it
	Config     string // what the seed drew
	Hash       uint64 // of the trace
	Steps      int
	Operations int // acknowledged writes, and looks at snapshots
	Images     int // crash images opened and judged
	Faults     int // calls that failed, bytes that were damaged
	Judged     judge.Counts
	Err        error // the failure, with the choice of the image that shows it

	Class    string       // of the failure: what is left of it when places, numbers and moments are taken away
	Cut      *Cut         // the image that failed, if one did
	Ops      []Op         // in the order of their beginnings
	Switches []sim.Switch // the schedule
}

// Replay is the command that runs the seed again.
func (r Result) Replay() string {
	s := fmt.Sprintf("go run ./cmd/sim replay --seed %d --profile %s", r.Seed, r.Profile)
	if r.Program != "" {
		s += " --program " + r.Program
	}
	return s
}

// Program is what a run does in its world, and what it knows of the states that a power cut may leave.
type Program interface {
	// Main is the world's first task. It opens the database in [Dir], arms the fault, and closes the database.
	Main(w *sim.World)
	// Known is what a power cut at this moment may leave. It is called beside the tasks of the world: what it shares with them needs a
	// lock that is held across no call of the Env.
	Known() Known
	// Operations are how many were answered.
	Operations() int
}

// Known is what the clients of a program know of its database at one moment. It is immutable.
type Known interface {
	// Open opens the database of an image. An error means that it does not open, is not sound, or is in no state that may be.
	Open(e *env.Env) (Opened, error)
	// Damaged opens a database whose durable bytes have changed. An error means a wrong answer, that is one which does not say
	// what is damaged.
	Damaged(e *env.Env) error
}

// Opened is the database of an image.
type Opened interface {
	// Known is what a power cut during its recovery may have left. durable says that all that it had recovered was durable before, and
	// not only in the page cache.
	Known(durable bool) Known
	// LiveOn sees whether the database is good for more than reading, and survives the next power cut, which takes all of image
	// that is not durable. It closes the database.
	LiveOn(image *simfs.FS) error
	Close() error
}

// Maker makes a program of a run. It draws from r what the program is, and tells it in a few words; Main may go on drawing.
type Maker func(u *Frame, r *rand.Rand) (p Program, config string)

// Frame is a run under way, as its program sees it.
type Frame struct {
	Seed    uint64
	Profile Profile
	Judge   *judge.Judge
	Fault   Fault

	edit    Edit
	told    Watch
	world   *sim.World
	program Program
	disk    *simfs.FS
	cuts    cuts

	opsMu sync.Mutex
	ops   []Op
}

// Dir is where programs have their database.
const Dir = "/db"

// Run runs one seed of this package's program.
func Run(seed uint64, profile Profile) Result {
	return RunCase(Case{Seed: seed, Profile: profile}, Watch{})
}

// RunCase runs a seed of this package's program with changes, watched.
func RunCase(c Case, told Watch) Result { return RunProgram(newCounting, c, told) }

// RunProgram runs a seed of any program.
func RunProgram(make Maker, c Case, told Watch) Result {
	i := uint64(slices.Index(Profiles, c.Profile))
	r := rand.New(rand.NewPCG(c.Seed, 9+i))
	u := &Frame{Seed: c.Seed, Profile: c.Profile, edit: c.Edit, told: told, disk: simfs.New(simfs.Options{})}
	u.Judge = judge.New(u.disk, Dir, judge.Options{})
	var config string
	u.program, config = make(u, r)
	u.cuts = cuts{u: u, r: rand.New(rand.NewPCG(c.Seed, 21+i)), share: cmp.Or(c.Edit.Share, 40)}
	drawn := c.Seed ^ c.Edit.Schedule<<32
	opt := sim.Options{Seed: drawn, Policy: sim.PolicyOf(drawn), FS: u.disk, WriteBack: []float64{0, 0.002, 0.02}[r.IntN(3)],
		Switches: c.Edit.Switches, Steps: c.Edit.Steps, Trace: told.Step}
	if c.Profile == Recoverable && r.IntN(4) > 0 {
		opt.StopAt = 1 + r.IntN(6000)
	}
	if c.Profile == Errors {
		u.Fault.draw(r, c.Seed)
	}
	u.disk.SetHooks(simfs.Hooks{Watch: u.watch, Fault: u.fails})
	out := Result{Seed: c.Seed, Profile: c.Profile, Program: c.Program,
		Config: fmt.Sprintf("%v, stop at step %d, write-back %v, fault %v, %s", opt.Policy, opt.StopAt, opt.WriteBack, &u.Fault, config)}
	res := sim.Run(opt, func(w *sim.World) {
		u.world = w
		u.program.Main(w)
	})
	defer u.disk.Discard()
	u.disk.SetHooks(simfs.Hooks{})
	out.Hash, out.Steps = res.Hash, res.Steps
	if firstError(res.Err, u.Judge.Err(), u.cuts.err) == nil {
		u.cuts.atEnd()
	}
	switch {
	case res.Err != nil:
		out.Err, out.Class = res.Err, "world: "+class(errors.Unwrap(res.Err))
	case u.Judge.Err() != nil:
		out.Err, out.Class = u.Judge.Err(), class(u.Judge.Err())
	case u.cuts.err != nil:
		out.Err, out.Class, out.Cut = u.cuts.err, "image: "+class(u.cuts.cause), &u.cuts.failed
	}
	out.Operations, out.Images, out.Faults = u.program.Operations(), u.cuts.images, u.Fault.hits+u.cuts.damaged
	out.Judged, out.Ops, out.Switches = u.Judge.Counts(), u.ops, res.Switches
	return out
}

// class is what failures of one kind have in common: the first line, without numbers, and of a list the first thing.
func class(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.Index(s, `" "`); i > 0 {
		s = s[:i+1]
	}
	return numbers.ReplaceAllString(s, "#")
}

var numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// watch judges an event. The run ends at the first failure.
func (u *Frame) watch(e simfs.Event) {
	if u.told.Disk != nil {
		u.told.Disk(u.world.Steps(), u.world.Task(), e)
	}
	u.Judge.Watch(e)
	if u.Profile != Damage {
		u.cuts.watch(e)
	}
	if u.Judge.Err() != nil || u.cuts.failure() != nil {
		u.world.Stop()
	}
}

// fails is the disk's hook.
func (u *Frame) fails(c simfs.Call) *simfs.Fault {
	f := u.Fault.ask(c)
	if f != nil && u.told.Fault != nil {
		u.told.Fault(u.world.Steps(), u.world.Task(), c, *f)
	}
	return f
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
