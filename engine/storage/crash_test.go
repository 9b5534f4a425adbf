package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/simfs"
)

// crasher takes crash images of a world while it runs, and judges each: a second Store opens it, must hold a state between
// the last acknowledged and the last submitted one, be sound, and be the same however often its recovery is interrupted.
type crasher struct {
	w      *world
	r      *rand.Rand
	images int
	off    bool
	share  int // one event in so many is looked at
	failed string
	live   bool // the next image must live on
}

func (c *crasher) watch(e simfs.Event) {
	if c.off || c.failed != "" {
		return
	}
	c.off = true
	defer func() { c.off = false }()
	if e.When == simfs.Part && e.Path == testDir+"/data" && e.Off < 2*page.Size && c.r.IntN(2) == 0 {
		// Dead between writing a meta page and syncing it: the next process sees what the disk may not have.
		c.live = true
		c.judge(e, simfs.Choice{Gen: simfs.Killed})
	}
	if c.r.IntN(c.share) != 0 {
		return
	}
	for _, choice := range c.w.disk.Choices(c.r.Uint64(), 2) {
		c.judge(e, choice)
	}
	if c.r.IntN(4) == 0 {
		c.judge(e, simfs.Choice{Gen: simfs.Killed})
	}
}

func (c *crasher) judge(e simfs.Event, choice simfs.Choice) {
	c.images++
	where := fmt.Sprintf("crash %s %v, choice %v", e.When, e.Call, choice)
	fail := func(format string, args ...any) {
		// The judge runs inside a call of the engine that it judges: the test ends when that is over.
		if c.failed == "" {
			c.failed = fmt.Sprintf("%s: %s\n%s", where, fmt.Sprintf(format, args...), c.w.disk.Describe(choice))
		}
	}
	image := c.w.disk.Crash(choice)
	defer image.Discard()

	again := image.Crash(simfs.Choice{Gen: simfs.Killed})
	defer again.Discard()

	live := c.live || c.r.IntN(4) == 0
	c.live = false
	judged := judge.New(image, testDir, judge.Options{})
	if live {
		image.SetHooks(simfs.Hooks{Watch: judged.Watch})
	}
	s, n, err := c.recover(image)
	if err != nil {
		fail("%v", err)
		return
	}
	if n < c.w.acked {
		fail("recovered state %d, but %d was acknowledged", n, c.w.acked)
	}
	if live {
		c.liveOn(s, image, fail)
		if err := judged.Err(); err != nil {
			fail("in the life after: %v", err)
		}
	}
	if err := s.release(); err != nil {
		fail("%v", err)
	}
	if c.r.IntN(3) == 0 {
		least := n
		if choice.Gen == simfs.Killed {
			least = c.w.acked // what only the page cache holds may yet be lost
		}
		c.nest(again, least, n, 2, fail)
	}
}

// recover opens an image and tells which state of the history it holds.
func (c *crasher) recover(image *simfs.FS) (*Store, int, error) {
	s, err := Open(image.Env(1), testDir, c.w.o)
	if err != nil {
		return nil, 0, fmt.Errorf("does not open: %w", err)
	}
	if r := s.Check(); len(r.Faults) > 0 {
		return nil, 0, fmt.Errorf("check: %q", r.Faults)
	}
	f, err := read(s)
	if err != nil {
		return nil, 0, err
	}
	for n := len(c.w.history) - 1; n >= 0; n-- {
		if c.w.history[n] == f {
			return s, n, nil
		}
	}
	return nil, 0, errors.New("holds a state that never was")
}

// nest crashes in the middle of recovery, and demands the same outcome.
func (c *crasher) nest(image *simfs.FS, least, most, depth int, fail func(string, ...any)) {
	var inner []*simfs.FS
	image.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) {
		if c.r.IntN(8) == 0 && len(inner) < 2 {
			list := image.Choices(c.r.Uint64(), 8)
			inner = append(inner, image.Crash(list[c.r.IntN(len(list))]))
		}
	}})
	s, n, err := c.recover(image)
	if err != nil {
		fail("in a nested recovery: %v", err)
		return
	}
	if n < least || n > most {
		fail("a recovery found state %d, another of the same image %d to %d", n, least, most)
	}
	image.SetHooks(simfs.Hooks{})
	if err := s.release(); err != nil {
		fail("%v", err)
	}
	for _, in := range inner {
		if depth > 0 {
			c.images++
			c.nest(in, least, n, depth-1, fail)
		}
		in.Discard()
	}
}

// liveOn sees whether a recovered Store is good for more than reading.
func (c *crasher) liveOn(s *Store, image *simfs.FS, fail func(string, ...any)) {
	for range 5 {
		commit, err := s.Write(func(w *Writer) error {
			w.Lock(0)
			n, err := w.Create([]byte("after the crash"))
			if err != nil {
				return err
			}
			_, err = n.Insert(make([]byte, 3000))
			return err
		})
		if err := errors.Join(err, commit.Wait()); err != nil {
			fail("write after recovery: %v", err)
		}
	}
	want, err := read(s)
	if err != nil {
		fail("%v", err)
	}
	if err := s.Checkpoint(); err != nil {
		fail("checkpoint after recovery: %v", err)
	}
	if r := s.Check(); len(r.Faults) > 0 {
		fail("check after life after recovery: %q", r.Faults)
	}
	dropped := image.Crash(simfs.Choice{Gen: simfs.DropAll})
	defer dropped.Discard()
	s, err = Open(dropped.Env(2), testDir, c.w.o)
	if err != nil {
		fail("second recovery: %v", err)
		return
	}
	if got, err := read(s); err != nil || got != want {
		fail("second recovery holds another state (%v)", err)
	}
	if r := s.Check(); len(r.Faults) > 0 {
		fail("check after the second recovery: %q", r.Faults)
	}
	if err := s.release(); err != nil {
		fail("%v", err)
	}
}

// TestCrashAtEveryStep goes through everything that a Store does once, and takes crash images before, inside and after every
// single call to the disk on the way: the first open, writes, an index build, checkpoints, drops, cleaning, close, reopen.
func TestCrashAtEveryStep(t *testing.T) {
	r := rand.New(rand.NewPCG(*fromFlag, 6))
	w := newWorld(t, r, simfs.Options{})
	c := &crasher{w: w, r: rand.New(rand.NewPCG(*fromFlag, 7)), share: 1}
	if testing.Short() {
		c.share = 6
	}
	w.watch = c.watch
	id := func() CollID { id, _ := w.pick(); return id }
	insert := func() error { return w.insert(id(), w.m[id()]) }
	clear := func() error {
		for {
			if more, err := w.s.ClearStep(); err != nil || !more {
				return err
			}
		}
	}
	clean := func() error { _, err := w.s.CleanStep(); return err }
	checkpoint := func() error { return w.s.Checkpoint() }
	for i, step := range []func() error{
		w.open, w.create, insert, insert, checkpoint, insert,
		func() error { return w.tree(id(), w.m[id()]) }, // an index and its entries, or the drop of one
		func() error { return w.tree(id(), w.m[id()]) },
		func() error { return w.change(id(), w.m[id()]) },
		func() error { return w.delete(id(), w.m[id()]) },
		checkpoint, clean, insert, clean, checkpoint, w.create,
		func() error {
			drop := id()
			return w.write(func(wr *Writer) error {
				wr.Lock(0)
				return wr.Lock(drop).Drop()
			}, func() { delete(w.m, drop) })
		},
		clear, checkpoint, w.wait,
		func() error { return w.s.Mark() },
		func() error { return w.s.punch(4, 1) },
		insert, insert, w.wait,
		func() error { _, err := w.s.Compact(func() error { return nil }); return err },
		insert, w.wait,
		func() error { return w.s.Close() },
		w.open, insert, w.wait,
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if c.failed != "" {
			t.Fatalf("step %d: %s", i, c.failed)
		}
	}
	c.off = true
	w.sound("at the end")
	if err := errors.Join(w.s.Close(), w.judge.Err()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crash images", c.images)
}

func TestStoreSurvivesCrashes(t *testing.T) {
	total, counts := 0, judge.Counts{}
	seeds(t, func(t *testing.T, r *rand.Rand) {
		w := newWorld(t, r, simfs.Options{})
		c := &crasher{w: w, r: rand.New(rand.NewPCG(r.Uint64(), 2)), share: 2}
		w.watch = c.watch
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		c.share = 12
		for i := range 120 {
			if err := w.step(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if c.failed != "" {
				t.Fatalf("step %d: %s", i, c.failed)
			}
		}
		c.off = true
		w.sound("at the end")
		if err := errors.Join(w.s.Close(), w.judge.Err()); err != nil {
			t.Fatal(err)
		}
		total += c.images
		counts.Add(w.judge.Counts())
	})
	t.Logf("%d crash images, judges: %+v", total, counts)
}
