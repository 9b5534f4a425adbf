// Package env is the one door between the engine and the outside: files, mappings, time, randomness, goroutines and
// locks. Nothing else below engine/ starts a goroutine, selects, sleeps, reads a clock or a global random source.
//
// In production every call is the real thing behind a nil check, so the tested binary is the shipped binary. In a
// simulation [Env.FS] is a simulated disk, [Env.Clock] a simulated clock, and [Env.Sched] a scheduler that lets one task
// run at a time and picks the next by seed.
//
// What always holds: a primitive (Mutex, RWMutex, Cond, WaitGroup) is made ready by its Init with an Env before its first
// use, and never copied after it. A goroutine is started by [Env.Go] only.
package env

import (
	"runtime"
	"time"
)

// Env carries everything nondeterministic that the engine may touch. The zero value is unusable; see [Real].
type Env struct {
	FS    FS
	Clock Clock
	Rand  Rand

	// Sched is nil in production. When set, locks, waits, Go and Yield are its business.
	Sched Scheduler

	// Buggify is nil in production. A simulation answers true, by seed, to turn on the rare path that name names
	// (tiny sizes, early checkpoints); see [Env.Buggy].
	Buggify func(name string) bool
}

// Rand is a source of random bits. It is safe for concurrent use.
type Rand interface {
	Uint64() uint64
}

// Clock tells and waits for time.
type Clock interface {
	// Now is the wall time. It may jump and go back: nothing that decides about durability may depend on it.
	Now() time.Time
	// Monotonic is the time since the clock was made. It never goes back.
	Monotonic() time.Duration
	Sleep(d time.Duration)
	// AfterFunc calls f in a goroutine of its own once d has passed, unless the returned stop is called before. stop
	// reports whether it prevented the call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Buggy reports whether a simulation wants the rare path called name. It is false in production.
func (e *Env) Buggy(name string) bool { return e.Buggify != nil && e.Buggify(name) }

// Go runs f in a new goroutine (a new task in a simulation). A panic in f is not recovered here.
func (e *Env) Go(name string, f func()) {
	if e.Sched == nil {
		go f()
		return
	}
	e.Sched.Go(name, f)
}

// Yield is a point where another task may go on. In production it gives the processor away, so it is for long loops and
// not for every step; see [Env.Point].
func (e *Env) Yield(point string) {
	if e.Sched == nil {
		runtime.Gosched()
		return
	}
	e.Sched.Yield(point)
}

// Point is a place where a simulation may switch tasks or crash. In production it is nothing.
func (e *Env) Point(name string) {
	if e.Sched != nil {
		e.Sched.Yield(name)
	}
}
