package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/simfs"
)

// The program: clients count. Each collection has a counter in its first record; one increment is one write, which also puts
// the new number as a key into the collection's tree, writes it into the descriptor, stores a record of its own, and removes that of some
// increments before. So in every state that anyone may see the tree holds exactly the keys 1 … counter, the descriptor says the
// counter, and there are the records of the last increments, under the numbers that they must have. Lookers write nothing: what
// they saw at head must be durable when their reply comes. Readers look at snapshots, and at each of them twice. A churner
// makes and drops collections, and a compactor moves everything to the front of the file.

const counters = 3

// known is what the clients know: how far each counter was submitted, and acknowledged.
type known struct {
	mu               sync.Mutex // held across no call of the Env
	submitted, acked [counters]uint64
	operations       int
}

func (k *known) submit(i int, n uint64) {
	k.mu.Lock()
	k.submitted[i] = max(k.submitted[i], n)
	k.mu.Unlock()
}

func (k *known) ack(i int, n uint64) {
	k.mu.Lock()
	k.acked[i] = max(k.acked[i], n)
	k.operations++
	k.mu.Unlock()
}

// bounds are what a state may hold that is seen now.
func (k *known) bounds() (least, most [counters]uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.acked, k.submitted
}

func (k *known) looked() {
	k.mu.Lock()
	k.operations++
	k.mu.Unlock()
}

// counting is the program in a run.
type counting struct {
	*Frame
	r     *rand.Rand
	o     storage.Options
	known *known
	small bool // background work goes in small steps
}

func newCounting(u *Frame, r *rand.Rand) (Program, string) {
	o := Options(r)
	small := r.IntN(2) == 0
	return &counting{u, r, o, new(known), small}, fmt.Sprintf("block %d, checkpoint at %d bytes or %d edits, fan-out %d, small steps %v",
		o.BlockSize, o.CheckpointBytes, o.CheckpointEdits, o.Tree.MaxEntries, small)
}

// Operations are acknowledged writes, and looks at snapshots.
func (u *counting) Operations() int { return u.known.operations }

func coll(i int) storage.CollID { return storage.CollID(i + 1) }

func prepare(s *storage.Store) error {
	c, err := s.Write(func(w *storage.Writer) error {
		w.Lock(0)
		for range counters {
			c, err := w.Create(make([]byte, 8))
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

// window is how many records of the last increments there are.
const window = 6

// record is the number of the record that the increment to n makes: numbers are never used twice.
func record(n uint64) storage.RecordID { return storage.RecordID(n + 1) }

// increment counts counter i up, and gives back which number it made.
func increment(s *storage.Store, i int, pad int, known *known) (n uint64, err error) {
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
		if err := c.SetDesc(key); err != nil {
			return err
		}
		if id, err := c.Insert(make([]byte, pad)); err != nil || id != record(n) {
			return fmt.Errorf("counter %d: record of %d is number %d: %w", i, n, id, err)
		}
		if n > window {
			if err := c.Remove(record(n - window)); err != nil {
				return err
			}
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
		if d := binary.BigEndian.Uint64(c.Desc()); k != n || d != n {
			return fmt.Errorf("counter %d: is at %d, but has %d keys, and its descriptor says %d", i, n, k, d)
		}
		next := record(n - min(n, window) + 1)
		records := c.Records(2, false)
		for ; records.Next(); next++ {
			if records.ID() != next {
				return fmt.Errorf("counter %d: is at %d, and has record %d where %d should be", i, n, records.ID(), next)
			}
		}
		if err := records.Err(); err != nil {
			return err
		}
		if next != record(n+1) || c.Count() != min(n, window)+1 {
			return fmt.Errorf("counter %d: is at %d, but its last record is %d, and it counts %d", i, n, next-1, c.Count())
		}
		return nil
	})
	return n, err
}

// pin protects the pages of the snapshot's trees.
func (u *counting) pin(sn *storage.Snapshot) (*judge.Pin, error) {
	var refs []page.Ref
	err := sn.Guard(func() error {
		for i := range counters {
			t, _ := sn.Collection(coll(i)).Tree(1)
			err := t.Walk(func(ref page.Ref, _ uint8, _ bool) error {
				refs = append(refs, ref)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return u.Judge.Pin(refs), err
}

// reader looks at snapshots, and at each of them twice.
func (u *counting) reader(w *sim.World, s *storage.Store, name string, r *rand.Rand, rounds int) {
	var before [counters]uint64
	for round := range rounds {
		pause := r.IntN(60)
		u.Do(name, round, fmt.Sprintf("read a snapshot twice, %d steps apart", pause), func() string {
			before = u.readTwice(w, s, before, pause)
			return fmt.Sprint(before)
		})
	}
}

// readTwice looks at a snapshot before and after a pause. Nothing may be older than what was seen before.
func (u *counting) readTwice(w *sim.World, s *storage.Store, before [counters]uint64, pause int) (seen [counters]uint64) {
	least, _ := u.known.bounds()
	sn := s.Snapshot()
	u.Judge.Visible(uint64(sn.LSN()))
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
	pin, err := u.pin(sn)
	if err != nil {
		w.Fail(err)
	}
	for range pause {
		w.Yield("reading")
	}
	for i := range counters {
		if n, err := look(sn, i); err != nil || n != seen[i] {
			w.Fail(fmt.Errorf("counter %d: a snapshot showed %d, then %d (%v)", i, seen[i], n, err))
		}
	}
	pin.Release()
	sn.Release()
	u.known.looked()
	return seen
}

// looker looks at counters at head, and waits as a reply would.
func (u *counting) looker(w *sim.World, s *storage.Store, name string, rounds int) {
	for round := range rounds {
		i := round % counters
		u.Do(name, round, fmt.Sprintf("look at counter %d at head", i), func() string {
			var n uint64
			c, err := s.Write(func(wr *storage.Writer) error {
				b, err := wr.Lock(coll(i)).Record(1)
				if err == nil {
					n = binary.BigEndian.Uint64(b)
				}
				return err
			})
			if err = errors.Join(err, c.Wait()); err == nil {
				u.known.ack(i, n) // what the reply tells is as good as acknowledged
			}
			return u.outcome(w, s, err, n)
		})
	}
}

// compactor moves everything to the front of the file, and gives back the rest.
func (u *counting) compactor(w *sim.World, s *storage.Store, name string, rounds int) {
	for round := range rounds {
		u.Do(name, round, "compact the file", func() string {
			freed, err := s.Compact(func() error { return nil })
			return u.outcome(w, s, err, freed)
		})
	}
}

// outcome is what a client says of an operation. One that must not have failed ends the world.
func (u *counting) outcome(w *sim.World, s *storage.Store, err error, result any) string {
	switch {
	case err == nil:
		return fmt.Sprint(result)
	case u.broken(s, err):
		return err.Error()
	}
	w.Fail(err)
	return ""
}

// client counts.
func (u *counting) client(w *sim.World, s *storage.Store, name string, r *rand.Rand, only, pads int) {
	for round := range 12 {
		i := only
		if i >= counters {
			i = r.IntN(counters)
		}
		pad := r.IntN(pads + 1)
		u.Do(name, round, fmt.Sprintf("count counter %d up, with a record of %d bytes", i, pad), func() string {
			n, err := increment(s, i, pad, u.known)
			if err == nil {
				u.known.ack(i, n)
			}
			return u.outcome(w, s, err, n)
		})
	}
}

// broken reports whether err is what a client may be told because a call of the disk has failed.
func (u *counting) broken(s *storage.Store, err error) bool {
	if !u.Fault.Hit() {
		return false
	}
	// The disk's own error comes from what nothing hangs on yet, such as a new segment of the log; that the database fails for another
	// reason meanwhile is no contradiction.
	return errors.Is(err, storage.ErrFailed) || errors.Is(err, storage.ErrDiskFull) || errors.Is(err, env.ErrNoSpace) || errors.Is(err, simfs.EIO) || s.Failed() == nil
}

// Main runs the clients.
func (u *counting) Main(w *sim.World) {
	r := u.r
	e := *w.Env()
	e.Buggify = func(string) bool { return u.small }
	s, err := storage.Open(&e, Dir, u.o)
	if err != nil {
		w.Fail(err)
	}
	if err := prepare(s); err != nil {
		w.Fail(err)
	}
	u.Fault.Arm()
	var tasks []func()
	for k := range 2 + r.IntN(4) {
		pads, only := r.IntN(800), r.IntN(2*counters)
		mine := rand.New(rand.NewPCG(r.Uint64(), 3))
		tasks = append(tasks, func() { u.client(w, s, fmt.Sprint("client ", k), mine, only, pads) })
	}
	for k := range 1 + r.IntN(2) {
		mine := rand.New(rand.NewPCG(r.Uint64(), 4))
		tasks = append(tasks, func() { u.reader(w, s, fmt.Sprint("reader ", k), mine, 6) })
	}
	if r.IntN(2) == 0 {
		tasks = append(tasks, func() { u.looker(w, s, "looker", 10) })
	}
	if r.IntN(2) == 0 {
		mine := rand.New(rand.NewPCG(r.Uint64(), 5))
		tasks = append(tasks, func() { u.churn(w, s, "churn", mine, 4) })
	}
	if r.IntN(3) == 0 {
		tasks = append(tasks, func() { u.compactor(w, s, "compactor", 2) })
	}
	w.Parallel("client", tasks...)
	if s.Failed() != nil {
		u.failed(w, s)
		return
	}
	u.Fault.Disarm()
	if u.Profile == Recoverable {
		u.complete(w, s)
	}
	if err := s.Close(); err != nil {
		w.Fail(err)
	}
}

// complete demands that everything was done, and that nothing is left over.
func (u *counting) complete(w *sim.World, s *storage.Store) {
	sn := s.Snapshot()
	_, most := u.known.bounds()
	for i := range counters {
		if n, err := look(sn, i); err != nil || n != most[i] {
			w.Fail(fmt.Errorf("counter %d: at %d in the end, and %d was submitted (%v)", i, n, most[i], err))
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
}

// failed looks at a database that has failed: it says so, shows what is durable, and touches the disk no more.
func (u *counting) failed(w *sim.World, s *storage.Store) {
	if _, err := increment(s, 0, 1, new(known)); !errors.Is(err, storage.ErrFailed) {
		w.Fail(fmt.Errorf("a failed database took a write: %v", err))
	}
	least, _ := u.known.bounds()
	sn := s.Snapshot()
	for i := range counters {
		if n, err := look(sn, i); err != nil || n < least[i] {
			w.Fail(fmt.Errorf("counter %d: a failed database shows %d, and %d was acknowledged (%v)", i, n, least[i], err))
		}
	}
	sn.Release()
	_ = s.Close() // it has nothing more to say
}
