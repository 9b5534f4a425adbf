// Package report tells what happened in a simulated run: as lines of text ([Recording.Trace]) and as a page for a browser
// ([Recording.WriteHTML]), with a timeline of operations, of calls of the disk and of power cuts, and for each crash image a
// map of the pages of its files.
//
// A [Recording] is made by running the case once more, watched. Nothing in a page comes from elsewhere: it has its styles and
// its program inside, and needs no network.
package report

import (
	"fmt"

	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/workload"
	"github.com/multiforadb/multiforadb/simfs"
)

// Runner runs a case, watched.
type Runner func(workload.Case, workload.Watch) workload.Result

// Recording is all that is known of one run. Steps count from 1; what happens between two of them has the number of the first.
type Recording struct {
	Case   workload.Case
	Result workload.Result
	Steps  []sim.Step
	Calls  []Call
	Cuts   []Cut

	open map[int64]int  // by the number of the call: where it is in Calls
	last map[string]int // of each task: its last step
}

// Call is a call of the disk that changes something, or makes it durable.
type Call struct {
	simfs.Call
	Asked     int // the step in which the task came to it; others may have run since
	Step, End int // End is -1 if it did not return
	Task      string
	Parts     []int // steps at which a part of a write was applied, or a sync had settled what it covers
	Err       string
	Fault     string // what was made to go wrong with it
}

// Cut is one crash image.
type Cut struct {
	workload.Cut
	Step  int
	Where string
	Err   string
	Loses string // in words
	Files []File
	Metas [2]Meta
}

// Record runs a case.
func Record(c workload.Case, run Runner) *Recording {
	r := &Recording{Case: c, open: map[int64]int{}, last: map[string]int{}}
	faults := map[int64]string{} // asked for after the call has begun, told of with its end
	r.Result = run(c, workload.Watch{
		Step: func(s sim.Step) {
			r.Steps = append(r.Steps, s)
			r.last[s.Task] = s.N
		},
		Disk: func(step int, task string, e simfs.Event) { r.disk(step, task, e, faults) },
		Fault: func(_ int, _ string, c simfs.Call, f simfs.Fault) {
			faults[c.N] = describeFault(f)
		},
		Cut: func(step int, where string, disk *simfs.FS, cut workload.Cut, err error) {
			r.Cuts = append(r.Cuts, r.cut(step, where, disk, cut, err))
		},
	})
	return r
}

func (r *Recording) disk(step int, task string, e simfs.Event, faults map[int64]string) {
	i, ok := r.open[e.N]
	if !ok {
		i = len(r.Calls)
		r.open[e.N] = i
		r.Calls = append(r.Calls, Call{Call: e.Call, Asked: r.last[task], Step: step, End: -1, Task: task})
	}
	c := &r.Calls[i]
	switch e.When {
	case simfs.Part, simfs.Inside:
		c.Parts = append(c.Parts, step)
	case simfs.After:
		c.End = step
		if e.Err != nil {
			c.Err = e.Err.Error()
		}
		delete(r.open, e.N)
	}
	if f := faults[e.N]; f != "" {
		c.Fault = f
	}
}

func describeFault(f simfs.Fault) string {
	s := ""
	switch {
	case f.Lose:
		s = "the write is lost"
	case f.Misdirect != 0:
		s = fmt.Sprintf("the write goes %d bytes from where it belongs", f.Misdirect)
	default:
		s = fmt.Sprint(f.Err)
	}
	if f.Short > 0 {
		s += fmt.Sprintf(", after %d bytes", f.Short)
	}
	if f.Sync != "" {
		s += fmt.Sprintf(", pages are %s, %.0f%% of them written", f.Sync, 100*f.Written)
	}
	return s
}
