package storage_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

// The program: clients count. Each collection has a counter in its first record; one increment is one write, which also puts
// the new number as a key into the collection's tree and stores a record of its own. So in every state that anyone may see
// the tree holds exactly the keys 1 … counter, and there is one record for each, and one more.

const counters = 3

// counted is what the clients know: how far each counter was submitted, and acknowledged.
type counted struct {
	mu               sync.Mutex // held across no call of the Env
	submitted, acked [counters]uint64
}

func (c *counted) submit(i int, n uint64) {
	c.mu.Lock()
	c.submitted[i] = max(c.submitted[i], n)
	c.mu.Unlock()
}

func (c *counted) ack(i int, n uint64) {
	c.mu.Lock()
	c.acked[i] = max(c.acked[i], n)
	c.mu.Unlock()
}

func (c *counted) bounds(i int) (least, most uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked[i], c.submitted[i]
}

func simOptions(r *rand.Rand) storage.Options {
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

func coll(i int) storage.CollID { return storage.CollID(i + 1) }

func prepare(s *storage.Store) error {
	c, err := s.Write(func(w *storage.Writer) error {
		w.Lock(0)
		for range counters {
			c, err := w.Create([]byte("counter"))
			if err != nil {
				return err
			}
			if err := c.CreateTree(1); err != nil {
				return err
			}
			if _, err := c.Insert(make([]byte, 8)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, c.Wait())
}

// increment counts counter i up, and gives back which number it made.
func increment(s *storage.Store, i int, pad int, known *counted) (n uint64, err error) {
	c, err := s.Write(func(w *storage.Writer) error {
		c := w.Lock(coll(i))
		b, err := c.Record(1)
		if err != nil {
			return err
		}
		n = binary.BigEndian.Uint64(b) + 1
		known.submit(i, n)
		key := binary.BigEndian.AppendUint64(nil, n)
		if err := c.Replace(1, key); err != nil {
			return err
		}
		if _, err := c.Insert(make([]byte, pad)); err != nil {
			return err
		}
		return c.Put(1, key, []byte("x"))
	})
	return n, errors.Join(err, c.Wait())
}

// look reads counter i and proves that what it sees is one state.
func look(sn *storage.Snapshot, i int) (n uint64, err error) {
	err = sn.Guard(func() error {
		c := sn.Collection(coll(i))
		if c == nil {
			return fmt.Errorf("counter %d is gone", i)
		}
		b, err := c.Record(1)
		if err != nil {
			return err
		}
		n = binary.BigEndian.Uint64(b)
		t, _ := c.Tree(1)
		it := t.Iter()
		k := uint64(0)
		for ok := it.Seek(nil); ok; ok = it.Next() {
			if k++; binary.BigEndian.Uint64(it.Key()) != k {
				return fmt.Errorf("counter %d: key %x where %d should be", i, it.Key(), k)
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
		if k != n || c.Count() != n+1 {
			return fmt.Errorf("counter %d: is at %d, but has %d keys and %d records", i, n, k, c.Count())
		}
		return nil
	})
	return n, err
}

// reader looks at snapshots, and at each of them twice.
func reader(w *sim.World, s *storage.Store, r *rand.Rand, rounds int, known *counted) {
	var before [counters]uint64
	for range rounds {
		var least [counters]uint64
		for i := range counters {
			least[i], _ = known.bounds(i)
		}
		sn := s.Snapshot()
		var seen [counters]uint64
		for i := range counters {
			n, err := look(sn, i)
			if err != nil {
				w.Fail(err)
			}
			if n < least[i] || n < before[i] {
				w.Fail(fmt.Errorf("counter %d: seen at %d after %d was acknowledged and %d seen", i, n, least[i], before[i]))
			}
			seen[i] = n
		}
		for range r.IntN(30) {
			w.Yield("reading")
		}
		for i := range counters {
			if n, err := look(sn, i); err != nil || n != seen[i] {
				w.Fail(fmt.Errorf("counter %d: a snapshot showed %d, then %d (%v)", i, seen[i], n, err))
			}
		}
		sn.Release()
		before = seen
	}
}

// churn makes and drops a collection of its own, and a tree of counter 0's.
func churn(w *sim.World, s *storage.Store, r *rand.Rand, rounds int) {
	for round := range rounds {
		var id storage.CollID
		c, err := s.Write(func(wr *storage.Writer) error {
			wr.Lock(0)
			c, err := wr.Create([]byte("churn"))
			if err != nil {
				return err
			}
			id = c.ID()
			for range 1 + round%3 {
				if _, err := c.Insert(make([]byte, r.IntN(9000))); err != nil {
					return err
				}
			}
			return c.CreateTree(7)
		})
		if err := errors.Join(err, c.Wait()); err != nil {
			w.Fail(err)
		}
		c, err = s.WriteFreeing(func(wr *storage.Writer) error {
			wr.Lock(0)
			return wr.Lock(id).Drop()
		})
		if err := errors.Join(err, c.Wait()); err != nil {
			w.Fail(err)
		}
	}
}

func program(w *sim.World, r *rand.Rand, o storage.Options, known *counted) {
	s, err := storage.Open(w.Env(), "/db", o)
	if err != nil {
		w.Fail(err)
	}
	if err := prepare(s); err != nil {
		w.Fail(err)
	}
	var tasks []func()
	for range 2 + r.IntN(4) {
		pads, only := r.IntN(800), r.IntN(2*counters)
		mine := rand.New(rand.NewPCG(r.Uint64(), 3))
		tasks = append(tasks, func() {
			for range 12 {
				i := only
				if i >= counters {
					i = mine.IntN(counters)
				}
				n, err := increment(s, i, mine.IntN(pads+1), known)
				if err != nil {
					w.Fail(err)
				}
				known.ack(i, n)
			}
		})
	}
	for range 1 + r.IntN(2) {
		mine := rand.New(rand.NewPCG(r.Uint64(), 4))
		tasks = append(tasks, func() { reader(w, s, mine, 6, known) })
	}
	if r.IntN(2) == 0 {
		mine := rand.New(rand.NewPCG(r.Uint64(), 5))
		tasks = append(tasks, func() { churn(w, s, mine, 5) })
	}
	w.Parallel("client", tasks...)
	sn := s.Snapshot()
	for i := range counters {
		n, err := look(sn, i)
		if _, most := known.bounds(i); err != nil || n != most {
			w.Fail(fmt.Errorf("counter %d: at %d in the end, and %d was submitted (%v)", i, n, most, err))
		}
	}
	sn.Release()
	for {
		if more, err := s.ClearStep(); err != nil {
			w.Fail(err)
		} else if !more {
			break
		}
	}
	if err := s.Checkpoint(); err != nil {
		w.Fail(err)
	}
	if rep := s.Check(); len(rep.Faults) > 0 {
		w.Fail(fmt.Errorf("check: %q", rep.Faults))
	}
	if err := s.Close(); err != nil {
		w.Fail(err)
	}
}

// judge opens what a power cut left, and compares it with what the clients know.
func judge(image *simfs.FS, o storage.Options, known *counted) error {
	defer image.Discard()
	o.Manual = true
	s, err := storage.Open(image.Env(1), "/db", o)
	if err != nil {
		return fmt.Errorf("does not open: %w", err)
	}
	if rep := s.Check(); len(rep.Faults) > 0 {
		return fmt.Errorf("check: %q", rep.Faults)
	}
	sn := s.Snapshot()
	for i := range counters {
		least, most := known.bounds(i)
		if sn.Collection(coll(i)) == nil {
			if most > 0 {
				return fmt.Errorf("counter %d is gone", i)
			}
			continue
		}
		n, err := look(sn, i)
		if err != nil {
			return err
		}
		if n < least || n > most {
			return fmt.Errorf("counter %d: recovered at %d; %d was acknowledged, %d submitted", i, n, least, most)
		}
	}
	sn.Release()
	return s.Close()
}

func TestScheduledClients(t *testing.T) {
	images, steps := 0, 0
	for seed := first(); seed < first()+count(40); seed++ {
		r := rand.New(rand.NewPCG(seed, 9))
		o := simOptions(r)
		known := new(counted)
		opt := sim.Options{Seed: seed, Policy: sim.PolicyOf(seed), WriteBack: 0.002}
		if r.IntN(4) > 0 {
			opt.StopAt = 1 + r.IntN(6000)
		}
		res := sim.Run(opt, func(w *sim.World) { program(w, r, o, known) })
		if res.Err != nil {
			t.Fatalf("seed %d: %v\nreplay: go test ./engine/storage -run '^TestScheduledClients$' -storage.seed %d", seed, res.Err, seed)
		}
		steps += res.Steps
		choices := append(res.FS.Choices(seed, 4), simfs.Choice{Gen: simfs.Killed})
		for _, choice := range choices {
			if err := judge(res.FS.Crash(choice), o, known); err != nil {
				t.Fatalf("seed %d, step %d, choice %v: %v\nreplay: go test ./engine/storage -run '^TestScheduledClients$' -storage.seed %d",
					seed, res.Steps, choice, err, seed)
			}
			images++
		}
		res.FS.Discard()
	}
	t.Logf("%d steps, %d crash images", steps, images)
}

// TestScheduleIsRepeatable: the same seed gives the same trace.
func TestScheduleIsRepeatable(t *testing.T) {
	run := func(seed uint64) uint64 {
		r := rand.New(rand.NewPCG(seed, 9))
		o := simOptions(r)
		res := sim.Run(sim.Options{Seed: seed, Policy: sim.PolicyOf(seed)}, func(w *sim.World) { program(w, r, o, new(counted)) })
		defer res.FS.Discard()
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Hash
	}
	for seed := range uint64(3) {
		if a, b := run(seed), run(seed); a != b {
			t.Fatalf("seed %d: traces %x and %x", seed, a, b)
		}
	}
}

// TestFailedSyncIsFinal lets the n-th sync of the log or the data file fail while clients count: nothing that was
// acknowledged is lost, nothing after the failure is acknowledged, and readers go on.
func TestFailedSyncIsFinal(t *testing.T) {
	for seed := first(); seed < first()+count(40); seed++ {
		r := rand.New(rand.NewPCG(seed, 10))
		o := simOptions(r)
		known := new(counted)
		fault := simfs.Fault{Err: simfs.EIO, Sync: []simfs.SyncFault{simfs.StayDirty, simfs.CleanKept, simfs.CleanReverted}[r.IntN(3)],
			Written: []float64{0, 0.5, 1}[r.IntN(3)], Seed: seed}
		nth := 12 + r.IntN(60)
		op := []simfs.Op{simfs.OpSync, simfs.OpSync, simfs.OpWrite, simfs.OpSyncDir}[r.IntN(4)]
		res := sim.Run(sim.Options{Seed: seed, Policy: sim.PolicyOf(seed)}, func(w *sim.World) {
			s, err := storage.Open(w.Env(), "/db", o)
			if err != nil {
				w.Fail(err)
			}
			if err := prepare(s); err != nil {
				w.Fail(err)
			}
			w.FS().SetHooks(simfs.Hooks{Fault: simfs.FailNth(nth, fault, op)})
			client := func() {
				for k := range 15 {
					i := k % counters
					n, err := increment(s, i, 50*k, known)
					switch {
					case err == nil:
						known.ack(i, n)
					case !errors.Is(err, storage.ErrFailed) && !errors.Is(err, env.ErrNoSpace) && s.Failed() != nil:
						w.Fail(fmt.Errorf("after the failure %q a client is told %w", s.Failed(), err))
					}
				}
			}
			w.Parallel("client", client, client, client, func() {
				mine := rand.New(rand.NewPCG(seed, 11))
				reader(w, s, mine, 10, known)
			})
			if s.Failed() != nil {
				if _, err := increment(s, 0, 1, new(counted)); !errors.Is(err, storage.ErrFailed) {
					w.Fail(fmt.Errorf("a failed database took a write: %v", err))
				}
				calls := w.FS().Calls()
				if s.Close(); w.FS().Calls() == calls {
					w.Fail(errors.New("close did nothing at all"))
				}
				return
			}
			w.FS().SetHooks(simfs.Hooks{})
			if err := s.Close(); err != nil {
				w.Fail(err)
			}
		})
		if res.Err != nil {
			t.Fatalf("seed %d: %v\nreplay: go test ./engine/storage -run '^TestFailedSyncIsFinal$' -storage.seed %d", seed, res.Err, seed)
		}
		res.FS.SetHooks(simfs.Hooks{})
		for _, choice := range append(res.FS.Choices(seed, 3), simfs.Choice{Gen: simfs.Killed}) {
			if err := judge(res.FS.Crash(choice), o, known); err != nil {
				t.Fatalf("seed %d, %v of the %d-th %s, choice %v: %v\nreplay: go test ./engine/storage -run '^TestFailedSyncIsFinal$' -storage.seed %d",
					seed, fault.Sync, nth, op, choice, err, seed)
			}
		}
		res.FS.Discard()
	}
}
