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
	if top == 0 {
		return uint64(max(b.path[0].idx-a.path[0].idx, 0)), nil
	}
	// Where the paths part, a place is a child's number and the part of that child which is before the bound.
	var partA, partB float64
	each := 1.0 // entries below a page like those on the paths
	for level := range top {
		pa, pb := a.path[level], b.path[level]
		na, nb := float64(pa.n.count()), float64(pb.n.count())
		if level > 0 {
			na, nb = na+1, nb+1 // children
		}
		partA, partB = (float64(pa.idx)+partA)/na, (float64(pb.idx)+partB)/nb
		each *= (na + nb) / 2
	}
	if top == len(a.path)-1 && t.Entries != EntriesUnknown { // below the root the Head knows better than two samples
		each = float64(t.Entries) / float64(a.path[top].n.count()+1)
	}
	keys = uint64(max(each*(float64(b.path[top].idx-a.path[top].idx)+partB-partA), 0))
	return min(keys, t.Entries), nil
}

func firstErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
