package query

import (
	"bytes"

	"github.com/multiforadb/multiforadb/engine/key"
)

// A sort that no single scan of an index gives may come from several: {a: {$in: [1, 2]}} sorted by b, on {a: 1, b: 1}, is a scan of
// a: 1 and one of a: 2, each of which is in the order of b. A merge takes from its parts, again and again, the entry whose
// fields from the part's merge on come first. The branches of an $or merge in the same way.

// mergeMax is how many parts a merge has at most; with more, what is found is sorted.
const mergeMax = 200

// merged makes a merge of a scan of x with these sets, if that gives the order asked for.
func (pl *planner) merged(c *candidate) (candidate, bool) {
	x := c.index
	if x.Multikey != 0 || x.path != "" {
		return candidate{}, false
	}
	from, count := 0, 1 // the fields that are taken apart, and the parts that this makes
	for i := 0; i < len(c.sets) && c.sets[i].points(); i++ {
		if count *= len(c.sets[i]); count > mergeMax {
			break
		}
		if len(c.sets[i]) > 1 {
			from = i + 1
		}
	}
	if from == 0 {
		return candidate{}, false
	}
	sorted, reverse := pl.orderFrom(x, c.sets, from)
	if !sorted {
		return candidate{}, false
	}
	m := *c
	m.kind, m.sorted, m.reverse, m.merge = scanMerge, true, reverse, from
	m.parts = parts(c, from, reverse)
	return m, true
}

// points says whether s is one or more single values.
func (s set) points() bool {
	for _, v := range s {
		if !v.IsPoint() {
			return false
		}
	}
	return len(s) > 0
}

// parts are the scans of each combination of the values that the first fields have.
func parts(c *candidate, from int, reverse bool) []scan {
	combinations := [][]set{nil}
	for i := range from {
		var next [][]set
		for _, before := range combinations {
			for _, v := range c.sets[i] {
				next = append(next, append(before[:len(before):len(before)], set{v}))
			}
		}
		combinations = next
	}
	out := make([]scan, len(combinations))
	for i, first := range combinations {
		sets := append(first, c.sets[from:]...)
		out[i] = scan{kind: scanIndex, index: c.index, sets: sets, bounds: boundsOf(c.index, sets), reverse: reverse, merge: from, points: c.points}
	}
	return out
}

// mergedUnion makes a merge of the branches of an $or, if each gives the order asked for, from the same kinds of fields.
func (pl *planner) mergedUnion(list []candidate) bool {
	fields := pl.q.Sort.Fields()
	for i := range list {
		c := &list[i]
		x := c.index
		if !c.sorted || x.Multikey != 0 || x.path != "" || c.reverse != list[0].reverse {
			return false
		}
		for c.merge = 0; c.merge < len(x.Fields) && x.Fields[c.merge].Path != fields[0].Path; c.merge++ {
			if !c.sets[c.merge].point() {
				return false
			}
		}
		if len(x.Fields) < c.merge+len(fields) {
			return false
		}
		for k, f := range fields {
			if g := x.Fields[c.merge+k]; g.Path != f.Path || g.Kind != list[0].index.Fields[list[0].merge+k].Kind {
				return false
			}
		}
		c.mergeLen = len(fields)
	}
	return true
}

// orderKey is the part of an entry that a merge compares.
func (s *scan) orderKey(entry []byte) []byte {
	from := 0
	end := len(entry)
	for i := range s.index.Fields {
		if i == s.merge {
			entry = entry[from:]
			if s.mergeLen == 0 {
				return entry
			}
			from = 0
		}
		n := key.FieldLen(entry[from:], s.index.Fields[i].Kind == key.Descending)
		if n <= 0 {
			return nil
		}
		if from += n; i == s.merge+s.mergeLen-1 {
			end = from
			break
		}
	}
	return entry[:min(end, len(entry))]
}

// head is the entry at which a part of a merge stands.
type head struct {
	has   bool
	id    uint64
	order []byte // in place
}

// nextMerged takes the first of the parts' heads.
func (a *access) nextMerged() (uint64, bool, error) {
	if a.parts == nil {
		a.startParts()
	}
	best := -1
	for i := range a.parts {
		p := &a.parts[i]
		if p.src == nil {
			p.attach(a.src, a.tick)
			p.again = p.head.has
			p.head.has = false
		}
		if !p.head.has && !p.ended {
			id, _, ok, err := p.next()
			if err != nil {
				return 0, false, err
			}
			p.head = head{has: ok, id: id}
			if ok {
				p.head.order = p.orderKey(p.place)
			}
		}
		if !p.head.has {
			continue
		}
		if best >= 0 {
			c := bytes.Compare(p.head.order, a.parts[best].head.order)
			if c == 0 || c < 0 == a.reverse {
				continue
			}
		}
		best = i
	}
	if best < 0 {
		return 0, false, nil
	}
	p := &a.parts[best]
	p.head.has, a.taken = false, best
	return p.head.id, true, nil
}
