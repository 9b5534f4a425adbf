package page

import "math/bits"

// region is the allocator's memory of one region: a bit for each page in each of these maps, 64 to a word.
//
//	used    reachable from a head or a snapshot, held by a ticket, or awaiting a deadlist
//	cur     reachable from the newest durable meta
//	old     reachable from the other durable meta
//	next    reachable from the snapshot that is to be published next, as far as it is staged
//	backed  known to have storage
//	holes   free, and known to have none
//	free    clear in used, cur, old and next, and below the end of the file
//
// The fixed pages are set in all maps but free and holes. All words change through edit, which keeps the sums.
type region struct {
	first ID
	fixed uint64 // mask of the fixed pages in word 0
	limit int    // pages below the end of the file

	used, cur, old, next, backed, holes, free []uint64

	// grouped has a bit for each word that single pages are taken from: a group. Runs keep out of groups, and single pages
	// of all else, so that pages that come and go one by one do not wear the runs down. A group that is all free is none.
	grouped []uint64

	tally tally
	sum   *tally // of all regions

	curSlot, oldSlot, nextSlot Slot

	dirty bool // next differs from cur
	moved bool // cur differs from old

	// What a search has found not to be there, for all pages and for the backed ones: it need not look again until
	// something becomes free.
	runMax    [2]uint32 // no longer run
	groupless [2]bool   // no word that could become a group
	room      int       // no group with room before this word
}

// tally counts pages.
type tally struct {
	free    int
	backed  int // free ones that are backed
	stored  int // free ones that are no holes
	room    int // free ones that are backed and in a group
	pending int // clear in used, but reachable from a meta
	used    int // fixed ones included
}

func (t *tally) sub(u tally) {
	t.add(tally{-u.free, -u.backed, -u.stored, -u.room, -u.pending, -u.used})
}

func newRegion(g Geometry, number, limit int, sum *tally) *region {
	r := &region{
		first: ID(number) * ID(g.RegionPages),
		fixed: 1<<g.fixedPages(number) - 1,
		sum:   sum,
	}
	words := int(g.RegionPages) / groupPages
	mem := make([]uint64, 7*words)
	for _, m := range []*[]uint64{&r.used, &r.cur, &r.old, &r.next, &r.backed, &r.holes, &r.free} {
		*m, mem = mem[:words:words], mem[words:]
		(*m)[0] = r.fixed
	}
	r.free[0], r.holes[0] = 0, 0
	r.grouped = make([]uint64, (words+63)/64)
	for w := range r.used {
		r.count(w, +1)
	}
	r.setLimit(limit)
	return r
}

// count adds word w to the sums, or takes it away.
func (r *region) count(w, sign int) {
	free := r.free[w]
	backed := bits.OnesCount64(free & r.backed[w])
	t := tally{
		free:    sign * bits.OnesCount64(free),
		backed:  sign * backed,
		stored:  sign * bits.OnesCount64(free&^r.holes[w]),
		pending: sign * bits.OnesCount64((r.cur[w]|r.old[w]|r.next[w])&^r.used[w]),
		used:    sign * bits.OnesCount64(r.used[w]),
	}
	if r.isGroup(w) {
		t.room = sign * backed
	}
	r.tally.add(t)
	r.sum.add(t)
}

func (t *tally) add(u tally) {
	t.free += u.free
	t.backed += u.backed
	t.stored += u.stored
	t.room += u.room
	t.pending += u.pending
	t.used += u.used
}

// edit sets bits of word w of map m, one of r's.
func (r *region) edit(m []uint64, w int, set, clear uint64) {
	r.count(w, -1)
	m[w] = m[w]&^clear | set
	r.recount(w)
}

// recount brings free and the sums up to date after count(w, -1) and a change.
func (r *region) recount(w int) {
	was := r.free[w]
	r.free[w] = ^(r.used[w] | r.cur[w] | r.old[w] | r.next[w]) & r.below(w)
	if r.free[w] == r.allowed(w) {
		r.setGroup(w, false)
	}
	if r.free[w]&^was != 0 {
		r.forget(w)
	}
	r.count(w, +1)
}

// setBacked says that the pages of word w have storage.
func (r *region) setBacked(w int) {
	r.count(w, -1)
	r.backed[w] |= r.below(w)
	r.holes[w] = 0
	r.recount(w)
	r.forget(w)
}

// forget says that a search may find more in word w than the last one.
func (r *region) forget(w int) {
	r.runMax = [2]uint32{regionPagesMax, regionPagesMax}
	r.groupless = [2]bool{}
	r.room = min(r.room, w)
}

// pageAt is the first page of word w.
func (r *region) pageAt(w int) ID { return r.first + ID(w*groupPages) }

// below is the mask of the pages of word w that are below the end of the file.
func (r *region) below(w int) uint64 {
	switch n := r.limit - w*groupPages; {
	case n <= 0:
		return 0
	case n >= groupPages:
		return ^uint64(0)
	default:
		return 1<<n - 1
	}
}

// allowed is the mask of the pages of word w that can be allocated.
func (r *region) allowed(w int) uint64 {
	if w == 0 {
		return ^r.fixed
	}
	return ^uint64(0)
}

func (r *region) isGroup(w int) bool { return r.grouped[w/64]>>(w%64)&1 != 0 }

func (r *region) setGroup(w int, on bool) {
	if on {
		r.grouped[w/64] |= 1 << (w % 64)
	} else {
		r.grouped[w/64] &^= 1 << (w % 64)
	}
}

// makeGroup makes word w a group.
func (r *region) makeGroup(w int) {
	r.count(w, -1)
	r.setGroup(w, true)
	r.count(w, +1)
	r.room = min(r.room, w)
}

// setLimit moves the end of the file.
func (r *region) setLimit(limit int) {
	from, to := min(r.limit, limit), max(r.limit, limit)
	r.limit = limit
	for w := from / groupPages; w < len(r.used) && w*groupPages < to; w++ {
		r.count(w, -1)
		r.backed[w] &= r.below(w) | r.fixedIn(w) // what was cut off has no storage
		r.holes[w] &= r.below(w)
		r.recount(w)
	}
}

func (r *region) fixedIn(w int) uint64 {
	if w == 0 {
		return r.fixed
	}
	return 0
}

// spread calls f with each word that the run touches and the mask of its pages there.
func (r *region) spread(run Run, f func(w int, mask uint64)) {
	off, n := int(run.First-r.first), int(run.Count)
	for n > 0 {
		w, bit := off/groupPages, off%groupPages
		k := min(groupPages-bit, n)
		f(w, (^uint64(0)>>(groupPages-k))<<bit)
		off, n = off+k, n-k
	}
}

// full reports whether every page of word w that can be allocated is free.
func (r *region) full(w int, backed bool) bool {
	a := r.allowed(w)
	return r.free[w] == a && (!backed || r.backed[w]&a == a)
}

// The searches below give the lowest place, as an offset in the region, or -1.

// shortRun is the number of words below which a stretch of free space is first to be given to single pages.
const shortRun = 4

// findGroup looks for a word that can become a group. A short one is part of a stretch too small for the largest extents.
func (r *region) findGroup(backed, short bool) int {
	i := index(backed)
	if r.groupless[i] || r.tally.free < groupPages-bits.OnesCount64(r.fixed) {
		return -1
	}
	any := false
	for w := 0; w < len(r.free); w++ {
		if !r.full(w, backed) {
			continue
		}
		any = true
		end := w + 1
		for end < len(r.free) && r.full(end, backed) {
			end++
		}
		if !short || end-w < shortRun {
			return w
		}
		w = end
	}
	r.groupless[i] = !any
	return -1
}

// findRun looks for n pages outside the groups. A run of less than a word lies within one, aligned to the largest power
// of two in it; a longer one begins at a word. Only a run that nearly fills a region may begin anywhere.
func (r *region) findRun(n uint32, backed bool) int {
	i := index(backed)
	if n > r.runMax[i] || int(n) > r.tally.free {
		return -1
	}
	off := -1
	switch {
	case int(n) > groupPages*(len(r.free)-1):
		off = r.findAnywhere(n, backed)
	case n < groupPages:
		off = r.findWithin(int(n), backed)
	default:
		off = r.findWords(int(n), backed)
	}
	if off < 0 {
		r.runMax[i] = n - 1
	}
	return off
}

// alignMasks[k] has the multiples of 1<<k.
var alignMasks = [...]uint64{^uint64(0), 0x5555555555555555, 0x1111111111111111, 0x0101010101010101, 0x0001000100010001, 0x0000000100000001}

func (r *region) findWithin(n int, backed bool) int {
	align := alignMasks[bits.Len(uint(n))-1]
	for w := range r.free {
		x := r.open(w, backed)
		if bits.OnesCount64(x) < n {
			continue
		}
		// Bit i of x stays if the n bits from i on are set.
		for have := 1; have < n && x != 0; {
			step := min(have, n-have)
			x &= x >> step
			have += step
		}
		if x &= align; x != 0 {
			return w*groupPages + bits.TrailingZeros64(x)
		}
	}
	return -1
}

func (r *region) findWords(n int, backed bool) int {
	words, tail := n/groupPages, uint64(1)<<(n%groupPages)-1
	for w := 0; w+words <= len(r.free); w++ {
		k := 0
		for k < words && r.open(w+k, backed) == ^uint64(0) {
			k++
		}
		switch {
		case k < words:
			w += k
		case tail == 0, w+words < len(r.free) && tail&^r.open(w+words, backed) == 0:
			return w * groupPages
		}
	}
	return -1
}

// findAnywhere takes no heed of groups and alignment.
func (r *region) findAnywhere(n uint32, backed bool) int {
	start, have := 0, 0
	for w := range r.free {
		x := r.freeIn(w, backed)
		for bit := 0; bit < groupPages; {
			y := x >> bit
			if y&1 == 0 {
				bit += min(bits.TrailingZeros64(y), groupPages-bit)
				have = 0
				continue
			}
			if have == 0 {
				start = w*groupPages + bit
			}
			k := min(bits.TrailingZeros64(^y), groupPages-bit)
			bit, have = bit+k, have+k
			if have >= int(n) {
				return start
			}
		}
	}
	return -1
}

func (r *region) freeIn(w int, backed bool) uint64 {
	if backed {
		return r.free[w] & r.backed[w]
	}
	return r.free[w]
}

// open is what runs may take of word w.
func (r *region) open(w int, backed bool) uint64 {
	if r.isGroup(w) {
		return 0
	}
	return r.freeIn(w, backed)
}

// guessGroups decides after an open which words are groups, which the file does not say. Extents come in multiples of
// four pages and lie at such; so a word with four pages that belong together, some in use and some not, is a group.
func (r *region) guessGroups() {
	const fours = 0x1111111111111111
	for w := range r.used {
		x := r.used[w] | r.fixedIn(w)
		some := (x | x>>1 | x>>2 | x>>3) & fours
		all := (x & (x >> 1) & (x >> 2) & (x >> 3)) & fours
		if some != all && x != r.fixedIn(w) {
			r.makeGroup(w)
		}
	}
}

// top is the offset after the highest page that is set in one of the maps, the fixed ones not counted; 0 if there is none.
func (r *region) top(maps ...[]uint64) int {
	for w := len(r.used) - 1; w >= 0; w-- {
		var x uint64
		for _, m := range maps {
			x |= m[w]
		}
		if x &= r.allowed(w); x != 0 {
			return w*groupPages + bits.Len64(x)
		}
	}
	return 0
}

func index(backed bool) int {
	if backed {
		return 1
	}
	return 0
}
