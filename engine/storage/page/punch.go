package page

import (
	"errors"
	"fmt"
	"math/bits"
)

// punchPages bounds what one task punches before others may allocate storage.
const punchPages = 32 << 20 / Size

// Punch gives storage under free pages back to the file system, in runs of at least shortest pages, those at the end of the file
// first, until about keep free pages have storage left; it never touches the reserve. It returns the runs, for whoever
// remembers something of their content.
//
// What is punched is free: neither durable meta page reaches it, nor the one being published, nor anything in memory. A
// power cut may bring its old content back, which nobody will ask for. Before such a page is used again storage is
// allocated for it, as for all pages that are not known to have some; so a hole that could not be made matters as little. After
// an open nothing is known of the free pages, and all of them are punched as if they had storage.
//
// Where the file system cannot make holes, it tries once and does nothing from then on.
func (a *Allocator) Punch(keep, shortest int) (punched []Run, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.holeless {
		a.startBacking()
		runs := a.disown(keep, shortest)
		err = a.punch(runs)
		a.endBacking()
		punched = append(punched, runs...)
		if a.holeless = errors.Is(err, errors.ErrUnsupported); a.holeless {
			err = nil
		}
		if len(runs) == 0 || err != nil {
			break
		}
	}
	return punched, err
}

// disown takes the storage of free runs off the books.
func (a *Allocator) disown(keep, shortest int) (runs []Run) {
	room := min(a.sum.stored-keep, punchPages)
	for i := len(a.regions) - 1; i >= 0 && room > 0; i-- {
		r := a.regions[i]
		for from, to := r.lastStored(r.limit); to > 0 && room > 0; from, to = r.lastStored(from) {
			n := min(to-from, max(room, shortest))
			if n < shortest {
				continue
			}
			run := Run{First: r.first + ID(to-n), Count: uint32(n)}
			if a.sum.backed-r.backedIn(run) < a.reserve {
				continue
			}
			r.spread(run, func(w int, mask uint64) {
				r.count(w, -1)
				r.backed[w] &^= mask
				r.holes[w] |= mask
				r.recount(w)
			})
			runs = append(runs, run)
			room -= n
		}
	}
	return runs
}

// punch makes the holes, with the lock given up. Nobody takes a page without storage meanwhile: the caller is the one that is
// backing.
func (a *Allocator) punch(runs []Run) (err error) {
	a.mu.Unlock()
	defer a.mu.Lock()
	for _, run := range runs {
		if err := a.file.PunchHole(int64(run.First)*Size, int64(run.Count)*Size); err != nil {
			return fmt.Errorf("data file: pages %d to %d: %w", run.First, run.End()-1, err)
		}
	}
	return nil
}

// lastStored finds the last run of free pages before off that may have storage, as offsets; to is 0 if there is none.
func (r *region) lastStored(off int) (from, to int) {
	for w := (off - 1) / groupPages; w >= 0 && off > 0; w-- {
		x := r.free[w] &^ r.holes[w]
		if left := off - w*groupPages; left < groupPages {
			x &= 1<<left - 1
		}
		if to == 0 {
			if x == 0 {
				continue
			}
			to = w*groupPages + bits.Len64(x)
			x |= ^uint64(0) << (to - w*groupPages)
		}
		// The run goes down to the highest page that is not in it.
		if gap := bits.Len64(^x); gap > 0 {
			return w*groupPages + gap, to
		}
	}
	return 0, to
}

// backedIn counts the run's pages that are known to have storage.
func (r *region) backedIn(run Run) (n int) {
	r.spread(run, func(w int, mask uint64) { n += bits.OnesCount64(r.backed[w] & mask) })
	return n
}
