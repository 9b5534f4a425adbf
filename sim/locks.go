package sim

import (
	"fmt"
	"unsafe"

	"github.com/multiforadb/multiforadb/engine/env"
)

// lock is a mutex, or a reader/writer one. As with Go's own, a writer that waits keeps new readers out, and when a writer
// leaves, the readers that waited for it go first. Whoever else waits competes anew each time that the lock is free.
type lock struct {
	world   *World
	name    string
	taking  string // the points' names
	leaving string
	rank    env.Rank
	order   uint64

	owner   *task
	readers int
	writers int // that wait
	queue   queue

	// What the race detector is told: releases by writers and by readers.
	wrote, read byte
}

func (l *lock) String() string { return l.name }

func (w *World) NewMutex(rank env.Rank, order uint64, name string) env.Locker {
	return w.newLock(rank, order, name)
}

func (w *World) NewRWMutex(rank env.Rank, name string) env.RWLocker {
	return w.newLock(rank, 0, name)
}

func (w *World) newLock(rank env.Rank, order uint64, name string) *lock {
	if order != 0 {
		name = fmt.Sprintf("%s(%d)", name, order)
	}
	return &lock{world: w, name: name, taking: "lock " + name, leaving: "unlock " + name, rank: rank, order: order}
}

//go:norace
func (l *lock) Lock() {
	l.world.Yield(l.taking)
	t := l.world.running
	t.checkRank(l)
	l.take(t)
}

// take waits until t has l. It is not a point unless it must wait.
//
//go:norace
func (l *lock) take(t *task) {
	l.writers++
	for l.owner != nil || l.readers > 0 {
		t.reading = false
		l.queue.push(t)
		t.block(l)
	}
	l.writers--
	l.owner = t
	t.hold(l)
	raceAcquire(unsafe.Pointer(&l.wrote))
	raceAcquire(unsafe.Pointer(&l.read))
}

//go:norace
func (l *lock) TryLock() bool {
	l.world.Yield(l.taking)
	if l.owner != nil || l.readers > 0 {
		return false
	}
	l.take(l.world.running)
	return true
}

//go:norace
func (l *lock) Unlock() {
	if l.world.dying {
		return
	}
	l.leave()
	l.world.Yield(l.leaving)
}

// leave frees l. It is not a point.
//
//go:norace
func (l *lock) leave() {
	if l.owner == nil {
		panic(fmt.Sprintf("sim: unlock of unlocked %s", l.name))
	}
	raceRelease(unsafe.Pointer(&l.wrote))
	l.owner.release(l)
	l.owner = nil
	for t := l.queue.drain(); t != nil; {
		next := t.next
		if t.next = nil; t.reading {
			t.granted = true
			l.readers++
		}
		t.state = runnable
		t = next
	}
}

//go:norace
func (l *lock) RLock() {
	l.world.Yield(l.taking)
	t := l.world.running
	t.checkRank(l)
	if l.owner != nil || l.writers > 0 {
		t.reading, t.granted = true, false
		l.queue.push(t)
		for !t.granted {
			t.block(l)
		}
	} else {
		l.readers++
	}
	t.hold(l)
	raceAcquire(unsafe.Pointer(&l.wrote))
}

//go:norace
func (l *lock) RUnlock() {
	w := l.world
	if w.dying {
		return
	}
	if l.readers == 0 {
		panic(fmt.Sprintf("sim: read unlock of unlocked %s", l.name))
	}
	raceRelease(unsafe.Pointer(&l.read))
	l.readers--
	// Another task may unlock what this one locked.
	for i := -1; i < w.count; i++ {
		if i < 0 && w.running.release(l) || i >= 0 && w.tasks[i].release(l) {
			break
		}
	}
	if l.readers == 0 {
		l.wakeWriters()
	}
	w.Yield(l.leaving)
}

// wakeWriters lets the writers compete; readers wait for one of them.
//
//go:norace
func (l *lock) wakeWriters() {
	for t := l.queue.drain(); t != nil; {
		next := t.next
		t.next = nil
		if t.reading {
			l.queue.push(t)
		} else {
			t.state = runnable
		}
		t = next
	}
}

// queue is tasks that wait, oldest first.
type queue struct{ first, last *task }

//go:norace
func (q *queue) push(t *task) {
	t.next = nil
	if q.first == nil {
		q.first = t
	} else {
		q.last.next = t
	}
	q.last = t
}

//go:norace
func (q *queue) pop() *task {
	t := q.first
	if t != nil {
		q.first, t.next = t.next, nil
	}
	return t
}

// drain answers all of it, linked, and leaves it empty.
//
//go:norace
func (q *queue) drain() *task {
	t := q.first
	q.first, q.last = nil, nil
	return t
}

// cond is a condition variable. Signal wakes the one that waited longest, as Go's does.
type cond struct {
	world   *World
	lock    *lock
	name    string
	waiting string
	waking  string
	queue   queue
	sync    byte
}

func (w *World) NewCond(l env.Locker, name string) env.Waiter {
	return &cond{world: w, lock: l.(*lock), name: name, waiting: "wait " + name, waking: "wake " + name}
}

func (c *cond) String() string { return "the condition " + c.name }

//go:norace
func (c *cond) Wait() {
	t := c.world.enter(c.waiting)
	if c.lock.owner != t {
		panic(fmt.Sprintf("sim: waiting for %s without %s", c.name, c.lock.name))
	}
	c.lock.leave()
	c.queue.push(t)
	t.block(c)
	raceAcquire(unsafe.Pointer(&c.sync))
	c.lock.take(t)
}

//go:norace
func (c *cond) Signal() { c.wake(1) }

//go:norace
func (c *cond) Broadcast() { c.wake(1 << 30) }

//go:norace
func (c *cond) wake(n int) {
	if c.world.dying {
		return
	}
	c.world.Yield(c.waking)
	raceRelease(unsafe.Pointer(&c.sync))
	for ; n > 0; n-- {
		t := c.queue.pop()
		if t == nil {
			break
		}
		t.state = runnable
	}
}

// group is a wait group.
type group struct {
	world *World
	name  string
	point string
	count int
	queue queue
	sync  byte
}

func (w *World) NewWaitGroup(name string) env.Group {
	return &group{world: w, name: name, point: "join " + name}
}

func (g *group) String() string { return fmt.Sprintf("the group %s, in which are %d", g.name, g.count) }

//go:norace
func (g *group) Add(n int) {
	if g.world.dying {
		return
	}
	if n < 0 {
		raceRelease(unsafe.Pointer(&g.sync))
	}
	if g.count += n; g.count < 0 {
		panic(fmt.Sprintf("sim: the group %s has a negative count", g.name))
	}
	if g.count == 0 {
		for t := g.queue.pop(); t != nil; t = g.queue.pop() {
			t.state = runnable
		}
	}
	if n < 0 {
		g.world.Yield(g.point)
	}
}

//go:norace
func (g *group) Wait() {
	t := g.world.enter(g.point)
	for g.count > 0 {
		g.queue.push(t)
		t.block(g)
	}
	raceAcquire(unsafe.Pointer(&g.sync))
}
