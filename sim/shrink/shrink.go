// Package shrink makes a failing run small: it takes away what the run does not need to fail in the same way.
//
// The same way means that the class of the failure is the same ([workload.Result].Class): the same judge, with the same
// words, at whatever place and moment. In this order it takes away
//
//   - operations of clients,
//   - switches of the scheduler, above all those that made a task wait which could have gone on,
//   - what the power cut loses, if the failure is one of a crash image.
//
// What is taken away changes all that comes after it, so each step tries a few ways to get to the failure again: the schedule
// as it was, others by chance, and the plainest one; and while the moment of a power cut is not settled, images are taken at
// many. What is left is one [workload.Case], in which nothing is drawn any more but sizes: it fails when it is replayed, always.
package shrink

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/workload"
	"github.com/multiforadb/multiforadb/simfs"
)

// Options of Shrink.
type Options struct {
	// Run runs a case; nil is workload.RunCase.
	Run func(workload.Case, workload.Watch) workload.Result
	// Runs is how many runs it may take, and For how long: 2000 if both are 0. Then what was found so far is the answer.
	Runs int
	For  time.Duration
	// Progress, if it is not nil, is told what has become smaller.
	Progress func(string)
}

// Size is how much a run needs to fail.
type Size struct {
	Operations int
	Switches   int
	Lost       int // things that the power cut takes; 0 if the failure is not one of an image
}

func (s Size) String() string {
	return fmt.Sprintf("%d operations, %d switches, %d lost by the power cut", s.Operations, s.Switches, s.Lost)
}

// Shrunk is the least run that was found.
type Shrunk struct {
	Case          workload.Case
	Result        workload.Result
	Before, After Size
	Runs          int
	Lost          string // what the power cut takes, in words
}

const (
	rounds  = 3 // of dropping operations and switches: with fewer of the ones, fewer of the others may do
	chances = 8 // schedules that are drawn for a case
)

// ErrGreen says that there is nothing to shrink.
var ErrGreen = errors.New("the run does not fail")

// Shrink makes a failing case small.
func Shrink(c workload.Case, o Options) (*Shrunk, error) {
	if o.Run == nil {
		o.Run = workload.RunCase
	}
	if o.Runs == 0 && o.For == 0 {
		o.Runs = 2000
	}
	s := &shrinker{o: o, began: time.Now()}
	s.found = s.run(c)
	if s.found.Err == nil {
		return nil, ErrGreen
	}
	out := &Shrunk{Before: s.size(c, s.found)}
	s.schedule = c.Edit.Schedule
	s.class, s.image = kindOf(s.found.Class), s.found.Cut != nil
	s.steps = 4*s.found.Steps + 10_000
	c.Edit.Steps = s.steps

	for round := range rounds {
		before := len(s.found.Ops)
		c = s.operations(c)
		c = s.switches(c)
		if round > 0 && len(s.found.Ops) == before {
			break
		}
	}
	c, err := s.settle(c)
	if err != nil {
		return nil, err
	}
	if s.image {
		c = s.losses(c)
	}
	out.Case, out.Result, out.Runs = c, s.run(c), s.runs
	if !s.same(out.Result) {
		return nil, fmt.Errorf("the shrunk run fails in another way: %v", out.Result.Err)
	}
	out.After = s.size(c, out.Result)
	out.Lost = s.lost
	return out, nil
}

type shrinker struct {
	o        Options
	began    time.Time
	runs     int
	class    string
	image    bool // the failure is one of a crash image
	steps    int
	found    workload.Result // of the smallest case so far that failed
	schedule uint64          // that it was drawn with
	lost     string
}

func (s *shrinker) run(c workload.Case) workload.Result {
	s.runs++
	return s.o.Run(c, workload.Watch{})
}

// spent reports whether it is enough.
func (s *shrinker) spent() bool {
	return s.o.Runs > 0 && s.runs >= s.o.Runs || s.o.For > 0 && time.Since(s.began) > s.o.For
}

func (s *shrinker) same(r workload.Result) bool { return r.Err != nil && kindOf(r.Class) == s.class }

// kindOf is a class, but that of images that do not open it tells only who refuses: what recovery stumbles over first differs
// with all that came before.
func kindOf(class string) string {
	const refused = "does not open: "
	if i := strings.Index(class, refused); i >= 0 {
		i += len(refused)
		if n := strings.IndexByte(class[i:], ':'); n >= 0 {
			return class[:i+n]
		}
	}
	return class
}

// way is how a run is scheduled: as switches say, or by chance.
type way struct {
	switches []sim.Switch
	schedule uint64
}

// fails looks for the failure in a case whose power cut, if it needs one, is not settled: by every way in turn.
func (s *shrinker) fails(c workload.Case, ways ...way) bool {
	c.Edit.Cut, c.Edit.Share = nil, 1
	if s.image {
		c.Edit.Kind = s.found.Cut.Kind // elsewhere the failure is less likely, and images cost time
	} else {
		c.Edit.Cut = &workload.Cut{At: -1} // no image at all
	}
	for _, w := range ways {
		if s.spent() {
			return false
		}
		c.Edit.Switches, c.Edit.Schedule = w.switches, w.schedule
		if r := s.run(c); s.same(r) {
			s.found, s.schedule = r, w.schedule
			return true
		}
	}
	return false
}

func (s *shrinker) tell(format string, args ...any) {
	if s.o.Progress != nil {
		s.o.Progress(fmt.Sprintf(format, args...) + fmt.Sprintf(" (%d runs)", s.runs))
	}
}

// operations drops operations. Those that had not begun when the run failed go first.
func (s *shrinker) operations(c workload.Case) workload.Case {
	type name struct {
		client string
		index  int
	}
	var names []name
	for _, op := range s.found.Ops {
		names = append(names, name{op.Client, op.Index})
	}
	slices.SortStableFunc(names, func(a, b name) int { // whole clients go together
		switch {
		case a.client < b.client:
			return -1
		case a.client > b.client:
			return 1
		}
		return a.index - b.index
	})
	with := func(kept []name) workload.Case {
		e := c
		e.Edit.Kept = map[string][]int{}
		for _, n := range kept {
			e.Edit.Kept[n.client] = append(e.Edit.Kept[n.client], n.index)
		}
		return e
	}
	left := least(names, func(kept []name) bool {
		ways := []way{{s.found.Switches, s.schedule}, {nil, s.schedule}, {[]sim.Switch{}, s.schedule}}
		if !s.image { // runs are cheap then
			for schedule := range uint64(chances) {
				ways = append(ways, way{nil, schedule})
			}
		}
		if !s.fails(with(kept), ways...) {
			return false
		}
		s.tell("%d operations", len(kept))
		return true
	})
	if len(left) < len(names) {
		c = with(left)
	}
	c.Edit.Schedule = s.schedule
	return c
}

// switches drops switches of the schedule of the run that failed last.
func (s *shrinker) switches(c workload.Case) workload.Case {
	all := s.found.Switches
	c.Edit.Switches = least(all, func(kept []sim.Switch) bool {
		if !s.fails(c, way{append([]sim.Switch{}, kept...), s.schedule}) {
			return false
		}
		s.tell("%d switches", len(kept))
		return true
	})
	if c.Edit.Switches == nil {
		c.Edit.Switches = []sim.Switch{}
	}
	return c
}

// settle takes the switches that the last run that failed has made, and its image, and sees that they are all it needs.
func (s *shrinker) settle(c workload.Case) (workload.Case, error) {
	c.Edit.Switches = append([]sim.Switch{}, s.found.Switches...)
	c.Edit.Share, c.Edit.Kind, c.Edit.Cut = 0, "", &workload.Cut{At: -1}
	if s.image {
		c.Edit.Cut = s.found.Cut
	}
	if r := s.run(c); !s.same(r) {
		return c, fmt.Errorf("the failure does not come again: %v", r.Err)
	}
	return c, nil
}

// lossRuns is how many runs the losses may take beyond all others: they are short, since the image is known.
const lossRuns = 300

// losses makes the power cut take less.
func (s *shrinker) losses(c workload.Case) workload.Case {
	end := s.runs + lossRuns
	choice := s.explain(c)
	if choice.Gen == simfs.Killed {
		return c
	}
	with := func(lost []simfs.Loss) workload.Case {
		e, cut := c, *c.Edit.Cut
		cut.Choice = simfs.Choice{Lost: lost}
		e.Edit.Cut = &cut
		return e
	}
	if s.same(s.run(with(choice.Lost))) {
		left := least(choice.Lost, func(lost []simfs.Loss) bool {
			if s.runs >= end || !s.same(s.run(with(lost))) {
				return false
			}
			s.tell("%d lost", len(lost))
			return true
		})
		c = with(left)
	}
	s.explain(c)
	return c
}

// explain gives the choice of the case's image as a list of what it loses, and keeps the words for it.
func (s *shrinker) explain(c workload.Case) (choice simfs.Choice) {
	s.runs++
	s.o.Run(c, workload.Watch{Cut: func(_ int, _ string, disk *simfs.FS, cut workload.Cut, _ error) {
		choice, s.lost = disk.Explain(cut.Choice), disk.Describe(cut.Choice)
	}})
	return choice
}

// size is how much a case that failed as r has.
func (s *shrinker) size(c workload.Case, r workload.Result) Size {
	size := Size{Operations: len(r.Ops), Switches: len(r.Switches)}
	if r.Cut != nil {
		e := c
		e.Edit.Cut = r.Cut
		size.Lost = len(s.explain(e).Lost)
	}
	return size
}

// least leaves items out for as long as the rest still fails: halves, then quarters, and so on down to single ones, until
// none of them can be left out. What it gives back has failed, or is all.
func least[T any](items []T, fails func([]T) bool) []T {
	if len(items) > 0 && fails(nil) {
		return nil
	}
	for size := max(len(items)/2, 1); ; size = max(size/2, 1) {
		smaller := false
		for at := 0; at < len(items); {
			rest := slices.Concat(items[:at], items[min(at+size, len(items)):])
			if len(rest) < len(items) && fails(rest) {
				items, smaller = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !smaller {
			return items
		}
	}
}
