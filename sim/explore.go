package sim

import "fmt"

// Bounds limit an exploration.
type Bounds struct {
	// Preemptions is how often in a run a task that could go on may be made to wait. Most bugs need one or two. Negative is
	// no limit.
	Preemptions int
	// Runs is how many runs are made at most; 0 is a hundred thousand.
	Runs int
}

// Explored is what an exploration found.
type Explored struct {
	Runs     int
	Complete bool    // everything within the bound on preemptions was run
	Failure  *Result // the first run that failed: its Schedule replays it
	Err      error   // what was wrong with it
}

// Explore runs main under every schedule and every outcome of [World.Choose], depth first, within the bounds, until judge
// or the world itself finds fault with one. Each run gets a world of its own, on a copy of opt.FS if that is set.
//
// The number of schedules grows with the number of points to the power of the preemptions: keep the program small, or
// name the points that matter in Options.Decide.
func Explore(opt Options, b Bounds, main func(w *World), judge func(Result) error) (e Explored) {
	if b.Runs == 0 {
		b.Runs = 100_000
	}
	disk := opt.FS
	var given []int
	for e.Runs < b.Runs {
		if disk != nil {
			opt.FS = disk.Kill()
		}
		p := &path{given: given, exploring: true, bound: b.Preemptions}
		r := run(opt, p, main)
		e.Runs++
		if e.Err = r.Err; e.Err == nil && judge != nil {
			e.Err = judge(r)
		}
		r.FS.Discard()
		if e.Err != nil {
			e.Err = fmt.Errorf("%w\nschedule: %v", e.Err, r.Schedule)
			e.Failure = &r
			return e
		}
		last := p.n - 1
		for last >= 0 && p.made[last]+1 >= p.options[last] {
			last--
		}
		if last < 0 {
			e.Complete = true
			return e
		}
		given = append(given[:0:0], p.made[:last+1]...)
		given[last]++
	}
	return e
}

// path is the decisions of one run: those that were given, and all that were made.
type path struct {
	given     []int
	made      []int
	options   []int // how many there were to choose from
	n         int   // made so far
	exploring bool
	bound     int // preemptions
	used      int
}

// active reports whether p decides, and not a policy.
//
//go:norace
func (p *path) active() bool { return p.exploring || p.given != nil }

// next is the given decision among n, or the first.
//
//go:norace
func (p *path) next(n int) int {
	i := 0
	if p.n < len(p.given) {
		i = min(p.given[p.n], n-1)
	}
	p.record(i, n)
	return i
}

// nextTask is next for the pick of a task, of which the first is running if that is so.
//
//go:norace
func (p *path) nextTask(n int, running bool) int {
	if p.exploring && running && p.bound >= 0 && p.used >= p.bound {
		n = 1
	}
	i := p.next(n)
	if running && i > 0 {
		p.used++
	}
	return i
}

// note remembers what a policy decided.
//
//go:norace
func (p *path) note(i int) int {
	p.record(i, 0)
	return i
}

//go:norace
func (p *path) record(i, n int) {
	if p.n == len(p.made) {
		made, options := make([]int, 2*p.n+64), make([]int, 2*p.n+64)
		for j := 0; j < p.n; j++ {
			made[j], options[j] = p.made[j], p.options[j]
		}
		p.made, p.options = made, options
	}
	p.made[p.n], p.options[p.n] = i, n
	p.n++
}

// taken is the decisions that were made.
//
//go:norace
func (p *path) taken() []int {
	taken := make([]int, p.n)
	for i := range taken {
		taken[i] = p.made[i]
	}
	return taken
}
