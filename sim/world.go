// Package sim runs concurrent programs under a scheduler that lets one task run at a time and picks the next by seed: the
// same seed gives the same run, always, down to the hash of its trace.
//
// A [World] is an [env.Env] whose locks, clock, random numbers and goroutines are simulated and whose files are a
// [simfs.FS]. [Run] runs a program in it. At every lock, unlock, wait, wake, file call, sleep, Go, Yield and Point a
// [Policy] decides who goes on; [Explore] tries all decisions instead. Time stands still but for a tick a step, and jumps
// to the next timer when nobody can run. When nobody can run and no timer is left, the world reports who waits for whom.
//
// # The end of a world
//
// A world ends when its first task returns, a task fails, the step budget is used up, or it is stopped: the tasks that
// are left are abandoned. Each is woken once more and leaves by [runtime.Goexit] from the call in which it waited, so that
// it cannot be caught by a recover, and its goroutine is gone when Run returns. Deferred calls run, but find a dead world:
// Unlock, Signal, Done do nothing, all else leaves at once, before it has any effect. So a disk stays as it was.
//
// # Rules
//
// Tasks block in calls of the Env only. A task must not wait for a channel or a real lock that another task holds: the
// token would never come back. Run may be called from within a task: a hook of the disk may so open a crash image in a
// world of its own.
//
// The race detector sees what the program's own (simulated) locks synchronise, not the scheduler's hand-off: what tasks
// share without a lock is reported, though they never ran at once. (Calls of the disk do synchronise.) This is why the
// functions here that touch shared state are marked norace, and use neither maps, nor append, nor closures. What a test's own
// hooks and judges share needs a lock too: a [sync.Mutex] that is held across no call of the Env.
package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// Options say how a world runs. The zero value is a world with an empty disk and the uniform policy.
type Options struct {
	Seed   uint64
	Policy Policy
	Steps  int           // how many may be made; 0 is a million
	StopAt int           // the world is abandoned at this step, as by a power cut; 0 is never
	Tick   time.Duration // that a step takes; 0 is a microsecond

	FS   *simfs.FS     // the disk; nil is a new one, of the kind that Disk says
	Disk simfs.Options // for a new disk

	// WriteBack is how likely, at a step, the kernel writes half of the dirty pages out by itself.
	WriteBack float64

	// Buggify answers the Env's question of that name; nil is no.
	Buggify func(name string) bool
	// Schedule is replayed, as [Explore] prints it, instead of following the policy.
	Schedule []int
	// Switches are followed instead of the policy, if they are not nil: elsewhere the plainest decision is made.
	Switches []Switch
	// Trace is told of every step, before it is made. It must not call the world.
	Trace func(Step)
	// Decide says at which points the policy is asked; elsewhere the running task goes on. nil is everywhere. What blocks
	// always gives way.
	Decide func(point string) bool
}

// Result is how a run ended.
type Result struct {
	Seed    uint64
	Steps   int
	Hash    uint64    // of all steps: who, and where
	Err     error     // a deadlock, a panic, a rank violated, the budget used up; nil if all is well
	Stopped bool      // by Stop or StopAt
	Left    []string  // the tasks that the first one left behind when it returned
	FS      *simfs.FS // free for use again: crash it, run another world on it; Discard it if anything mapped its files
	// Schedule is every decision that was made, for a replay.
	Schedule []int
	// Switches say the schedule too, in a form of which parts can be left out.
	Switches []Switch
}

// World is one simulated machine. Its methods are for its own tasks.
type World struct {
	opt     Options
	env     env.Env
	fs      *simfs.FS
	tasks   []*task // the live ones, in the order of their making
	count   int     // how many there are in tasks
	spawned int

	running *task
	cand    []*task
	now     time.Duration
	jump    time.Duration
	steps   int
	hash    uint64
	trace   [48]traced
	dice    dice // of the policy
	random  dice // of the program
	kernel  dice // of the write-back
	plan    plan
	path    *path

	switches    []Switch // given, by task and turn
	made        []Switch
	switchCount int // how many there are in made

	dying   bool
	over    bool
	stopped bool
	report  bool // the dying leave their stacks
	err     error
	stacks  []byte
	left    []string
	done    chan struct{}
}

type traced struct {
	task  *task
	point string
}

// Run runs main as the first task of a world, and returns when all its tasks are gone.
func Run(opt Options, main func(w *World)) Result {
	return run(opt, nil, main)
}

func run(opt Options, decided *path, main func(w *World)) Result {
	if opt.Steps == 0 {
		opt.Steps = 1_000_000
	}
	if opt.Tick == 0 {
		opt.Tick = time.Microsecond
	}
	w := &World{opt: opt, fs: opt.FS, done: make(chan struct{}), dice: dice{opt.Seed}, random: dice{opt.Seed ^ 0xC0FFEE},
		kernel: dice{opt.Seed ^ 0xF1005}}
	if w.fs == nil {
		w.fs = simfs.New(opt.Disk)
	}
	if w.path = decided; decided == nil {
		w.path = &path{given: opt.Schedule}
	}
	w.switches = follow(opt.Switches)
	w.plan.init(opt.Policy, &w.dice, opt.Steps)
	w.env = env.Env{FS: w.fs, Clock: clock{w}, Rand: worldRand{w}, Sched: w, Buggify: opt.Buggify}
	w.fs.SetYield(w.Yield, w.caller)
	first := w.spawn("main", func() { main(w) })
	w.running = first
	raceDisable()
	first.gate <- struct{}{}
	raceEnable()
	<-w.done
	raceAcquire(unsafe.Pointer(w))
	w.fs.SetYield(nil, nil)
	w.over = true
	if w.err != nil {
		w.err = fmt.Errorf("sim: seed %d, %v, step %d: %w\nlast steps:\n%s%s", opt.Seed, opt.Policy, w.steps, w.err,
			w.lastSteps(), w.stacks)
	}
	return Result{Seed: opt.Seed, Steps: w.steps, Hash: w.hash, Err: w.err, Stopped: w.stopped, Left: w.left, FS: w.fs,
		Schedule: w.path.taken(), Switches: slices.Clone(w.made[:w.switchCount])}
}

// Env is the environment of the world's programs.
func (w *World) Env() *env.Env { return &w.env }

// FS is the world's disk.
func (w *World) FS() *simfs.FS { return w.fs }

// Steps is how many have been made.
//
//go:norace
func (w *World) Steps() int { return w.steps }

// Task names the task that runs.
//
//go:norace
func (w *World) Task() string {
	if w.running == nil {
		return ""
	}
	return w.running.String()
}

// Stop abandons the world: it does not return.
func (w *World) Stop() {
	w.halt()
	w.leave()
}

//go:norace
func (w *World) halt() { w.stopped, w.dying = true, true }

// Fail ends the world with an error: it does not return.
func (w *World) Fail(err error) {
	w.fail(err, false)
	w.leave()
}

// Parallel runs each f as a task and waits for all of them.
func (w *World) Parallel(name string, fs ...func()) {
	var wg env.WaitGroup
	wg.Init(&w.env, name)
	wg.Add(len(fs))
	for i, f := range fs {
		w.Go(fmt.Sprint(name, i), func() {
			defer wg.Done()
			f()
		})
	}
	wg.Wait()
}

// Choose answers a number below n: by seed, or every one in turn under [Explore].
//
//go:norace
func (w *World) Choose(n int) int {
	if w.path.active() {
		return w.path.next(n)
	}
	return w.path.note(int(w.dice.below(uint64(n))))
}

// Jump sets the wall clock forward or back. Monotonic time goes on.
//
//go:norace
func (w *World) Jump(d time.Duration) { w.jump += d }

// Go starts a task. It is what [env.Env.Go] calls.
//
//go:norace
func (w *World) Go(name string, f func()) {
	if w.dying {
		w.leave()
	}
	w.spawn(name, f)
	w.Yield("go")
}

// Yield is a point where another task may go on. It is what [env.Env.Yield] and [env.Env.Point] call.
//
//go:norace
func (w *World) Yield(point string) {
	t := w.enter(point)
	if p := w.opt.WriteBack; p > 0 && float64(w.kernel.next()>>11) < p*(1<<53) {
		w.fs.WriteBack(w.kernel.next(), 0.5)
	}
	if w.opt.Decide == nil || w.opt.Decide(point) {
		w.schedule(t)
	}
}

//go:norace
func (w *World) caller() string {
	if w.running == nil {
		return ""
	}
	return w.running.name
}

// enter makes a step of the running task.
//
//go:norace
func (w *World) enter(point string) *task {
	t := w.running
	if w.dying {
		w.leave()
	}
	w.trace[w.steps%len(w.trace)] = traced{t, point}
	w.steps++
	w.now += w.opt.Tick
	if w.opt.Trace != nil {
		w.opt.Trace(Step{N: w.steps, Task: t.String(), Point: point})
	}
	h := w.hash ^ uint64(t.id+1)
	for i := 0; i < len(point); i++ {
		h = (h ^ uint64(point[i])) * 0x100000001B3
	}
	w.hash = mix(h)
	if w.steps == w.opt.StopAt {
		w.halt()
		w.leave()
	}
	if w.steps >= w.opt.Steps {
		w.fail(fmt.Errorf("no end in sight%s", w.waits()), true)
		w.leave()
	}
	w.wake(w.now)
	return t
}

// wake makes the sleepers runnable whose time has come.
//
//go:norace
func (w *World) wake(now time.Duration) {
	for i := 0; i < w.count; i++ {
		if t := w.tasks[i]; t.state == asleep && t.until <= now {
			t.state = runnable
		}
	}
}

// schedule gives the token to whom the policy picks, and returns when the running task has it again. That task may have
// blocked before.
//
//go:norace
func (w *World) schedule(t *task) {
	n := w.candidates(t)
	if n == 0 {
		w.fail(fmt.Errorf("deadlock%s", w.waits()), true)
		w.leave()
	}
	if next := w.pick(t, n); next != t {
		w.running = next
		raceDisable()
		next.gate <- struct{}{}
		<-t.gate
		raceEnable()
	}
	if w.dying {
		w.leaveStack(t)
		w.leave()
	}
}

// candidates collects who can run, the running task first, and lets time pass if there is nobody.
//
//go:norace
func (w *World) candidates(t *task) (n int) {
	for {
		if t.state == runnable {
			w.cand[0], n = t, 1
		}
		for i := 0; i < w.count; i++ {
			if o := w.tasks[i]; o != t && o.state == runnable {
				w.cand[n] = o
				n++
			}
		}
		if n > 0 || !w.passTime() {
			return n
		}
	}
}

// passTime goes to the next timer.
//
//go:norace
func (w *World) passTime() bool {
	var first *task
	for i := 0; i < w.count; i++ {
		if t := w.tasks[i]; t.state == asleep && (first == nil || t.until < first.until) {
			first = t
		}
	}
	if first == nil {
		return false
	}
	w.now = max(w.now, first.until)
	w.wake(w.now)
	return true
}

// fail ends the world with an error; the first one counts.
//
//go:norace
func (w *World) fail(err error, report bool) {
	if w.err == nil && !w.dying {
		w.err, w.report = err, report
	}
	w.dying = true
}

// leave ends the calling task, whose world is dying.
//
//go:norace
func (w *World) leave() {
	if w.over {
		panic("sim: a call in a world that has ended")
	}
	runtime.Goexit()
}

//go:norace
func (w *World) leaveStack(t *task) {
	if w.report {
		raceAcquire(unsafe.Pointer(w))
		w.stacks = fmt.Appendf(w.stacks, "\n%s:\n%s", t, shorten(debug.Stack()))
	}
}

// waits tells of every task what it waits for.
//
//go:norace
func (w *World) waits() string {
	var b strings.Builder
	for i := 0; i < w.count; i++ {
		fmt.Fprintf(&b, "\n  %s", w.tasks[i].waiting())
	}
	return b.String()
}

//go:norace
func (w *World) lastSteps() string {
	var b strings.Builder
	for i := max(0, w.steps-len(w.trace)); i < w.steps; i++ {
		s := w.trace[i%len(w.trace)]
		fmt.Fprintf(&b, "  %d %s: %s\n", i+1, s.task, s.point)
	}
	return b.String()
}

// shorten leaves out of a stack what every stack here begins with.
func shorten(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		if !strings.Contains(lines[i], "/sim.(*") && !strings.Contains(lines[i], "runtime/debug.Stack") {
			return strings.Join(lines[i:], "\n")
		}
	}
	return string(stack)
}

// clock is the world's.
type clock struct{ w *World }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

//go:norace
func (c clock) Now() time.Time { return epoch.Add(c.w.now + c.w.jump) }

//go:norace
func (c clock) Monotonic() time.Duration { return c.w.now }

//go:norace
func (c clock) Sleep(d time.Duration) {
	t := c.w.enter("sleep")
	t.state, t.until = asleep, c.w.now+max(d, 0)
	c.w.schedule(t)
}

// AfterFunc makes the task at once, asleep: what came before this call happens before f, and nothing else does.
//
//go:norace
func (c clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if c.w.dying {
		c.w.leave()
	}
	t := c.w.spawn("timer", f)
	t.state, t.until, t.timer = asleep, c.w.now+max(d, 0), true
	return t.stop
}

// worldRand is the program's source of random bits.
type worldRand struct{ w *World }

//go:norace
func (r worldRand) Uint64() uint64 { return r.w.random.next() }

// dice is splitmix64.
type dice struct{ state uint64 }

//go:norace
func (d *dice) next() uint64 {
	d.state += 0x9E3779B97F4A7C15
	return mix(d.state)
}

//go:norace
func (d *dice) below(n uint64) uint64 { return d.next() % n }

//go:norace
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
