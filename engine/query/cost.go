package query

import "github.com/multiforadb/multiforadb/engine/key"

// cheapest gives the position of the candidate to take.
func (pl *planner) cheapest(list []candidate) int {
	if len(list) == 1 {
		return 0
	}
	for i := range list {
		if list[i].unique {
			return i
		}
	}
	fewest := -1.0
	for i := range list {
		c := &list[i]
		c.cost = pl.count(&c.scan)
		if fewest < 0 || c.cost < fewest {
			fewest = c.cost
		}
	}
	best := 0
	for i := range list {
		c := &list[i]
		rows := max(fewest, 1)
		switch want := float64(pl.q.Skip + pl.q.Limit); {
		case !c.sorted:
			c.cost += rows * 4 // keeping and sorting what is found
		case pl.q.Limit > 0 && want < rows:
			c.cost *= want / rows // it ends early
		}
		b := &list[best]
		switch {
		case i == 0, c.cost > b.cost:
		case c.cost < b.cost, c.sorted && !b.sorted, c.sorted == b.sorted && c.points > b.points:
			best = i
		}
	}
	return best
}

// countSpans is how many spans are counted one by one; the rest is taken to be like them.
const countSpans = 16

// count estimates the entries that a scan visits.
func (pl *planner) count(s *scan) float64 {
	if len(s.parts) > 0 && len(s.bounds.fields) == 0 { // a merge of one index has the bounds of all its parts
		n := 0.0
		for i := range s.parts {
			n += pl.count(&s.parts[i])
		}
		return n
	}
	if len(s.bounds.fields) == 0 {
		return float64(pl.source.Estimate(s.index.Tree, "", ""))
	}
	n, counted, total := 0.0, 0, 1
	prefixes := []string{""}
	for i, f := range s.bounds.fields {
		last := i == len(s.bounds.fields)-1
		var next []string
		for _, prefix := range prefixes {
			for _, v := range f.spans {
				if v.point && !last {
					if len(next) < countSpans {
						next = append(next, prefix+v.lo)
					}
					continue
				}
				if counted < countSpans {
					n += float64(pl.source.Estimate(s.index.Tree, prefix+v.lo, prefixed(prefix, v.hi)))
					counted++
				}
			}
		}
		total *= max(len(f.spans), 1)
		if len(next) == 0 {
			break
		}
		prefixes = next
	}
	if counted > 0 && total > counted {
		n *= float64(total) / float64(counted)
	}
	return n
}

// prefixed is the end of a span behind the bytes of the fields before it.
func prefixed(prefix, hi string) string {
	if hi != "" || prefix == "" {
		return prefix + hi
	}
	return string(key.Successor([]byte(prefix)))
}
