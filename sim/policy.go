package sim

import "fmt"

// Policy is how the next task is picked.
type Policy int

const (
	// Uniform picks any runnable task at every point.
	Uniform Policy = iota
	// PCT gives tasks random priorities and runs the highest, but for two to four points at which the running one falls to
	// the bottom. It finds a bug that needs few switches with a probability that can be proved (Burckhardt et al., 2010).
	PCT
	// RoundRobin lets each run for a few steps in turn, and now and then leaves one out for a hundred.
	RoundRobin
	// Starve hardly ever lets one of them run, as long as another can.
	Starve
)

// PolicyOf picks a policy by seed.
func PolicyOf(seed uint64) Policy { return Policy(mix(seed+0x9E3779B97F4A7C15) % 4) }

func (p Policy) String() string {
	switch p {
	case Uniform:
		return "uniform"
	case PCT:
		return "PCT"
	case RoundRobin:
		return "round robin"
	case Starve:
		return "starve one"
	}
	return fmt.Sprintf("policy %d", int(p))
}

// plan is a policy at work.
type plan struct {
	policy Policy
	dice   *dice

	changes [4]int // PCT: the steps at which the running task falls
	lowest  int64
	run     int // for how many picks in a row the running task was it
	left    int // RoundRobin: of the turn
	victim  int // Starve: a task's number
}

// pctRun is after how many picks in a row PCT takes a task for one that waits by spinning.
const pctRun = 1000

//go:norace
func (p *plan) init(policy Policy, dice *dice, steps int) {
	p.policy, p.dice = policy, dice
	n := int(2 + dice.below(3))
	for i := range p.changes {
		// How long the run will be is not known: any order of magnitude is as likely.
		if p.changes[i] = -1; i < n {
			p.changes[i] = int(dice.below(min(uint64(8)<<dice.below(13), uint64(steps))))
		}
	}
	p.victim = int(dice.below(8))
}

//go:norace
func (p *plan) made(t *task) { t.priority = int64(p.dice.next() >> 1) }

// pick chooses among the first n candidates. t is the running task, or nil if it is gone; it is the first candidate if it
// can run.
//
//go:norace
func (w *World) pick(t *task, n int) *task {
	from := w.running // t, or the one that is gone
	from.turns++
	if n == 1 {
		return w.cand[0]
	}
	running := w.cand[0] == t
	if w.path.active() {
		return w.noteSwitch(from, w.cand[w.path.nextTask(n, running)])
	}
	if w.opt.Switches != nil {
		return w.noteSwitch(from, w.switchOf(from, n))
	}
	var i int
	switch w.plan.policy {
	case PCT:
		i = w.plan.pct(w.cand, n, running, w.steps)
	case RoundRobin:
		i = w.plan.roundRobin(w.cand, n, t, w.steps)
	case Starve:
		i = w.plan.starve(w.cand, n)
	default:
		i = int(w.dice.below(uint64(n)))
	}
	return w.noteSwitch(from, w.cand[w.path.note(i)])
}

//go:norace
func (p *plan) pct(cand []*task, n int, running bool, step int) int {
	if running {
		fall := p.run > pctRun
		for _, at := range p.changes {
			fall = fall || at == step
		}
		if fall {
			p.lowest--
			cand[0].priority = p.lowest
		}
	}
	best := 0
	for i := 1; i < n; i++ {
		if cand[i].priority > cand[best].priority {
			best = i
		}
	}
	p.run++
	if !running || best != 0 {
		p.run = 0
	}
	return best
}

//go:norace
func (p *plan) roundRobin(cand []*task, n int, t *task, step int) int {
	if cand[0] == t && p.left > 0 {
		p.left--
		return 0
	}
	p.left = int(p.dice.below(8))
	last := -1
	if t != nil {
		last = t.id
		if p.dice.below(4) == 0 {
			t.delay = step + int(p.dice.below(100))
		}
	}
	// The next number above the last one's, or the smallest.
	best := -1
	for i := 0; i < n; i++ {
		if cand[i].delay > step {
			continue
		}
		if best < 0 || distance(last, cand[i].id) < distance(last, cand[best].id) {
			best = i
		}
	}
	return max(best, 0)
}

// distance is how far it is from one task's number up to another's, around the end.
//
//go:norace
func distance(from, to int) uint { return uint(to - from - 1) }

//go:norace
func (p *plan) starve(cand []*task, n int) int {
	i := int(p.dice.below(uint64(n)))
	if cand[i].id == p.victim && p.dice.below(256) != 0 {
		i = (i + 1) % n
	}
	return i
}
