package sim

import (
	"cmp"
	"slices"
)

// Switch is a decision of the scheduler that is not the plainest one. The plainest is that who runs goes on, and when it
// cannot, the oldest task that can. All switches of a run say its schedule, and taking some away leaves a schedule too, with
// fewer preemptions: a failure that needs few of them can be seen to.
//
// It is counted in the task's own turns, not in steps of the world, so that it means the same when other tasks do less.
type Switch struct {
	From int `json:"from"` // the number of the task that ran
	Turn int `json:"turn"` // which of its turns ends so: how often it has been asked, from 1
	To   int `json:"to"`   // the number of the task that runs next, if it can
}

// Step is one step of a world, as [Options.Trace] is told of it.
type Step struct {
	N     int // counts from 1
	Task  string
	Point string
}

// follow prepares the switches of a run that are given.
func follow(given []Switch) []Switch {
	if given == nil {
		return nil
	}
	sorted := make([]Switch, len(given))
	copy(sorted, given)
	slices.SortFunc(sorted, func(a, b Switch) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Turn, b.Turn)) })
	return sorted
}

// switchOf is the given decision for the turn of task t that just began, among the first n candidates.
//
//go:norace
func (w *World) switchOf(t *task, n int) *task {
	for ; t.given < len(w.switches); t.given++ {
		s := w.switches[t.given]
		if s.From > t.id || s.From == t.id && s.Turn > t.turns {
			break
		}
		if s.From != t.id || s.Turn != t.turns {
			continue
		}
		for i := 0; i < n; i++ {
			if w.cand[i].id == s.To {
				return w.cand[i]
			}
		}
	}
	return w.cand[0]
}

// noteSwitch remembers what t's turn ended in, if that is not the plainest.
//
//go:norace
func (w *World) noteSwitch(t, next *task) *task {
	if next == w.cand[0] {
		return next
	}
	if w.switchCount == len(w.made) {
		more := make([]Switch, 2*w.switchCount+64)
		for i := 0; i < w.switchCount; i++ {
			more[i] = w.made[i]
		}
		w.made = more
	}
	w.made[w.switchCount] = Switch{From: t.id, Turn: t.turns, To: next.id}
	w.switchCount++
	return next
}
