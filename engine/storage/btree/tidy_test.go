package btree_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// Tidy leaves the content as it was, none of the pages that were to be moved, and no two neighbours that fit into one.
func TestTidyMovesAndMerges(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(keyMakers)) {
		for _, entries := range []int{0, 4} {
			t.Run(fmt.Sprintf("%s, %d", kind, entries), func(t *testing.T) {
				for seed := range uint64(2) {
					tidies(t, rand.New(rand.NewPCG(seed, 3)), kind, entries)
				}
			})
		}
	}
}

func tidies(t *testing.T, r *rand.Rand, kind string, entries int) {
	b, m := newBench(t, entries), model{}
	for i := range 400 + r.IntN(1200) {
		k, v := keyMakers[kind](r), value(r, i)
		b.put(k, v)
		m, _ = m.put(k, v)
	}
	b.commit()
	for share := r.IntN(10); share > 0 && len(m) > 0; {
		k := []byte(m[r.IntN(len(m))].key)
		b.delete(k)
		if m, _ = m.delete(k); r.IntN(len(m)+1) < 10 {
			share--
		}
	}
	b.commit()
	moved, before := map[page.ID]bool{}, b.head.Pages
	if err := b.tree().Walk(func(ref page.Ref, _ uint8, _ bool) error {
		if r.IntN(3) > 0 {
			moved[ref.ID()] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for from := []byte(nil); ; steps++ {
		next, err := b.Tidy(b.m, &b.head, from, 1+r.IntN(30), func(id page.ID) bool { return moved[id] })
		if err != nil {
			t.Fatal(err)
		}
		b.audit()
		if from = next; from == nil {
			break
		}
		// What was retired is not used again before the commit: a page that was moved does not come back here.
		if steps > 5000 {
			t.Fatal("it does not end")
		}
	}
	if err := b.tree().Walk(func(ref page.Ref, level uint8, over bool) error {
		if moved[ref.ID()] {
			return fmt.Errorf("page %d of level %d (overflow: %v) is still there, of %d levels", ref.ID(), level, over, b.head.Height)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := btree.Check(b.tree()); err != nil {
		t.Fatal(err)
	}
	if err := m.same(b.tree()); err != nil {
		t.Fatal(err)
	}
	if b.head.Pages > before {
		t.Fatalf("%d pages, before %d", b.head.Pages, before)
	}
}

// A tree that lost nine of ten entries, here and there, is mostly air. Tidy makes it a tenth.
func TestTidyShrinksSparseTree(t *testing.T) {
	b := newBench(t, 0)
	for i := range 50_000 {
		b.put(fmt.Appendf(nil, "%08d", i), []byte("a value of some length"))
	}
	full := b.head.Pages
	b.commit()
	for i := range 50_000 {
		if i%10 != 0 {
			b.delete(fmt.Appendf(nil, "%08d", i))
		}
	}
	b.commit()
	sparse := b.head.Pages
	if _, err := b.Tidy(b.m, &b.head, nil, 1<<30, func(page.ID) bool { return false }); err != nil {
		t.Fatal(err)
	}
	b.audit()
	t.Logf("%d pages when full, %d after the deletions, %d tidied", full, sparse, b.head.Pages)
	if b.head.Pages > full*13/100 {
		t.Errorf("%d pages of %d", b.head.Pages, full)
	}
}
