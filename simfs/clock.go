package simfs

import (
	"slices"
	"sync"
	"time"
)

// Clock is an [env.Clock] that moves only when it is told to. Sleep moves it.
type Clock struct {
	mu     sync.Mutex
	now    time.Duration
	jump   time.Duration
	timers []*timer // by time, then by age
}

type timer struct {
	at time.Duration
	f  func()
}

// epoch is when simulated time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// NewClock makes a clock that stands.
func NewClock() *Clock { return &Clock{} }

func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return epoch.Add(c.now + c.jump)
}

func (c *Clock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *Clock) Sleep(d time.Duration) { c.Advance(d) }

// Jump sets the wall clock forward or back. Monotonic time goes on.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jump += d
}

// Advance lets time pass and calls the timers that are due, in order, before it returns.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now + max(d, 0)
	for len(c.timers) > 0 && c.timers[0].at <= end {
		t := c.timers[0]
		c.timers = c.timers[1:]
		c.now = max(c.now, t.at)
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = max(c.now, end)
	c.mu.Unlock()
}

// AfterFunc calls f from within Advance.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{at: c.now + max(d, 0), f: f}
	i, _ := slices.BinarySearchFunc(c.timers, t.at+1, func(u *timer, at time.Duration) int { return int(u.at - at) })
	c.timers = slices.Insert(c.timers, i, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.timers, t)
		if i >= 0 {
			c.timers = slices.Delete(c.timers, i, i+1)
		}
		return i >= 0
	}
}
