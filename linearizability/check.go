package linearizability

import (
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime is how long the checker may think about one history. What it cannot decide is a failure of this package.
const checkTime = 90 * time.Second

// IllegalError says that no order explains a history.
type IllegalError struct {
	History *History
	Path    string // of a drawing of the history, for a browser
}

func (e *IllegalError) Error() string {
	return fmt.Sprintf("%s: no order of the operations explains the replies; see %s", e.History, e.Path)
}

func (h *History) String() string {
	return fmt.Sprintf("history %s/%s, seed %d: %d operations, %d crashes", h.World, h.Workload, h.Seed, len(h.Ops), h.Crashes)
}

// Check looks for an order that explains h. If there is none it draws the history into a file of dir (the system's directory for
// temporary files if it is empty) and answers with an *IllegalError. Any other error means that it could not tell.
func Check(h *History, dir string) error {
	m := workloadOf(h.Workload, 0).model()
	ops := operations(h, m)
	checker := checkerOf(m)
	result, info := porcupine.CheckOperationsVerbose(checker, ops, checkTime)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%s: not decided in %v", h, checkTime)
	}
	f, err := os.CreateTemp(dir, fmt.Sprintf("history-%s-%s-%d-*.html", h.World, h.Workload, h.Seed))
	if err != nil {
		return fmt.Errorf("%s: illegal, and cannot be drawn: %w", h, err)
	}
	err = porcupine.Visualize(checker, info, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: illegal, and cannot be drawn: %w", h, err)
	}
	return &IllegalError{h, f.Name()}
}

// # Unknown operations
//
// The checker wants every operation to happen. So an unknown one may happen in either of two ways: with its effect, before the
// recovery that ended it; or without any, after the end, when nobody looks any more. Recoveries and the end are operations of
// their own, in every partition. (The other way, sets of states, grows with the product of all that is unknown.)

// situation is a state of the checker: the model's, and how many recoveries have ended.
type situation struct {
	state any
	ready int
	ended bool
}

// operations are what the checker sees. Each gets a lane of the drawing: its client's, or another if the client's is taken.
func operations(h *History, m model) []porcupine.Operation {
	clients := 0
	for _, op := range h.Ops {
		clients = max(clients, op.Client+1)
	}
	busy := make([]int64, clients+1) // until when a lane is taken
	add := func(out []porcupine.Operation, lane int, op Op) []porcupine.Operation {
		if busy[lane] >= op.Call {
			for lane = clients + 1; lane < len(busy) && busy[lane] >= op.Call; lane++ {
			}
			if lane == len(busy) {
				busy = append(busy, 0)
			}
		}
		busy[lane] = op.Return
		return append(out, porcupine.Operation{ClientId: lane, Input: op.Input, Call: op.Call, Output: op.Output, Return: op.Return})
	}
	var out []porcupine.Operation
	last := int64(0)
	for i, at := range h.Opened {
		out = add(out, clients, Op{Input: Input{Kind: recovered, Value: int64(i + 1)}, Call: at, Return: at})
		last = at
	}
	for _, op := range h.Ops {
		last = max(last, op.Call)
		if op.Return != forever {
			last = max(last, op.Return)
		}
		if op.Unknown && op.Kind.read() {
			continue
		}
		for _, p := range m.parts(op) {
			if p.Unknown {
				p.until, p.Return = math.MaxInt, forever
				if op.Return != forever {
					p.until, _ = slices.BinarySearch(h.Opened, op.Return)
				}
			}
			out = add(out, p.Client, p)
		}
	}
	return add(out, clients, Op{Input: Input{Kind: theEnd}, Call: last + 1, Return: last + 1})
}

// checkerOf makes porcupine's model of m.
func checkerOf(m model) porcupine.Model {
	c := porcupine.Model{
		Init: func() any { return situation{state: m.start()} },
		Step: func(at, input, output any) (bool, any) {
			now, in, out := at.(situation), input.(Input), output.(Output)
			switch {
			case in.Kind == recovered:
				now.ready = int(in.Value)
				return true, now
			case in.Kind == theEnd:
				now.ended = true
				return true, now
			case now.ended:
				return out.Unknown, now
			}
			next, want, ok := m.apply(now.state, in)
			if out.Unknown {
				ok = ok && next != now.state && now.ready <= out.until
			} else {
				ok = ok && out.agrees(want)
			}
			now.state = next
			return ok, now
		},
		DescribeOperation: func(input, output any) string {
			if in := input.(Input); in.Kind == recovered || in.Kind == theEnd {
				return in.String()
			}
			return fmt.Sprintf("%v → %v", input, output)
		},
		DescribeState: func(at any) string {
			return fmt.Sprintf("%v, opened %d times", at.(situation).state, at.(situation).ready)
		},
	}
	if m.perDocument() {
		c.Partition = func(ops []porcupine.Operation) [][]porcupine.Operation {
			var parts [docsMax][]porcupine.Operation
			for _, op := range ops {
				in := op.Input.(Input)
				for doc := range parts {
					if in.Doc == int64(doc) || in.Kind == recovered || in.Kind == theEnd {
						parts[doc] = append(parts[doc], op)
					}
				}
			}
			return parts[:]
		}
	}
	return c
}
