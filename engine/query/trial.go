package query

import (
	"errors"
	"fmt"
	"strings"

	"github.com/multiforadb/multiforadb/engine/query/match"
)

// Where estimates tie and only some documents are asked for, what counts is how soon a scan comes by documents that pass, and no count of
// entries tells. So each of the candidates runs for a moment, and the one that gave the most for its work is taken. That is
// remembered for queries of the same shape, as long as their estimates are about the same.

// Choices remembers what trials have shown. It may be shared by any number of plans.
type Choices interface {
	Recall(shape string) (Choice, bool)
	Remember(shape string, c Choice)
}

// Choice is the outcome of a trial.
type Choice struct {
	Scan string  // what tells the scan from others
	Cost float64 // the least estimate then
}

const (
	// trialFrom is the least estimate, in entries, that makes a trial worth its while.
	trialFrom = 50
	// trialTie is how much dearer than the cheapest a candidate may be, and still tie with it.
	trialTie = 2
	// trialStale is by how much an estimate may have changed since a trial that is remembered.
	trialStale = 4
)

// errTried ends a trial. A run asks for leave about every hundredth entry or document, which is as long as a trial lasts.
var errTried = errors.New("tried long enough")

// try gives the position of the candidate to take, where best is that of the one with the least estimate.
func (pl *planner) try(list []candidate, best int) int {
	lowest := list[best].cost
	if pl.choices == nil || pl.q.Limit == 0 || list[best].unique || lowest < trialFrom {
		return best
	}
	var tied []int
	for i := range list {
		if list[i].cost <= lowest*trialTie {
			tied = append(tied, i)
		}
	}
	if len(tied) < 2 {
		return best
	}
	shape := pl.shape()
	if c, ok := pl.choices.Recall(shape); ok && lowest <= c.Cost*trialStale && c.Cost <= lowest*trialStale {
		for _, i := range tied {
			if list[i].name() == c.Scan {
				return i
			}
		}
	}
	most := -1.0
	for _, i := range tied {
		if yield, ok := pl.yield(&list[i]); ok && (yield > most || yield == most && i == best) {
			most, best = yield, i
		}
	}
	pl.choices.Remember(shape, Choice{Scan: list[best].name(), Cost: lowest})
	return best
}

// yield is how many documents a candidate gives for an entry or document that it looks at. Before a sort in memory there are none until the
// scan is at its end. It is false if the trial failed, which the run itself will meet.
func (pl *planner) yield(c *candidate) (float64, bool) {
	p := &Plan{Query: Query{Filter: pl.q.Filter, Collation: pl.q.Collation}, scan: c.scan, sorted: true}
	p.residual = p.scan.residual(p.Filter)
	r := p.Start()
	r.Attach(pl.source, func() error { return errTried })
	defer r.Detach()
	given := 0.0
	for given < float64(pl.q.Skip+pl.q.Limit) && r.Next() {
		given++
	}
	over := r.Err() == nil
	if r.Err() != nil && !errors.Is(r.Err(), errTried) {
		return 0, false
	}
	if !over && !c.sorted {
		return 0, true
	}
	work := float64(r.KeysExamined() + r.DocsExamined() + 1)
	if over {
		given = float64(pl.q.Skip + pl.q.Limit) // as good as that: there are no more
	}
	return given / work, true
}

// name tells a scan from the others that one query may have.
func (s *scan) name() string {
	if s.index == nil {
		return "$or"
	}
	return s.index.Name + " " + s.index.path
}

// shape is the query without its values.
func (pl *planner) shape() string {
	var b strings.Builder
	writeShape(&b, pl.nodes)
	if pl.q.Sort != nil {
		for _, f := range pl.q.Sort.Fields() {
			fmt.Fprintf(&b, " %q %v", f.Path, f.Descending)
		}
	}
	return b.String()
}

func writeShape(b *strings.Builder, nodes []match.Node) {
	for _, n := range nodes {
		fmt.Fprintf(b, "(%T", n)
		switch n := n.(type) {
		case *match.And:
			writeShape(b, n.Nodes)
		case *match.Or:
			writeShape(b, n.Nodes)
		case *match.Nor:
			writeShape(b, n.Nodes)
		case *match.Not:
			writeShape(b, []match.Node{n.Node})
		case *match.ElemMatchObject:
			fmt.Fprintf(b, " %q", n.Path)
			writeShape(b, []match.Node{n.Node})
		case *match.Comparison:
			fmt.Fprintf(b, " %q %d %d", n.Path, n.Op, n.Value.Type)
		default:
			if path, ok := match.PathOf(n); ok {
				fmt.Fprintf(b, " %q", path)
			}
		}
		b.WriteByte(')')
	}
}
