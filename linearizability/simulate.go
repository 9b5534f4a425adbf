package linearizability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

// simulation is one history of the simulated engine under way.
type simulation struct {
	seed uint64
	rng  *rand.Rand
	load *workload
	opt  engine.Options
	rec  *recorder
	// wrap puts something between the clients and the engine: the broken variants do.
	wrap func(w *sim.World, c engineClient) client

	sessions []*session
	crashes  int
	faulty   bool         // a sync may fail in this world
	failures atomic.Int32 // operations that ended so
}

// Simulate makes the history of a seed, whose every detail depends on the seed alone. name is a workload's; empty is one by seed.
func Simulate(seed uint64, name string) (*History, error) {
	return simulate(seed, workloadOf(name, seed), func(w *sim.World, c engineClient) client { return snapshotReader{c, w} })
}

func simulate(seed uint64, load *workload, wrap func(w *sim.World, c engineClient) client) (*History, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &simulation{seed: seed, rng: rng, load: load, opt: engineOptions(rng), rec: new(recorder), wrap: wrap, sessions: newSessions(load, rng)}
	err := s.run()
	return &History{Seed: seed, World: "simulated", Workload: load.name, Crashes: s.crashes, Failures: int(s.failures.Load()), Ops: s.rec.ops, Opened: s.rec.ready}, err
}

// engineOptions make everything small, so that checkpoints and new segments come in the middle of a short history.
func engineOptions(r *rand.Rand) engine.Options {
	return engine.Options{TTLSweep: -1, Storage: storage.Options{
		SegmentSize:     64 << 10,
		BlockSize:       4096 << r.IntN(3),
		CheckpointBytes: 4000 + r.Int64N(60000),
		CheckpointEdits: 40 + r.Int64N(400),
		CheckpointPages: 60,
		Reserve:         16,
		MapReserve:      1 << 28,
		Geometry:        page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8},
		Tree:            btree.Config{MaxEntries: 4 * r.IntN(2)},
	}}
}

// run lives through 2 to 4 worlds, each on what the power cut of the one before has left, and one in which all is read.
func (s *simulation) run() error {
	most := s.load.ops/2 + s.rng.IntN(s.load.ops/2)
	cuts := 1 + s.rng.IntN(3)
	disk := simfs.New(simfs.Options{})
	for {
		cut := 0 // after how many operations
		if s.crashes < cuts {
			cut = most * (s.crashes + 1) / (cuts + 1)
			cut -= s.rng.IntN(most/(cuts+1)/2 + 1)
		}
		opt := sim.Options{Seed: s.rng.Uint64(), Policy: sim.PolicyOf(s.rng.Uint64()), WriteBack: 0.002, FS: disk}
		if s.crashes > 0 && cut > 0 && s.rng.IntN(3) == 0 {
			opt.StopAt = 1 + s.rng.IntN(400) // in recovery, or soon after
		}
		if s.faulty = cut > 0 && s.rng.IntN(4) == 0; s.faulty {
			disk.SetHooks(simfs.Hooks{Fault: failingSync(s.rng)})
		}
		res := sim.Run(opt, func(w *sim.World) { s.world(w, most, cut) })
		if res.Err != nil {
			return fmt.Errorf("history simulated/%s, seed %d, world %d, step %d: %w", s.load.name, s.seed, s.crashes, res.Steps, res.Err)
		}
		if !res.Stopped {
			res.FS.Discard()
			return nil
		}
		s.crashes++
		choices := append(res.FS.Choices(s.rng.Uint64(), 8), simfs.Choice{Gen: simfs.Killed})
		disk = res.FS.Crash(choices[s.rng.IntN(len(choices))])
		res.FS.Discard()
	}
}

// failingSync makes one sync fail, in any of the ways in which disks do.
func failingSync(r *rand.Rand) func(simfs.Call) *simfs.Fault {
	ways := []simfs.SyncFault{simfs.StayDirty, simfs.CleanKept, simfs.CleanReverted}
	fault := simfs.Fault{Err: simfs.EIO, Sync: ways[r.IntN(len(ways))], Written: float64(r.IntN(3)) / 2, Seed: r.Uint64()}
	return simfs.FailNth(1+r.IntN(40), fault, simfs.OpSync)
}

// failed says whether err is what a database answers after the disk has failed it.
func (s *simulation) failed(err error) bool {
	return s.faulty && (errors.Is(err, storage.ErrFailed) || errors.Is(err, simfs.EIO))
}

// world opens the database and lets the clients go on, until the history has cut operations and the power fails, or the history
// is full.
func (s *simulation) world(w *sim.World, most, cut int) {
	s.rec.setClock(func() int64 { return int64(w.Steps()) })
	o := s.opt
	o.Env = w.Env()
	db, err := engine.Open("/db", o)
	c := engineClient{db}
	if err == nil {
		err = c.prepare(s.load)
	}
	if s.failed(err) {
		w.Stop()
	}
	if err != nil {
		w.Fail(fmt.Errorf("open: %w", err))
	}
	s.rec.recovered()
	through := s.wrap(w, c)
	tasks := make([]func(), len(s.sessions))
	pause := s.rng.IntN(60)
	var struck atomic.Bool
	for i, session := range s.sessions {
		tasks[i] = func() {
			for s.ask(w, through, session.client, s.load.next(session), most, session.learn) {
				if cut > 0 && s.rec.full(cut) && struck.CompareAndSwap(false, true) {
					w.Go("power", func() {
						for range pause {
							w.Yield("power")
						}
						w.Stop()
					})
				}
			}
			s.lookOn(w, through, session, most)
		}
	}
	w.Parallel("client", tasks...)
	if cut > 0 {
		w.Stop() // the clients were faster than the power cut
	}
	s.load.last(func(in Input) { s.ask(w, through, 0, in, 2*most, func(Input, Output) {}) })
	if err := db.Close(); err != nil {
		w.Fail(fmt.Errorf("close: %w", err))
	}
	o.Storage.Manual = true // nothing goes on beside the check
	if err := check(o); err != nil {
		w.Fail(err)
	}
}

// check opens the database once more and proves it sound.
func check(o engine.Options) error {
	db, err := engine.Open("/db", o)
	if err != nil {
		return fmt.Errorf("last open: %w", err)
	}
	var faults []error
	for _, f := range db.Store().Check().Faults {
		faults = append(faults, fmt.Errorf("check: %s", f))
	}
	err = db.Check(context.Background(), func(fault error) { faults = append(faults, fault) })
	return errors.Join(append(faults, err, db.Close())...)
}

// lookOn is what a client does when it writes no more: if the disk has failed it goes on reading.
func (s *simulation) lookOn(w *sim.World, c client, session *session, most int) {
	for n := 0; n < 20 && s.faulty; n++ {
		if in := s.load.next(session); in.Kind.read() && !s.ask(w, c, session.client, in, most, session.learn) {
			return
		}
	}
}

// ask lets a client ask one thing. It is false if the history is full, or if the disk has failed: then the operation has no
// reply.
func (s *simulation) ask(w *sim.World, c client, number int, in Input, most int, learn func(Input, Output)) bool {
	op := s.rec.call(number, in, most)
	if op < 0 {
		return false
	}
	out, err := c.do(in)
	if s.failed(err) && !in.Kind.read() {
		s.failures.Add(1)
		return false
	}
	if err != nil {
		w.Fail(fmt.Errorf("client %d, %v: %w", number, in, err))
	}
	s.rec.reply(op, out)
	learn(in, out)
	return true
}

// snapshotReader makes every second scan with a pinned snapshot, and all of it twice while others write: it must see the same.
// The other scans take their time.
type snapshotReader struct {
	engineClient
	w *sim.World
}

func (c snapshotReader) do(in Input) (Output, error) {
	if in.Kind != Scan {
		return c.engineClient.do(in)
	}
	if c.w.Choose(2) == 0 {
		docs, err := c.all(nil, func() { c.w.Yield("scan") })
		sortDocs(docs)
		return Output{Docs: docs}, err
	}
	sn := c.db.Store().Snapshot()
	defer sn.Release()
	docs, err := c.records(sn)
	if err != nil {
		return Output{}, err
	}
	for range c.w.Choose(40) {
		c.w.Yield("snapshot held")
	}
	again, err := c.records(sn)
	if err == nil && !slices.Equal(docs, again) {
		err = fmt.Errorf("one snapshot showed %v, and then %v", docs, again)
	}
	return Output{Docs: docs}, err
}

// records reads the collection's documents in a snapshot, past plans and indexes.
func (c engineClient) records(sn *storage.Snapshot) (docs []Doc, err error) {
	err = sn.Guard(func() error {
		id, ok, err := catalog.Find(sn.Collection(0), namespace)
		if err != nil || !ok {
			return err
		}
		docs, err = recordsOf(sn.Collection(id))
		return err
	})
	return docs, err
}

func recordsOf(c *storage.Collection) (docs []Doc, err error) {
	it := c.Records(0, false)
	for it.Next() {
		doc := bson.Raw(it.Bytes())
		docs = append(docs, Doc{field(doc, "_id"), field(doc, "v")})
	}
	sortDocs(docs)
	return docs, it.Err()
}
