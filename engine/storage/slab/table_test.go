package slab

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// entries reads a table with an Iter.
func entries(t *testing.T, table Table, r page.Reader, from uint64, reverse bool) (ids []uint64) {
	t.Helper()
	it := table.Iter(r, from, reverse)
	for it.Next() {
		ids = append(ids, it.ID())
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// moves makes Move copy half of the pages, in steps.
func moves(t *testing.T, r *rand.Rand, m *btree.Memory, table *Table) {
	t.Helper()
	moved := map[page.ID]bool{}
	pages := func(visit func(page.Ref)) {
		if err := table.Walk(m, func(ref page.Ref, _ int) error { visit(ref); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	pages(func(ref page.Ref) {
		if !m.Own(ref) && r.IntN(2) == 0 {
			moved[ref.ID()] = true
		}
	})
	for from, steps := uint64(1), 0; from != 0; steps++ {
		next, err := table.Move(m, from, 1+r.IntN(4), func(id page.ID) bool { return moved[id] })
		if err != nil || next != 0 && next <= from && steps > 0 || steps > 10_000 {
			t.Fatalf("from %d: next %d, %v", from, next, err)
		}
		from = next
	}
	pages(func(ref page.Ref) {
		if moved[ref.ID()] {
			t.Fatalf("page %d was not moved", ref.ID())
		}
	})
}

// TestTableFollowsModel sets and clears slots, dense and far apart, over writes that are committed or rolled back.
func TestTableFollowsModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := btree.NewMemory()
		var table Table
		model := map[uint64]Place{}
		id := func() uint64 {
			switch r.IntN(4) {
			case 0:
				return 1 + r.Uint64N(20)
			case 1:
				return 500 + r.Uint64N(30)
			case 2:
				return 1 + r.Uint64N(300_000)
			}
			return 1 + r.Uint64N(1<<40)
		}
		for range 60 {
			m.Begin()
			was, wasModel := table, map[uint64]Place{}
			for k, v := range model {
				wasModel[k] = v
			}
			for range r.IntN(40) {
				n := id()
				if have, ok := model[n]; ok && r.IntN(2) == 0 {
					if p, err := table.Get(m, n); err != nil || p != have {
						t.Fatalf("seed %d: %d: %v, %v; want %v", seed, n, p, err, have)
					}
					if err := table.Clear(m, n); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					delete(model, n)
				} else {
					p := Place(1 + r.Uint64())
					if err := table.Set(m, n, p); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					model[n] = p
				}
			}
			if r.IntN(4) == 0 {
				moves(t, r, m, &table)
			}
			if r.IntN(4) == 0 {
				m.Rollback()
				table, model = was, wasModel
			} else {
				m.Commit()
			}
			var want []uint64
			for k := range model {
				want = append(want, k)
			}
			slices.Sort(want)
			r2 := m.Snapshot()
			if got := entries(t, table, r2, 0, false); !slices.Equal(got, want) {
				t.Fatalf("seed %d: forward %v, want %v", seed, got, want)
			}
			backward := entries(t, table, r2, 0, true)
			slices.Reverse(backward)
			if !slices.Equal(backward, want) {
				t.Fatalf("seed %d: backward %v, want %v", seed, backward, want)
			}
			from := id()
			i, found := slices.BinarySearch(want, from)
			if got := entries(t, table, r2, from, false); !slices.Equal(got, want[i:]) {
				t.Fatalf("seed %d: from %d on %v, want %v", seed, from, got, want[i:])
			}
			if found {
				i++
			}
			back := entries(t, table, r2, from, true)
			slices.Reverse(back)
			if !slices.Equal(back, want[:i]) {
				t.Fatalf("seed %d: from %d back %v, want %v", seed, from, back, want[:i])
			}
			pages := uint64(0)
			err := table.Walk(r2, func(ref page.Ref, _ int) error {
				b, err := r2.Page(ref)
				if err == nil && used(b) == 0 {
					t.Errorf("seed %d: page %d of the table is empty", seed, ref.ID())
				}
				pages++
				return err
			})
			if err != nil || pages != table.Pages {
				t.Fatalf("seed %d: walked %d pages of %d (%v)", seed, pages, table.Pages, err)
			}
			r2.Release()
		}
		for done := false; !done; {
			m.Begin()
			var err error
			if done, err = table.DropStep(m, 3); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			m.Commit()
		}
		if table != (Table{}) {
			t.Fatalf("seed %d: something is left: %+v", seed, table)
		}
	}
}

func TestRecordTellsWhatIsNotIt(t *testing.T) {
	const off = 123 * Align
	record := []byte("a record of some bytes")
	b := make([]byte, Footprint(len(record)))
	p := Write(b, 7, 42, off, record)
	if got, err := Read(b, 7, 42, p, true); err != nil || string(got) != string(record) {
		t.Fatalf("%q, %v", got, err)
	}
	if p.Offset() != off {
		t.Fatalf("offset %d", p.Offset())
	}
	corrupt := func(name string, b []byte, coll uint32, id uint64, p Place) {
		t.Helper()
		if _, err := Read(b, coll, id, p, true); !errors.Is(err, page.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	corrupt("another collection", b, 8, 42, p)
	corrupt("another record", b, 7, 43, p)
	corrupt("another place", b, 7, 42, p+1)
	corrupt("an older version", b, 7, 42, p^1<<offsetBits)
	corrupt("cut off in the header", b[:8], 7, 42, p)
	corrupt("cut off in the record", b[:HeaderSize+3], 7, 42, p)
	for i := range HeaderSize + len(record) {
		c := slices.Clone(b)
		c[i] ^= 0x10
		corrupt("a flipped bit", c, 7, 42, p)
	}
}

// TestDamagedTableIsAnError reads tables whose pages hold anything.
func TestDamagedTableIsAnError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m := btree.NewMemory()
		m.Begin()
		var table Table
		for range 40 {
			if err := table.Set(m, 1+r.Uint64N(2000), Place(r.Uint64())|1); err != nil {
				t.Fatal(err)
			}
		}
		bad := table
		switch r.IntN(3) {
		case 0:
			bad.Height = uint8(r.IntN(9))
		case 1:
			bad.Root = page.Ref(r.Uint64())
		case 2:
			b, err := m.Page(table.Root)
			if err != nil {
				t.Fatal(err)
			}
			b[page.HeaderSize+r.IntN(64)] ^= byte(1 + r.IntN(255))
		}
		reader := tolerant{m}
		it := bad.Iter(reader, 0, false)
		for n := 0; n < 5000 && it.Next(); n++ {
		}
		_, _ = bad.Get(reader, 1+r.Uint64N(3000)) // an answer or an error, no panic
	}
}

// tolerant gives an error for a reference to nowhere, where Memory panics.
type tolerant struct{ m *btree.Memory }

func (r tolerant) Page(ref page.Ref) (b []byte, err error) {
	defer func() {
		if recover() != nil {
			err = page.ErrCorrupt
		}
	}()
	return r.m.Page(ref)
}
