package page

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// Ticket holds free pages that have storage, for one writer and one goroutine. A write to one of them cannot run out of
// space. What was not taken goes back by Release; what was taken is the caller's, to be given back by [Allocator.Free].
type Ticket struct {
	a          *Allocator
	privileged bool
	below      ID
	pages      []ID
	runs       []Run
}

// Request is what a ticket is to hold.
type Request struct {
	Pages      int      // single pages
	Runs       []uint32 // lengths of runs, each of adjacent pages
	Privileged bool     // may use the reserve: for deletes, checkpoints, the cleaner and recovery
	Below      ID       // if not 0, all pages lie below this one, and the file does not grow: for what moves to its front
}

// Growth is by 0.5% of the file, at most 64 MiB, and at least one group.
const (
	growthShare = 200
	growthMax   = 64 << 20 / Size
)

// Reserve fills a ticket, allocating storage and growing the file if need be. It may wait for the disk, so no lock may be
// held. The error is env.ErrNoSpace if the disk is full, or if only the reserve is left and q is not privileged; then the
// allocator is as before.
func (a *Allocator) Reserve(q Request) (*Ticket, error) {
	if q.Pages < 0 {
		return nil, fmt.Errorf("page: a ticket of %d pages", q.Pages)
	}
	for _, n := range q.Runs {
		if n == 0 || n > a.MaxRun() {
			return nil, fmt.Errorf("page: a run of %d pages, of at most %d", n, a.MaxRun())
		}
	}
	t := &Ticket{a: a, privileged: q.Privileged, below: q.Below, pages: make([]ID, 0, q.Pages)}
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.fill(t, q, search{backed: true, below: q.Below}) {
		if a.backing { // the other task may be making room for this one as well
			probe.TicketWaited.Hit()
			a.changed.Wait()
			continue
		}
		a.backing = true
		err := a.fillBacking(t, q)
		a.endBacking()
		if err != nil {
			return nil, err
		}
		break
	}
	return t, nil
}

// Page takes a page. It is false if the ticket is used up and none can be had without waiting for the disk.
func (t *Ticket) Page() (ID, bool) {
	if len(t.pages) == 0 && !t.extend(Request{Pages: groupPages / 4}) && !t.extend(Request{Pages: 1}) {
		return 0, false
	}
	id := t.pages[0]
	t.pages = t.pages[1:]
	return id, true
}

// Run takes a run of n pages. It is false if the ticket has none and none can be had without waiting for the disk.
func (t *Ticket) Run(n uint32) (Run, bool) {
	longer := -1
	for i, run := range t.runs {
		if run.Count == n {
			t.runs = slices.Delete(t.runs, i, i+1)
			return run, true
		}
		if longer < 0 && run.Count > n {
			longer = i
		}
	}
	if n == 0 {
		return Run{}, false
	}
	if t.extend(Request{Runs: []uint32{n}}) {
		run := t.runs[len(t.runs)-1]
		t.runs = t.runs[:len(t.runs)-1]
		return run, true
	}
	if longer < 0 {
		return Run{}, false
	}
	run := Run{First: t.runs[longer].First, Count: n}
	t.runs[longer] = Run{First: run.End(), Count: t.runs[longer].Count - n}
	return run, true
}

// Release gives back what was not taken.
func (t *Ticket) Release() {
	if len(t.pages) == 0 && len(t.runs) == 0 {
		return
	}
	t.a.mu.Lock()
	t.a.empty(t)
	t.a.mu.Unlock()
}

// extend adds to the ticket what can be had without waiting for the disk.
func (t *Ticket) extend(q Request) bool {
	q.Privileged, q.Below = t.privileged, t.below
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	ok := t.a.fill(t, q, search{backed: true, below: q.Below})
	probe.TicketExtended.HitIf(ok)
	return ok
}

// empty gives back all that the ticket holds.
func (a *Allocator) empty(t *Ticket) {
	for i := 0; i < len(t.pages); { // adjacent ones together
		run := Run{First: t.pages[i], Count: 1}
		for i++; i < len(t.pages) && t.pages[i] == run.End() && run.End()%groupPages != 0; i++ {
			run.Count++
		}
		a.free(run)
	}
	for _, run := range t.runs {
		a.free(run)
	}
	t.pages, t.runs = nil, nil
}

// search says where to look for pages.
type search struct {
	backed bool // only among those that have storage
	scraps bool // also inside groups and at places that are not aligned, at the end of all space
	grow   bool // let the file grow
	step   ID   // by so many pages, if not more are needed
	below  ID   // only below this page, if it is not 0
}

// only is the same search among the pages that have storage, or among all.
func (s search) only(backed bool) search {
	s.backed = backed
	return s
}

// allowed is the mask of the pages of a word that lie low enough; first is the word's first page.
func (s search) allowed(first ID) uint64 {
	switch {
	case s.below == 0 || first+groupPages <= s.below:
		return ^uint64(0)
	case first >= s.below:
		return 0
	}
	return 1<<(s.below-first) - 1
}

// fill adds q to the ticket, all of it or nothing. The pages that it takes are backed only if s says so.
func (a *Allocator) fill(t *Ticket, q Request, s search) bool {
	if s.backed && !q.Privileged {
		need := q.Pages
		for _, n := range q.Runs {
			need += int(n)
		}
		if a.sum.backed-need < a.reserve {
			return false
		}
	}
	pages, runs := len(t.pages), len(t.runs)
	if a.takeRuns(t, q.Runs, s) && a.takePages(t, q.Pages, s) {
		return true
	}
	undo := Ticket{pages: t.pages[pages:], runs: t.runs[runs:]}
	t.pages, t.runs = t.pages[:pages], t.runs[:runs]
	a.empty(&undo)
	return false
}

// fillBacking fills an empty ticket as well as the disk allows. The lock is held, and given up meanwhile.
func (a *Allocator) fillBacking(t *Ticket, q Request) error {
	step := min(max(a.end/growthShare, groupPages), growthMax)
	grow := q.Below == 0
	err := a.fillAndBack(t, q, search{grow: grow, step: step, below: q.Below})
	if errors.Is(err, env.ErrNoSpace) && grow {
		err = a.fillAndBack(t, q, search{grow: true})
	}
	if errors.Is(err, env.ErrNoSpace) && a.fill(t, q, search{backed: true, scraps: true, below: q.Below}) {
		probe.TicketScraps.Hit()
		err = nil
	}
	if errors.Is(err, env.ErrNoSpace) {
		err = a.fillAndBack(t, q, search{scraps: true, below: q.Below})
	}
	return err
}

// fillAndBack fills an empty ticket from the whole file and allocates storage for what it took, and for the reserve.
func (a *Allocator) fillAndBack(t *Ticket, q Request, s search) error {
	end := a.end
	err := error(nil)
	if !a.fill(t, q, s) {
		err = fmt.Errorf("data file of %d pages: %w", a.end, env.ErrNoSpace)
	} else {
		words := a.unbackedWords(t, end)
		if !q.Privileged {
			words = a.backReserve(words, s)
		}
		err = a.back(words)
	}
	if err == nil && !q.Privileged && a.sum.backed < a.reserve {
		err = fmt.Errorf("data file of %d pages: only the reserve is left: %w", a.end, env.ErrNoSpace)
	}
	if err != nil {
		a.empty(t)
	}
	if !a.isBacked(a.end - 1) { // what the file was to grow by is there whole, or not at all
		a.setEnd(end)
	}
	return err
}

// isBacked reports whether the page is known to have storage.
func (a *Allocator) isBacked(id ID) bool {
	r, w := a.word(id / groupPages)
	return r.backed[w]>>(id%groupPages)&1 != 0
}

// unbackedWords gives the numbers of the words in which the ticket has pages without storage, and of all beyond end, by
// which the file has grown.
func (a *Allocator) unbackedWords(t *Ticket, end ID) []ID {
	var words []ID
	add := func(run Run) {
		r := a.region(run)
		r.spread(run, func(w int, mask uint64) {
			if mask&^r.backed[w] != 0 {
				words = append(words, r.first/groupPages+ID(w))
			}
		})
	}
	for _, id := range t.pages {
		add(Run{First: id, Count: 1})
	}
	for _, run := range t.runs {
		add(run)
	}
	return a.addGrowth(words, end)
}

// addGrowth adds the words that lie beyond end.
func (a *Allocator) addGrowth(words []ID, end ID) []ID {
	for w := end / groupPages; end < a.end && w*groupPages < a.end; w++ {
		words = append(words, w)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// backReserve adds more words, until enough free pages will have storage to make up the reserve.
func (a *Allocator) backReserve(words []ID, s search) []ID {
	have := a.sum.backed
	for _, word := range words {
		r, w := a.word(word)
		have += bits.OnesCount64(r.free[w] &^ r.backed[w])
	}
	if have >= a.reserve {
		return words
	}
	want := a.reserve + int(s.step) // more than is missing, so that this is not done for each ticket
	for _, r := range a.regions {
		if have >= want {
			break
		}
		if r.tally.free == r.tally.backed {
			continue
		}
		for w := range r.free {
			word := r.first/groupPages + ID(w)
			if n := bits.OnesCount64(r.free[w] &^ r.backed[w]); n > 0 && have < want {
				if _, ok := slices.BinarySearch(words, word); !ok {
					words = append(words, word)
					have += n
				}
			}
		}
		slices.Sort(words)
	}
	end := a.end
	for s.grow && have < a.reserve {
		free := a.sum.free
		if !a.grow(a.end+ID(a.reserve-have), s.step) {
			break
		}
		have += a.sum.free - free
	}
	return a.addGrowth(words, end)
}

// back allocates storage for whole words, in ascending order, with the lock given up. Those that have some already, or
// are in use, are not harmed.
func (a *Allocator) back(words []ID) error {
	for len(words) > 0 {
		n := 1
		for n < len(words) && words[n] == words[n-1]+1 {
			n++
		}
		first, end := words[0]*groupPages, min(words[n-1]*groupPages+groupPages, a.end)
		a.mu.Unlock()
		err := a.file.Allocate(int64(first)*Size, int64(end-first)*Size)
		a.mu.Lock()
		if err != nil {
			return fmt.Errorf("data file: pages %d to %d: %w", first, end-1, err)
		}
		for _, w := range words[:n] {
			a.setBacked(w)
		}
		words = words[n:]
	}
	return nil
}

// takeRuns adds runs to the ticket, each at the lowest place that fits.
func (a *Allocator) takeRuns(t *Ticket, runs []uint32, s search) bool {
	for _, n := range runs {
		run, ok := a.findRun(n, s)
		for !ok && s.grow && a.grow(a.tailEnd(n), s.step) {
			run, ok = a.findRun(n, s)
		}
		if !ok {
			return false
		}
		a.take(run)
		t.runs = append(t.runs, run)
	}
	return true
}

func (a *Allocator) findRun(n uint32, s search) (Run, bool) {
	for _, r := range a.regions {
		off := -1
		if s.scraps {
			off = r.findAnywhere(n, s.backed)
		} else {
			off = r.findRun(n, s.backed)
		}
		if off >= 0 {
			run := Run{First: r.first + ID(off), Count: n}
			return run, s.below == 0 || run.End() <= s.below
		}
	}
	return Run{}, false
}

// take marks the run as in use.
func (a *Allocator) take(run Run) {
	r := a.region(run)
	r.spread(run, func(w int, mask uint64) { r.edit(r.used, w, mask, 0) })
}

// takePages adds single pages to the ticket: from groups with room, then from new groups, storage or not, then from new
// groups at the end of the file.
func (a *Allocator) takePages(t *Ticket, n int, s search) bool {
	n = a.takeFromGroups(t, n, s.only(true))
	for n > 0 && a.newGroup(s.only(true)) {
		n = a.takeFromGroups(t, n, s.only(true))
	}
	if n > 0 && !s.backed {
		n = a.takeFromGroups(t, n, s.only(false))
		for n > 0 && a.newGroup(s.only(false)) {
			n = a.takeFromGroups(t, n, s.only(false))
		}
	}
	for n > 0 && s.grow && a.grow(a.end+ID(n), s.step) {
		for n > 0 && a.newGroup(s.only(false)) {
			n = a.takeFromGroups(t, n, s.only(false))
		}
	}
	if s.scraps {
		n = a.takeScraps(t, n, s)
	}
	return n == 0
}

// takeFromGroups takes up to n pages, and gives the number that is still missing.
func (a *Allocator) takeFromGroups(t *Ticket, n int, s search) int {
	first := 0
	if s.backed {
		for a.room < len(a.regions) && a.regions[a.room].tally.room == 0 {
			a.room++
		}
		first = a.room
	}
	for i := first; i < len(a.regions) && n > 0; i++ {
		r := a.regions[i]
		if s.backed && r.tally.room == 0 || r.tally.free == 0 {
			continue
		}
		from := 0
		if s.backed {
			from = r.room
		}
		for g := from / 64; g < len(r.grouped) && n > 0; g++ {
			groups := r.grouped[g] &^ (1<<max(from-g*64, 0) - 1)
			for ; groups != 0 && n > 0; groups &= groups - 1 {
				w := g*64 + bits.TrailingZeros64(groups)
				n = r.takeBits(t, w, n, s)
				if s.backed && s.below == 0 {
					r.room = w
				}
			}
		}
	}
	return n
}

// takeScraps takes up to n pages from anywhere, and gives the number that is still missing.
func (a *Allocator) takeScraps(t *Ticket, n int, s search) int {
	for _, r := range a.regions {
		for w := 0; w < len(r.free) && n > 0 && r.tally.free > 0; w++ {
			n = r.takeBits(t, w, n, s)
		}
	}
	return n
}

// takeBits takes up to n pages of word w, and gives the number that is still missing.
func (r *region) takeBits(t *Ticket, w, n int, s search) int {
	var taken uint64
	for x := r.freeIn(w, s.backed) & s.allowed(r.pageAt(w)); x != 0 && n > 0; x &= x - 1 {
		bit := bits.TrailingZeros64(x)
		taken |= 1 << bit
		t.pages = append(t.pages, r.first+ID(w*groupPages+bit))
		n--
	}
	if taken != 0 {
		r.edit(r.used, w, taken, 0)
	}
	return n
}

// newGroup makes a group of a free word: of one that is part of a short stretch of free space, else of the lowest.
func (a *Allocator) newGroup(s search) bool {
	for _, short := range []bool{true, false} {
		for i, r := range a.regions {
			if w := r.findGroup(s.backed, short); w >= 0 && s.allowed(r.pageAt(w)) == ^uint64(0) {
				r.makeGroup(w)
				a.room = min(a.room, i)
				return true
			}
		}
	}
	return false
}

// grow lets the file grow to end at least, by step at least, and to whole groups. It is false if it is at its largest.
func (a *Allocator) grow(end, step ID) bool {
	limit := ID(a.geometry.regionsMax()) * ID(a.geometry.RegionPages)
	end = (max(end, a.end+step, a.end+1) + groupPages - 1) / groupPages * groupPages
	if end > limit {
		return false
	}
	a.setEnd(end)
	return true
}

// tailEnd is where the file must end for a run of n pages to fit behind all that is in use.
func (a *Allocator) tailEnd(n uint32) ID {
	perRegion := ID(a.geometry.RegionPages)
	start := (a.end + groupPages - 1) / groupPages * groupPages
	if r := a.regions[len(a.regions)-1]; r.limit > 0 {
		w := (r.limit - 1) / groupPages
		for w >= 0 && r.open(w, false) == r.below(w) {
			w--
		}
		start = r.first + ID(w+1)*groupPages
	}
	for {
		number := a.geometry.regionOf(start)
		first := ID(number) * perRegion
		if start == first {
			start += ID(a.geometry.fixedPages(number))
			if ID(n) <= perRegion-groupPages { // it begins at a word, or lies within one
				start = first + groupPages
			}
		}
		if start+ID(n) <= first+perRegion {
			return start + ID(n)
		}
		start = first + perRegion
	}
}
