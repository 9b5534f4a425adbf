package probe

import (
	"slices"
	"strings"
	"testing"
)

func TestTableIsWholeAndSorted(t *testing.T) {
	Count()
	all := All()
	sorted := slices.IsSortedFunc(all, func(a, b Reached) int { return strings.Compare(a.Name, b.Name) })
	if !sorted {
		t.Error("the table is not in the order of names")
	}
	for i, p := range all {
		if p.Name == "" || !strings.HasSuffix(p.What, ".") {
			t.Errorf("probe %d (%q) has no name, or no sentence", i, p.Name)
		}
		Probe(i).Hit()
		Probe(i).HitIf(false)
		if n := All()[i].Hits; n != 1 {
			t.Errorf("%s: hit once, counted %d", p.Name, n)
		}
	}
}
