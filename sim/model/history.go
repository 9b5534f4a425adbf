package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// History is what the clients of a database know of it. Its methods may be called from many goroutines.
type History struct {
	mu      sync.Mutex // held across no call of anything outside
	pending []*Call
	worlds  []*world // never none, unless err is set
	done    []string // the last commands that have a reply, for a failure's words
	count   int
	err     error
}

// Call is a command that was sent.
type Call struct {
	Client string
	Op     *Op
}

// world is one explanation of all the replies: a state, and how far the pending commands have come in it.
type world struct {
	state *State
	at    []progress // by pending call
}

// worldsMax bounds the search: a workload in which more explanations must be kept is too unruly for the model.
const worldsMax = 2_000_000

// NewHistory begins with an empty database, or with any other state.
func NewHistory(s *State) *History {
	if s == nil {
		s = &State{}
	}
	return &History{worlds: []*world{{state: s}}}
}

// Begin is called before a command is sent.
func (h *History) Begin(client string, op *Op) *Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Call{client, op}
	h.pending = append(slices.Clip(h.pending), c)
	worlds := make([]*world, len(h.worlds))
	for i, w := range h.worlds {
		worlds[i] = &world{w.state, append(slices.Clip(w.at), progress{})}
	}
	h.worlds = worlds
	return c
}

// Outcome is how a command ended.
type Outcome struct {
	// Reply is what it answered.
	Reply string
	// Docs are what a Find gave.
	Docs []*Doc
	// Stopped says that it failed on its way: it has done some of its units, and does no more. N is how many documents it says that it
	// has changed; -1: it does not say.
	Stopped bool
	N       int
}

// End is called when the reply is there. An error means that no order of the commands explains it.
func (h *History) End(c *Call, out Outcome) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	h.count++
	i := slices.Index(h.pending, c)
	var kept []*world
	seen := map[uint64]bool{}
	keep := func(w *world) {
		n := &world{w.state, slices.Delete(slices.Clone(w.at), i, i+1)}
		if k := n.key(); !seen[k] {
			seen[k] = true
			kept = append(kept, n)
		}
	}
	find := search{pending: h.pending, seen: map[uint64]bool{}}
	possible := map[string]bool{}
	for _, w := range h.worlds {
		if c.Op.reads() {
			h.read(&find, w, i, out, keep, possible)
			continue
		}
		find.each(w, func(w *world) (with []int) {
			p := w.at[i]
			fits := p.done && p.reply == out.Reply
			if out.Stopped {
				// Of an index that another command drops while it is being built that command says that it was there.
				fits = (!p.done || c.Op.Kind == CreateIndex) && (out.N < 0 || p.n == out.N)
			} else if p.done {
				possible[p.reply] = true
			}
			if fits {
				keep(w)
			}
			if p.done {
				return nil
			}
			return meeting(h.pending, i, w)
		})
	}
	h.done = append(h.done, fmt.Sprintf("%s: %v: %s", c.Client, c.Op, out))
	switch {
	case find.err != nil:
		h.err = find.err
	case len(kept) == 0:
		h.err = fmt.Errorf("model: no order of the commands explains the reply %q of %s to %v\n%s%s", out, c.Client, c.Op, expected(possible), h.around())
	}
	h.worlds, h.pending = kept, slices.Delete(slices.Clone(h.pending), i, i+1)
	return h.err
}

// read looks for what must have come before a search, for it to see what it saw. A step that does not change what it sees can as
// well come after it.
func (h *History) read(find *search, w *world, i int, out Outcome, keep func(*world), possible map[string]bool) {
	if out.Stopped {
		keep(w)
		return
	}
	op := h.pending[i].Op
	_, all := op.scope()
	find.each(w, func(w *world) []int {
		if p := w.at[i]; p.done { // another command's reply needed it to be so early
			if p.reply == out.Reply {
				keep(w)
			}
			return nil
		}
		now := op.next(w.state, progress{})[0].reply
		if now == out.Reply {
			keep(w)
			return nil
		}
		possible[now] = true
		with := without(meeting(h.pending, i, w), i)
		if !all || len(op.Filter) > 0 || op.Kind != Find || w.state.Coll(op.NS) == nil || slices.ContainsFunc(with, func(j int) bool { _, all := h.pending[j].Op.scope(); return all }) {
			return with
		}
		// One group that it saw otherwise must be changed by one of the commands on that group, and they meet no others.
		g, ok := unlike(w.state.Coll(op.NS).Docs, out.Docs)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(with, func(j int) bool {
			groups, _ := h.pending[j].Op.scope()
			return !slices.Contains(groups, g)
		})
	})
}

// unlike is a group of which two lists have different documents.
func unlike(a, b []*Doc) (group string, ok bool) {
	sums := map[string]uint64{}
	for _, d := range a {
		sums[Group(d.ID)] += d.hash
	}
	for _, d := range b {
		sums[Group(d.ID)] -= d.hash
	}
	for g, sum := range sums {
		if sum != 0 && (!ok || g < group) {
			group, ok = g, true
		}
	}
	return group, ok
}

func without(list []int, i int) []int {
	return slices.DeleteFunc(list, func(j int) bool { return j == i })
}

func (o Outcome) String() string {
	if o.Stopped {
		return fmt.Sprintf("stopped after %d", o.N)
	}
	return o.Reply
}

// Count is how many commands have had their replies.
func (h *History) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Cut is what a power cut now may leave.
func (h *History) Cut() *Cut {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Cut{h.pending, h.worlds, h.around()}
}

func expected(possible map[string]bool) string {
	if len(possible) == 0 {
		return ""
	}
	var list []string
	for r := range possible {
		list = append(list, r)
	}
	slices.Sort(list)
	return fmt.Sprintf("the model gives %q\n", list)
}

// around tells what is pending, and what ended last.
func (h *History) around() string {
	var b strings.Builder
	for _, c := range h.pending {
		fmt.Fprintf(&b, "  pending: %s: %s\n", c.Client, brief(c.Op.String()))
	}
	for _, s := range h.done[max(0, len(h.done)-12):] {
		fmt.Fprintf(&b, "  done: %s\n", brief(s))
	}
	return b.String()
}

func brief(s string) string {
	if len(s) > 400 {
		s = s[:300] + " … " + s[len(s)-60:]
	}
	return s
}

// meeting are the pending commands whose order with number i may matter in w, directly or by way of others; i is one of them.
func meeting(pending []*Call, i int, w *world) []int {
	exists := func(ns string) bool { return w.state.Coll(ns) != nil }
	with := []int{i}
	for k := 0; k < len(with); k++ {
		for j, c := range pending {
			if !slices.Contains(with, j) && c.Op.meets(pending[with[k]].Op, exists) {
				with = append(with, j)
			}
		}
	}
	return with
}

func (w *world) key() uint64 {
	k := w.state.hash
	for i, p := range w.at {
		k = mix(k + uint64(i+1)*0x9E3779B97F4A7C15 + p.hash())
	}
	return k
}

// search goes through what pending commands may do.
type search struct {
	pending []*Call
	seen    map[uint64]bool
	err     error
}

var errUnruly = errors.New("model: too many explanations of what the clients saw: the workload is at fault, not the database")

// each calls f with w and all worlds that commands can make of it, each once; f says which commands may take a step from there.
func (s *search) each(w *world, f func(*world) (with []int)) {
	stack := []*world{w}
	for len(stack) > 0 && s.err == nil {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if k := w.key(); s.seen[k] {
			continue
		} else if s.seen[k] = true; len(s.seen) > worldsMax {
			s.err = errUnruly
		}
		for _, j := range f(w) {
			if w.at[j].done {
				continue
			}
			for _, way := range s.pending[j].Op.next(w.state, w.at[j]) {
				at := slices.Clone(w.at)
				at[j] = way.progress
				stack = append(stack, &world{way.state, at})
			}
		}
	}
}
