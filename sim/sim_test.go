package sim

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// busy is a program that uses everything: locks of all kinds, files, timers, random numbers.
func busy(w *World) {
	e := w.Env()
	var mu env.Mutex
	var rw env.RWMutex
	var cond env.Cond
	mu.Init(e, env.RankLog, "mu")
	rw.Init(e, env.RankGate, "rw")
	cond.Init(e, &mu, "items")
	f, err := e.FS.Open("f", env.OpenCreate)
	if err != nil {
		w.Fail(err)
	}
	items, shared := 0, 0
	var tasks []func()
	for i := range 3 {
		tasks = append(tasks, func() {
			for range 5 {
				rw.Lock()
				before := shared
				e.Point("between")
				shared = before + 1
				rw.Unlock()
				mu.Lock()
				items++
				mu.Unlock()
				cond.Signal()
				if _, err := f.WriteAt([]byte{byte(i)}, int64(e.Rand.Uint64()%100)); err != nil {
					w.Fail(err)
				}
				e.Clock.Sleep(time.Duration(i) * time.Millisecond)
			}
		}, func() {
			for range 5 {
				mu.Lock()
				for items == 0 {
					cond.Wait()
				}
				items--
				mu.Unlock()
				rw.RLock()
				before := shared
				e.Yield("reading")
				if shared != before {
					w.Fail(errors.New("a writer wrote under a reader"))
				}
				rw.RUnlock()
			}
			if err := f.Datasync(); err != nil {
				w.Fail(err)
			}
		})
	}
	w.Parallel("worker", tasks...)
	if shared != 15 || items != 0 {
		w.Fail(fmt.Errorf("%d writes, %d items left", shared, items))
	}
}

func TestSameSeedSameRun(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := range uint64(200) {
		opt := Options{Seed: seed, Policy: PolicyOf(seed), WriteBack: float64(seed%3) / 20}
		a, b := Run(opt, busy), Run(opt, busy)
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if a.Hash != b.Hash || a.Steps != b.Steps {
			t.Fatalf("seed %d: %x in %d steps, then %x in %d", seed, a.Hash, a.Steps, b.Hash, b.Steps)
		}
		hashes[a.Hash] = true
		c := Run(Options{Schedule: a.Schedule, Seed: seed, WriteBack: opt.WriteBack}, busy)
		if c.Hash != a.Hash {
			t.Fatalf("seed %d: the schedule replays as %x, not %x", seed, c.Hash, a.Hash)
		}
	}
	if len(hashes) < 190 {
		t.Errorf("200 seeds made %d different runs", len(hashes))
	}
}

// lost increments a counter twice without a lock. (It is atomic for the race detector's sake.)
func lost(w *World, counter *atomic.Int64) {
	add := func() {
		v := counter.Load()
		w.Yield("between")
		counter.Store(v + 1)
	}
	w.Parallel("adder", add, add)
}

func TestEveryPolicyFindsALostUpdate(t *testing.T) {
	for _, p := range []Policy{Uniform, PCT, RoundRobin, Starve} {
		found := 0
		for seed := range uint64(300) {
			var counter atomic.Int64
			if r := Run(Options{Seed: seed, Policy: p}, func(w *World) { lost(w, &counter) }); r.Err != nil {
				t.Fatal(r.Err)
			}
			if counter.Load() == 1 {
				found++
			}
		}
		if found == 0 || found == 300 {
			t.Errorf("%s: %d of 300 seeds lose an update", p, found)
		}
		t.Logf("%s: %d of 300 seeds lose an update", p, found)
	}
}

func TestExploreTriesEverySchedule(t *testing.T) {
	var counter atomic.Int64
	judge := func(r Result) error {
		if n := counter.Load(); n != 2 {
			return fmt.Errorf("the counter is %d", n)
		}
		return nil
	}
	program := func(w *World) { counter.Store(0); lost(w, &counter) }
	e := Explore(Options{}, Bounds{Preemptions: 1}, program, judge)
	if e.Err == nil {
		t.Fatalf("nothing found in %d runs", e.Runs)
	}
	if Run(Options{Schedule: e.Failure.Schedule}, program); counter.Load() != 1 {
		t.Error("the schedule does not replay the failure")
	}
	locked := func(w *World) {
		var mu env.Mutex
		mu.Init(w.Env(), env.RankLeaf, "mu")
		shared := 0
		add := func() {
			mu.Lock()
			v := shared
			w.Yield("between")
			shared = v + 1
			mu.Unlock()
		}
		w.Parallel("adder", add, add)
		counter.Store(int64(shared))
	}
	e = Explore(Options{}, Bounds{Preemptions: -1, Runs: 1_000_000}, locked, judge)
	if e.Err != nil || !e.Complete {
		t.Errorf("with a lock, %d runs, complete %v: %v", e.Runs, e.Complete, e.Err)
	}
	t.Logf("with a lock: %d schedules", e.Runs)
	outcomes := map[[2]int]bool{}
	e = Explore(Options{}, Bounds{}, func(w *World) { outcomes[[2]int{w.Choose(3), w.Choose(2)}] = true }, nil)
	if len(outcomes) != 6 || e.Runs != 6 || !e.Complete {
		t.Errorf("%d of 6 outcomes in %d runs", len(outcomes), e.Runs)
	}
}

func TestWorldsReportWhatIsWrong(t *testing.T) {
	two := func(w *World) (a, b *env.Mutex) {
		a, b = new(env.Mutex), new(env.Mutex)
		a.Init(w.Env(), env.RankNone, "alpha")
		b.Init(w.Env(), env.RankNone, "beta")
		return a, b
	}
	nested := func(first, second func(m *env.Mutex, e *env.Env)) func(w *World) {
		return func(w *World) {
			var a, b env.Mutex
			first(&a, w.Env())
			second(&b, w.Env())
			a.Lock()
			b.Lock()
			w.Yield("nested")
			b.Unlock()
			a.Unlock()
		}
	}
	ranked := func(rank env.Rank, order uint64) func(m *env.Mutex, e *env.Env) {
		return func(m *env.Mutex, e *env.Env) { m.InitOrdered(e, rank, "lock", order) }
	}
	for _, c := range []struct {
		name    string
		program func(w *World)
		want    []string // none: no error
	}{
		{"deadlock", func(w *World) {
			a, b := two(w)
			w.Parallel("task", func() { a.Lock(); w.Yield("y"); b.Lock() }, func() { b.Lock(); w.Yield("y"); a.Lock() })
		}, []string{"deadlock", "task0#1 waits for beta, holds alpha", "task1#2 waits for alpha, holds beta",
			"main#0 waits for the group task", "sim_test.go"}},
		{"livelock", func(w *World) {
			for {
				w.Yield("spin")
			}
		}, []string{"no end in sight", "main#0: spin"}},
		{"panic", func(w *World) { w.Parallel("task", func() { panic("mine") }) }, []string{"task0#1 panicked: mine", "sim_test.go"}},
		{"a failed test", func(w *World) { runtime.Goexit() }, []string{"main#0 left by runtime.Goexit"}},
		{"held at the end", func(w *World) { a, _ := two(w); a.Lock() }, []string{"main#0 ended and holds alpha"}},
		{"taken twice", func(w *World) { a, _ := two(w); a.Lock(); a.Lock() }, []string{"main#0 takes alpha, which it holds"}},
		{"unlocked twice", func(w *World) { a, _ := two(w); a.Lock(); w.Yield("y"); a.Unlock(); a.Unlock() }, []string{"unlock of unlocked alpha"}},
		{"ranks that fall", nested(ranked(env.RankLog, 0), ranked(env.RankGate, 0)),
			[]string{"takes lock (rank 3", "while it holds lock (rank 8"}},
		{"equal ranks", nested(ranked(env.RankLog, 1), ranked(env.RankLog, 2)), []string{"takes lock(2)"}},
		{"collections that fall", nested(ranked(env.RankCollection, 2), ranked(env.RankCollection, 1)), []string{"takes lock(1)"}},
		{"collections that rise", nested(ranked(env.RankCollection, 1), ranked(env.RankCollection, 2)), nil},
		{"ranks that rise", nested(ranked(env.RankCollection, 1), ranked(env.RankGate, 0)), nil},
		{"no rank", nested(ranked(env.RankLeaf, 1), ranked(env.RankNone, 0)), nil},
	} {
		before := runtime.NumGoroutine()
		var err error
		for seed := uint64(0); seed < 50 && err == nil; seed++ {
			err = Run(Options{Seed: seed, Steps: 3000}, c.program).Err
		}
		switch {
		case err == nil && c.want != nil:
			t.Errorf("%s: nothing was reported", c.name)
		case err != nil && c.want == nil:
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing from\n%v", c.name, want, err)
			}
		}
		gone(t, before)
	}
}

// gone waits for goroutines that have nothing to do any more but to return.
func gone(t *testing.T, before int) {
	t.Helper()
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

func TestTimeJumpsToTheNextTimer(t *testing.T) {
	var mu sync.Mutex // real: held across no call of the Env
	var order []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	before := runtime.NumGoroutine()
	r := Run(Options{Policy: RoundRobin}, func(w *World) {
		c := w.Env().Clock
		c.AfterFunc(3*time.Hour, func() { note("three") })
		stop := c.AfterFunc(2*time.Hour, func() { note("never") })
		c.AfterFunc(time.Hour, func() {
			note("one")
			if !stop() || stop() {
				note("not stopped once")
			}
		})
		c.AfterFunc(100*time.Hour, func() { note("too late") })
		w.Jump(-time.Hour)
		wall := c.Now()
		c.Sleep(4 * time.Hour)
		if d := c.Now().Sub(wall); d < 4*time.Hour || d > 4*time.Hour+time.Second || c.Monotonic() < d {
			note(fmt.Sprint("slept ", d))
		}
	})
	if got := strings.Join(order, " "); r.Err != nil || got != "one three" {
		t.Errorf("%s, %v", got, r.Err)
	}
	if len(r.Left) != 1 || !strings.Contains(r.Left[0], "is due at 100h") {
		t.Errorf("left: %v", r.Left)
	}
	gone(t, before)
}

// TestStoppedWorldLeavesNothingBehind stops a program at every step. Deferred calls must neither revive it nor reach the
// disk, and its recover must not catch the end.
func TestStoppedWorldLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	whole := Run(Options{}, recovering)
	if whole.Err != nil {
		t.Fatal(whole.Err)
	}
	for step := 1; step <= whole.Steps; step++ {
		r := Run(Options{StopAt: step}, recovering)
		if r.Err != nil || !r.Stopped || r.Steps != step {
			t.Fatalf("step %d: stopped %v at %d: %v", step, r.Stopped, r.Steps, r.Err)
		}
		again := Run(Options{FS: r.FS.Crash(simfs.Choice{Gen: simfs.DropAll})}, func(w *World) {
			names, err := w.Env().FS.List("/")
			if err != nil || slices.Contains(names, "revived") {
				w.Fail(fmt.Errorf("found %v, %v", names, err))
			}
		})
		if again.Err != nil {
			t.Fatal(again.Err)
		}
	}
	gone(t, before)
}

// recovering writes in three tasks, and does in deferred calls what a dead world must ignore.
func recovering(w *World) {
	e := w.Env()
	var mu env.Mutex
	mu.Init(e, env.RankNone, "mu")
	var going atomic.Int64
	work := func() {
		going.Add(1)
		defer func() {
			recover()
			mu.Lock()
			going.Add(-1)
			mu.Unlock()
			if w.isStopped() {
				e.FS.Open("revived", env.OpenCreate)
			}
		}()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if w.isStopped() {
				e.FS.Open("revived", env.OpenCreate)
			}
		}()
		f, err := e.FS.Open("f", env.OpenCreate)
		if err != nil {
			w.Fail(err)
		}
		defer f.Close()
		for i := range 3 {
			mu.Lock()
			_, err := f.WriteAt([]byte("data"), int64(i))
			mu.Unlock()
			if err == nil {
				err = f.Datasync()
			}
			if err != nil {
				w.Fail(err)
			}
		}
	}
	w.Parallel("worker", work, work, work)
}

//go:norace
func (w *World) isStopped() bool { return w.stopped }

// TestCrashImagesRunInsideTheWorld opens images from a hook while the program goes on.
func TestCrashImagesRunInsideTheWorld(t *testing.T) {
	var images atomic.Int64
	d := simfs.New(simfs.Options{})
	d.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) {
		for _, c := range d.Choices(uint64(e.N), 3) {
			img := d.Crash(c)
			r := Run(Options{FS: img}, func(w *World) {
				images.Add(1)
				if _, err := w.Env().FS.List("/"); err != nil {
					w.Fail(err)
				}
				w.Parallel("task", func() { w.Yield("a") }, func() { w.Yield("b") })
			})
			img.Discard()
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	}})
	r := Run(Options{FS: d}, busy)
	if r.Err != nil || images.Load() < 50 {
		t.Errorf("%d images, %v", images.Load(), r.Err)
	}
	alone := simfs.New(simfs.Options{})
	if again := Run(Options{FS: alone}, busy); again.Hash != r.Hash {
		t.Error("images disturb the run that they are taken from")
	}
}

func TestWritersKeepReadersOut(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	r := Run(Options{Schedule: []int{}}, func(w *World) {
		var rw env.RWMutex
		rw.Init(w.Env(), env.RankNone, "rw")
		rw.RLock()
		w.Go("writer", func() { rw.Lock(); note("writer"); rw.Unlock() })
		w.Env().Clock.Sleep(time.Second)
		w.Go("reader", func() { rw.RLock(); note("reader"); rw.RUnlock() })
		w.Go("second writer", func() { rw.Lock(); note("second writer"); rw.Unlock() })
		w.Env().Clock.Sleep(time.Second)
		note("first reader")
		rw.RUnlock()
		w.Env().Clock.Sleep(time.Second)
	})
	if got := strings.Join(order, ", "); r.Err != nil || got != "first reader, writer, reader, second writer" {
		t.Errorf("%s: %v", got, r.Err)
	}
}

func BenchmarkStep(b *testing.B) {
	for b.Loop() {
		Run(Options{}, func(w *World) {
			spin := func() {
				for range 500 {
					w.Yield("spin")
				}
			}
			w.Parallel("task", spin, spin)
		})
	}
}
