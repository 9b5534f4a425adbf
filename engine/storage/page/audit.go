package page

import (
	"fmt"
	"math/bits"
)

// Map is one of the allocator's views of which pages are in use.
type Map int

const (
	MapUsed      Map = iota // what memory holds: heads, snapshots, tickets
	MapPublished            // what the newest durable meta reaches, as the file has it
	MapFallback             // what the other durable meta reaches
)

// Fault is a disagreement between a Map and what is really reached.
type Fault struct {
	Run
	Kind FaultKind
}

// FaultKind says what is wrong with the pages of a Fault.
type FaultKind int

const (
	FaultLeaked   FaultKind = iota // marked as in use, but nothing reaches them
	FaultUnmarked                  // reached, but marked as free: they would be handed out
	FaultTwice                     // reached twice
	FaultFixed                     // reached, but the allocator's own
	FaultOutside                   // reached, but outside of the file
)

func (f Fault) String() string {
	what := [...]string{
		FaultLeaked:   "in use, but nothing reaches it",
		FaultUnmarked: "reached, but marked as free",
		FaultTwice:    "reached twice",
		FaultFixed:    "reached, but it belongs to the allocator",
		FaultOutside:  "reached, but it lies outside of the file",
	}[f.Kind]
	if f.Count == 1 {
		return fmt.Sprintf("page %d: %s", f.First, what)
	}
	return fmt.Sprintf("pages %d to %d: %s", f.First, f.End()-1, what)
}

// faultsMax bounds what Audit reports.
const faultsMax = 1000

// Audit compares a map with reach, which yields every page and run that is reachable, the fixed pages not counted, in any
// order, each once. Adjacent pages with one fault are one Fault; after 1000 of them it stops looking. Whoever may
// allocate, free or publish meanwhile makes it report what is not so.
func (a *Allocator) Audit(m Map, reach func(yield func(Run)) error) ([]Fault, error) {
	a.mu.Lock()
	end, regions := a.end, a.regions
	a.mu.Unlock()
	var faults []Fault
	report := func(id ID, kind FaultKind) {
		if k := len(faults) - 1; k >= 0 && faults[k].Kind == kind && faults[k].End() == id {
			faults[k].Count++
		} else if len(faults) < faultsMax {
			faults = append(faults, Fault{Run{id, 1}, kind})
		}
	}
	reportBits := func(r *region, w int, mask uint64, kind FaultKind) {
		for ; mask != 0; mask &= mask - 1 {
			report(r.pageOf(w, mask), kind)
		}
	}
	words := int(a.geometry.RegionPages) / groupPages
	seen := make([]uint64, words*len(regions))
	err := reach(func(run Run) {
		if run.First >= end || run.End() > end {
			if len(faults) < faultsMax {
				faults = append(faults, Fault{run, FaultOutside})
			}
			return
		}
		for run.Count > 0 { // region by region: a damaged reference may cross them
			number := a.geometry.regionOf(run.First)
			r := regions[number]
			part := run
			part.Count = uint32(min(run.End(), r.first+ID(a.geometry.RegionPages)) - run.First)
			r.spread(part, func(w int, mask uint64) {
				s := &seen[number*words+w]
				reportBits(r, w, mask&r.fixedIn(w), FaultFixed)
				reportBits(r, w, mask&*s, FaultTwice)
				*s |= mask &^ r.fixedIn(w)
			})
			run.First, run.Count = part.End(), run.Count-part.Count
		}
	})
	if err != nil {
		return faults, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for number, r := range regions {
		marked := [...][]uint64{MapUsed: r.used, MapPublished: r.cur, MapFallback: r.old}[m]
		for w, x := range marked {
			x &^= r.fixedIn(w)
			s := seen[number*words+w]
			reportBits(r, w, s&^x, FaultUnmarked)
			reportBits(r, w, x&^s, FaultLeaked)
		}
	}
	return faults, nil
}

// Check says which of the allocator's sums and indexes is not what its maps say. It finds bugs, not damage.
func (a *Allocator) Check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sum tally
	for i, r := range a.regions {
		var t tally
		for w := range r.used {
			reached := r.cur[w] | r.old[w] | r.next[w]
			free := ^(r.used[w] | reached) & r.below(w)
			if r.free[w] != free {
				return fmt.Errorf("region %d, word %d: free is %#x, should be %#x", i, w, r.free[w], free)
			}
			if r.isGroup(w) && free == r.allowed(w) {
				return fmt.Errorf("region %d, word %d: a group that is all free", i, w)
			}
			backed := bits.OnesCount64(free & r.backed[w])
			t.free += bits.OnesCount64(free)
			t.backed += backed
			t.stored += bits.OnesCount64(free &^ r.holes[w])
			if bad := r.holes[w] & (r.backed[w] | ^r.below(w)); bad != 0 {
				return fmt.Errorf("page %d: a hole, and backed or beyond the end", r.pageOf(w, bad))
			}
			if r.isGroup(w) {
				t.room += backed
				if backed > 0 && w < r.room {
					return fmt.Errorf("region %d, word %d: has room, but the search begins at word %d", i, w, r.room)
				}
			}
			t.pending += bits.OnesCount64(reached &^ r.used[w])
			t.used += bits.OnesCount64(r.used[w])
		}
		if t != r.tally {
			return fmt.Errorf("region %d: sums are %+v, should be %+v", i, r.tally, t)
		}
		if i < a.room && t.room > 0 {
			return fmt.Errorf("region %d: has room, but the search begins at region %d", i, a.room)
		}
		sum.add(t)
	}
	if sum != a.sum {
		return fmt.Errorf("sums are %+v, should be %+v", a.sum, sum)
	}
	return nil
}
