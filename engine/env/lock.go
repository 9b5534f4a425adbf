package env

import "sync"

// Rank orders locks: a task may take a lock only if its rank is above the ranks of all locks that it holds. Two locks
// of one rank are never held together, save those of RankCollection, which are taken in the order of collection ids.
// A simulation asserts it; production pays nothing.
type Rank int

// The engine's lock order, outermost first.
const (
	RankNone       Rank = iota // not checked: locks that never nest
	RankAdmin                  // one at a time: open, close, checkpoint
	RankCollection             // by collection id; the catalog is collection 0
	RankGate                   // the commit gate
	RankPipeline               // leadership, the queue of batches
	RankSnapshots              // the chain of snapshots
	RankAlloc                  // page ids
	RankFrames                 // frames and their pool
	RankLog                    // the log's own state
	RankLeaf                   // innermost: statistics, caches
)

// Scheduler is what a simulation supplies in place of the runtime's scheduler and sync's primitives. All its methods are
// called by the running task.
type Scheduler interface {
	Go(name string, f func())
	// Yield is a point where another task may go on.
	Yield(point string)
	// NewMutex makes a lock. Locks of one rank may be held together only in ascending order.
	NewMutex(rank Rank, order uint64, name string) Locker
	NewRWMutex(rank Rank, name string) RWLocker
	NewCond(l Locker, name string) Waiter
	NewWaitGroup(name string) Group
}

// Locker is a mutual exclusion lock of a Scheduler.
type Locker interface {
	Lock()
	TryLock() bool
	Unlock()
}

// RWLocker is a reader/writer lock of a Scheduler. A waiting writer keeps new readers out.
type RWLocker interface {
	Locker
	RLock()
	RUnlock()
}

// Waiter is a condition variable of a Scheduler.
type Waiter interface {
	Wait()
	Signal()
	Broadcast()
}

// Group is a wait group of a Scheduler.
type Group interface {
	Add(n int)
	Wait()
}

// noCopy lets go vet see copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Mutex is sync.Mutex in production.
type Mutex struct {
	_   noCopy
	mu  sync.Mutex
	sim Locker
}

// Init makes m ready. name appears in the simulation's reports.
func (m *Mutex) Init(e *Env, rank Rank, name string) {
	if e.Sched != nil {
		m.sim = e.Sched.NewMutex(rank, 0, name)
	}
}

// InitOrdered is Init for one of several locks of one rank, which are taken in ascending order.
func (m *Mutex) InitOrdered(e *Env, rank Rank, name string, order uint64) {
	if e.Sched != nil {
		m.sim = e.Sched.NewMutex(rank, order, name)
	}
}

func (m *Mutex) Lock() {
	if m.sim == nil {
		m.mu.Lock()
		return
	}
	m.sim.Lock()
}

func (m *Mutex) TryLock() bool {
	if m.sim == nil {
		return m.mu.TryLock()
	}
	return m.sim.TryLock()
}

func (m *Mutex) Unlock() {
	if m.sim == nil {
		m.mu.Unlock()
		return
	}
	m.sim.Unlock()
}

// RWMutex is sync.RWMutex in production.
type RWMutex struct {
	_   noCopy
	mu  sync.RWMutex
	sim RWLocker
}

// Init makes m ready.
func (m *RWMutex) Init(e *Env, rank Rank, name string) {
	if e.Sched != nil {
		m.sim = e.Sched.NewRWMutex(rank, name)
	}
}

func (m *RWMutex) Lock() {
	if m.sim == nil {
		m.mu.Lock()
		return
	}
	m.sim.Lock()
}

func (m *RWMutex) Unlock() {
	if m.sim == nil {
		m.mu.Unlock()
		return
	}
	m.sim.Unlock()
}

func (m *RWMutex) RLock() {
	if m.sim == nil {
		m.mu.RLock()
		return
	}
	m.sim.RLock()
}

func (m *RWMutex) RUnlock() {
	if m.sim == nil {
		m.mu.RUnlock()
		return
	}
	m.sim.RUnlock()
}

// Cond is sync.Cond in production. A wait with a bound is a Wait that a [Clock.AfterFunc] ends by Broadcast.
type Cond struct {
	_   noCopy
	c   sync.Cond
	sim Waiter
}

// Init makes c ready; m is held around Wait.
func (c *Cond) Init(e *Env, m *Mutex, name string) {
	c.c.L = &m.mu
	if e.Sched != nil {
		c.sim = e.Sched.NewCond(m.sim, name)
	}
}

func (c *Cond) Wait() {
	if c.sim == nil {
		c.c.Wait()
		return
	}
	c.sim.Wait()
}

func (c *Cond) Signal() {
	if c.sim == nil {
		c.c.Signal()
		return
	}
	c.sim.Signal()
}

func (c *Cond) Broadcast() {
	if c.sim == nil {
		c.c.Broadcast()
		return
	}
	c.sim.Broadcast()
}

// WaitGroup is sync.WaitGroup in production.
type WaitGroup struct {
	_   noCopy
	wg  sync.WaitGroup
	sim Group
}

// Init makes w ready.
func (w *WaitGroup) Init(e *Env, name string) {
	if e.Sched != nil {
		w.sim = e.Sched.NewWaitGroup(name)
	}
}

func (w *WaitGroup) Add(n int) {
	if w.sim == nil {
		w.wg.Add(n)
		return
	}
	w.sim.Add(n)
}

func (w *WaitGroup) Done() { w.Add(-1) }

func (w *WaitGroup) Wait() {
	if w.sim == nil {
		w.wg.Wait()
		return
	}
	w.sim.Wait()
}
