package btree

// EstimateRange estimates how many keys are ≥ lo and < hi; a nil bound is open. It reads the two paths to the bounds, and is
// exact if they end in one leaf. Else it takes pages between the paths to be like those on them.
func (t Tree) EstimateRange(lo, hi []byte) (keys uint64, err error) {
	if t.Root == 0 {
		return 0, nil
	}
	if lo == nil && hi == nil && t.Entries != EntriesUnknown {
		return t.Entries, nil
	}
	a, b := t.Iter(), t.Iter()
	a.find(lo)
	if hi != nil {
		b.find(hi)
	} else if b.SeekLast() {
		b.path[0].idx++
	}
	if err := firstErr(a.err, b.err); err != nil {
		return 0, err
	}
	top := len(a.path) - 1
	for top > 0 && a.path[top].idx == b.path[top].idx {
		top--
	}
	// From the leaves up: entries below a page like those on the paths, and entries of the page on a's path from the bound on,
	// on b's path before the bound.
	pa, pb := a.path[0], b.path[0]
	each := float64(pa.n.count()+pb.n.count()) / 2
	after, before := float64(pa.n.count()-pa.idx), float64(pb.idx)
	if top == 0 {
		return uint64(max(pb.idx-pa.idx, 0)), nil
	}
	for level := 1; level < top; level++ {
		pa, pb = a.path[level], b.path[level]
		after += each * float64(pa.n.count()-pa.idx)
		before += each * float64(pb.idx)
		each *= float64(pa.n.count()+pb.n.count()+2) / 2
	}
	if top == len(a.path)-1 && t.Entries != EntriesUnknown { // below the root the Head knows better than two samples
		each = float64(t.Entries) / float64(a.path[top].n.count()+1)
	}
	estimate := after + before + each*float64(b.path[top].idx-a.path[top].idx-1)
	return uint64(max(min(estimate, float64(t.Entries)), 0)), nil
}

func firstErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
