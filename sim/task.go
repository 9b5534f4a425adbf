package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/multiforadb/multiforadb/engine/env"
)

type taskState int

const (
	runnable taskState = iota
	blocked
	asleep
)

// task is one goroutine of a world. It runs while it holds the token, which comes through its gate.
type task struct {
	id    int
	name  string
	world *World
	gate  chan struct{}
	state taskState
	until time.Duration // asleep
	timer bool          // has not been called yet
	void  bool          // never will be

	on      fmt.Stringer // blocked: what it waits for
	next    *task        // in the list of those who wait for the same
	reading bool         // waits to read
	granted bool         // was let in while it waited

	held      [32]*lock
	heldCount int

	priority int64 // of the policy
	delay    int   // steps that the policy lets it wait
	turns    int   // how often the policy was asked who goes on after it
	given    int   // where its next switch is, of those that are given
}

func (t *task) String() string { return fmt.Sprintf("%s#%d", t.name, t.id) }

// spawn makes a runnable task. It does not run before it gets the token.
//
//go:norace
func (w *World) spawn(name string, f func()) *task {
	t := &task{id: w.spawned, name: name, world: w, gate: make(chan struct{}, 1)}
	w.spawned++
	if w.count == len(w.tasks) {
		more := make([]*task, 2*w.count+8)
		for i := 0; i < w.count; i++ {
			more[i] = w.tasks[i]
		}
		w.tasks, w.cand = more, make([]*task, len(more))
	}
	w.tasks[w.count] = t
	w.count++
	w.plan.made(t)
	go w.live(t, f)
	return t
}

// live is the goroutine of t.
func (w *World) live(t *task, f func()) {
	raceDisable()
	<-t.gate
	raceEnable()
	if t.isVoid() {
		return
	}
	returned := false
	defer func() {
		// recover answers nil for a Goexit.
		r := recover()
		var stack []byte
		if r != nil {
			stack = debug.Stack()
		}
		w.exit(t, returned, r, stack)
	}()
	if !t.begin() {
		runtime.Goexit()
	}
	f()
	returned = true
}

//go:norace
func (t *task) isVoid() bool { return t.void }

// begin reports whether the world is still there for t.
//
//go:norace
func (t *task) begin() bool {
	t.timer = false
	return !t.world.dying
}

// exit takes t off the world and passes the token on: to the next task, or in a dying world to one that has still to leave.
//
//go:norace
func (w *World) exit(t *task, returned bool, r any, stack []byte) {
	if !w.dying {
		switch {
		case r != nil:
			w.fail(fmt.Errorf("%s panicked: %v\n%s", t, r, stack), false)
		case !returned:
			w.fail(fmt.Errorf("%s left by runtime.Goexit; a test failed in it, perhaps", t), false)
		case t.heldCount > 0:
			w.fail(fmt.Errorf("%s ended and holds %s", t, t.held[t.heldCount-1]), false)
		case t.id == 0:
			w.dying = true
			w.noteLeft(t)
		}
	}
	w.remove(t)
	var next *task
	if !w.dying {
		if n := w.candidates(&task{state: blocked}); n > 0 {
			next = w.pick(nil, n)
		} else {
			w.fail(fmt.Errorf("deadlock%s", w.waits()), true)
		}
	}
	raceRelease(unsafe.Pointer(w)) // Run reads what the tasks leave
	if w.dying {
		if w.count == 0 {
			close(w.done)
			return
		}
		next = w.tasks[0]
	}
	w.running = next
	raceDisable()
	next.gate <- struct{}{}
	raceEnable()
}

// noteLeft remembers who is still there when the first task returns.
//
//go:norace
func (w *World) noteLeft(first *task) {
	left := make([]string, w.count)
	n := 0
	for i := 0; i < w.count; i++ {
		if t := w.tasks[i]; t != first {
			left[n] = t.waiting()
			n++
		}
	}
	w.left = left[:n]
}

//go:norace
func (w *World) remove(t *task) {
	n := 0
	for i := 0; i < w.count; i++ {
		if w.tasks[i] != t {
			w.tasks[n] = w.tasks[i]
			n++
		}
	}
	if n < w.count {
		w.tasks[n] = nil
	}
	w.count = n
}

// stop ends a timer that has not been called: its goroutine leaves. The caller keeps the token.
//
//go:norace
func (t *task) stop() bool {
	w := t.world
	if w.dying || !t.timer {
		return false
	}
	// Its goroutine returns at once, and has no part in the world any more.
	t.timer, t.void = false, true
	w.remove(t)
	raceDisable()
	t.gate <- struct{}{}
	raceEnable()
	return true
}

// waiting says what t does.
//
//go:norace
func (t *task) waiting() string {
	s := t.String()
	switch {
	case t.timer:
		s = fmt.Sprintf("%s is due at %v", s, t.until)
	case t.state == asleep:
		s = fmt.Sprintf("%s sleeps until %v", s, t.until)
	case t.state == runnable:
		s += " can run"
	default:
		s = fmt.Sprintf("%s waits for %s", s, t.on)
	}
	for i := 0; i < t.heldCount; i++ {
		s += fmt.Sprintf(", holds %s", t.held[i])
	}
	return s
}

// block gives the token away until someone makes t runnable.
//
//go:norace
func (t *task) block(on fmt.Stringer) {
	t.state, t.on = blocked, on
	t.world.schedule(t)
	t.on = nil
}

// checkRank fails the world if t must not take l now.
//
//go:norace
func (t *task) checkRank(l *lock) {
	for i := 0; i < t.heldCount; i++ {
		h := t.held[i]
		switch {
		case h == l:
			t.world.fail(fmt.Errorf("%s takes %s, which it holds", t, l), true)
		case h.rank == env.RankNone || l.rank == env.RankNone || l.rank > h.rank:
			continue
		case l.rank == env.RankCollection && h.rank == l.rank && l.order > h.order:
			continue
		default:
			t.world.fail(fmt.Errorf("%s takes %s (rank %d, order %d) while it holds %s (rank %d, order %d)\n%s",
				t, l, l.rank, l.order, h, h.rank, h.order, shorten(debug.Stack())), false)
		}
		t.world.leave()
	}
}

//go:norace
func (t *task) hold(l *lock) {
	if t.heldCount == len(t.held) {
		panic(fmt.Sprintf("sim: %s holds %d locks", t, t.heldCount))
	}
	t.held[t.heldCount] = l
	t.heldCount++
}

// release forgets that t holds l, and reports whether it did.
//
//go:norace
func (t *task) release(l *lock) bool {
	for i := t.heldCount - 1; i >= 0; i-- {
		if t.held[i] != l {
			continue
		}
		for ; i+1 < t.heldCount; i++ {
			t.held[i] = t.held[i+1]
		}
		t.heldCount--
		t.held[t.heldCount] = nil
		return true
	}
	return false
}
