package page

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/env"
)

// model is the allocator as sets of pages, without bits, groups or hints.
type model struct {
	t       *rapid.T
	b       *bench
	live    map[ID]Run  // taken, by first page
	staged  map[ID]bool // reached by what is to be published next
	cur     map[ID]bool
	old     map[ID]bool
	born    []Run // since the last publish
	retired []Run
	tickets []*Ticket
	full    bool // the disk
}

func pagesOf(r Run) (ids []ID) {
	for id := r.First; id < r.End(); id++ {
		ids = append(ids, id)
	}
	return ids
}

// busy are all pages that must not be handed out, those in tickets not counted.
func (m *model) busy() map[ID]bool {
	busy := map[ID]bool{}
	for _, s := range []map[ID]bool{m.staged, m.cur, m.old} {
		maps.Copy(busy, s)
	}
	for _, r := range m.live {
		for _, id := range pagesOf(r) {
			busy[id] = true
		}
	}
	return busy
}

// handedOut checks what the allocator gives, and writes it: a full disk must not matter.
func (m *model) handedOut(r Run) {
	busy, g := m.busy(), m.b.geometry
	for _, id := range pagesOf(r) {
		if busy[id] {
			m.t.Fatalf("page %d handed out, but it is in use", id)
		}
		if number := g.regionOf(id); int(id)-number*int(g.RegionPages) < g.fixedPages(number) {
			m.t.Fatalf("page %d handed out, but it is fixed", id)
		}
		if _, err := m.b.f.WriteAt([]byte{1}, int64(id)*Size); err != nil {
			m.t.Fatalf("page %d has no storage: %v", id, err)
		}
	}
	m.live[r.First] = r
	m.born = append(m.born, r)
}

// low checks that what the ticket gave ends below where it must.
func (m *model) low(k *Ticket, end ID) {
	if k.below > 0 && end > k.below {
		m.t.Fatalf("page %d handed out, from a ticket for pages below %d", end-1, k.below)
	}
}

func (m *model) someTicket() *Ticket {
	if len(m.tickets) == 0 {
		m.t.Skip("no ticket")
	}
	return rapid.SampledFrom(m.tickets).Draw(m.t, "ticket")
}

func TestAllocatorAgainstSets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := Geometry{
			RegionPages: rapid.SampledFrom([]uint32{64, 128, 512}).Draw(rt, "regionPages"),
			Inline:      uint16(rapid.IntRange(2, 6).Draw(rt, "inline")),
			PerPage:     uint16(rapid.IntRange(2, 8).Draw(rt, "perPage")),
		}
		m := &model{t: rt, b: newBench(t, g), live: map[ID]Run{}, staged: map[ID]bool{}, cur: map[ID]bool{}, old: map[ID]bool{}}
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": m.reserve,
			"page": func(rt *rapid.T) {
				m.t = rt
				k := m.someTicket()
				if id, ok := k.Page(); ok {
					m.low(k, id+1)
					m.handedOut(Run{id, 1})
				}
			},
			"run": func(rt *rapid.T) {
				m.t = rt
				n := rapid.Uint32Range(1, 70).Draw(rt, "n")
				k := m.someTicket()
				if r, ok := k.Run(n); ok {
					m.low(k, r.End())
					if r.Count != n {
						rt.Fatalf("asked for %d pages, got %v", n, r)
					}
					m.handedOut(r)
				}
			},
			"release": func(rt *rapid.T) {
				m.t = rt
				k := m.someTicket()
				k.Release()
				m.tickets = slices.DeleteFunc(m.tickets, func(o *Ticket) bool { return o == k })
			},
			"free": func(rt *rapid.T) {
				if len(m.live) == 0 {
					rt.Skip("nothing to free")
				}
				first := rapid.SampledFrom(slices.Sorted(maps.Keys(m.live))).Draw(rt, "page")
				r := m.live[first]
				delete(m.live, first)
				m.b.Free(r)
				if i := slices.Index(m.born, r); i >= 0 {
					m.born = slices.Delete(m.born, i, i+1) // never was in a snapshot
				} else {
					m.retired = append(m.retired, r)
				}
			},
			"publish": func(rt *rapid.T) {
				for _, r := range m.born {
					for _, id := range pagesOf(r) {
						m.staged[id] = true
					}
				}
				for _, r := range m.retired {
					for _, id := range pagesOf(r) {
						delete(m.staged, id)
					}
				}
				m.b.publish(m.born, m.retired)
				m.born, m.retired = nil, nil
				m.old, m.cur = m.cur, maps.Clone(m.staged)
			},
			"reserve of the disk": func(rt *rapid.T) { m.b.SetReserve(rapid.IntRange(0, 200).Draw(rt, "pages")) },
			"disk full": func(rt *rapid.T) {
				m.full = true
				m.b.disk().SetCapacity(m.b.disk().Used() + int64(rapid.IntRange(0, 100).Draw(rt, "left"))*Size)
			},
			"disk grows": func(rt *rapid.T) { m.full = false; m.b.disk().SetCapacity(0) },
			"trim": func(rt *rapid.T) {
				if err := m.b.Trim(); err != nil {
					rt.Fatal(err)
				}
			},
			"punch": func(rt *rapid.T) {
				keep, shortest := rapid.IntRange(0, 200).Draw(rt, "keep"), rapid.IntRange(1, 70).Draw(rt, "shortest")
				before := m.b.Stats()
				runs, err := m.b.Punch(keep, shortest)
				if err != nil {
					rt.Fatal(err)
				}
				busy := m.busy()
				for _, r := range runs {
					if r.Count < uint32(shortest) {
						rt.Fatalf("punched %v, shorter than %d", r, shortest)
					}
					for _, id := range pagesOf(r) {
						if busy[id] {
							rt.Fatalf("page %d punched, but it is in use", id)
						}
					}
				}
				after := m.b.Stats()
				if before.Free-before.Unbacked >= before.Reserve && after.Free-after.Unbacked < after.Reserve {
					rt.Fatalf("before %+v, after %+v: the reserve was punched", before, after)
				}
			},
			"reopen": m.reopen,
			"":       m.compare,
		})
		// Nothing is lost: when all is given back, all but the fixed pages is free.
		m.t = rt
		for _, k := range m.tickets {
			k.Release()
		}
		for _, first := range slices.Sorted(maps.Keys(m.live)) {
			m.b.Free(m.live[first])
		}
		var all []Run
		for _, id := range slices.Sorted(maps.Keys(m.staged)) {
			all = append(all, Run{id, 1})
		}
		m.b.publish(nil, all)
		m.b.publish(nil, nil)
		if s := m.b.Stats(); s.Free+uint64(fixedBelow(m.b.Allocator)) != s.File {
			rt.Fatalf("%+v: pages are lost", s)
		}
	})
}

// fixedBelow counts the fixed pages below the end of the file.
func fixedBelow(a *Allocator) (n int) {
	for i, r := range a.regions {
		if r.limit > 0 {
			n += a.geometry.fixedPages(i)
		}
	}
	return n
}

func (m *model) reserve(rt *rapid.T) {
	q := Request{
		Pages:      rapid.IntRange(0, 100).Draw(rt, "pages"),
		Runs:       rapid.SliceOfN(rapid.Uint32Range(1, min(m.b.MaxRun(), 130)), 0, 3).Draw(rt, "runs"),
		Privileged: rapid.Bool().Draw(rt, "privileged"),
		Below:      ID(max(0, rapid.IntRange(-2000, 2000).Draw(rt, "below"))),
	}
	before, fixedBefore := m.b.Stats(), fixedBelow(m.b.Allocator)
	k, err := m.b.Reserve(q)
	after, fixedAfter := m.b.Stats(), fixedBelow(m.b.Allocator)
	limit := uint64(m.b.geometry.RegionPages) * uint64(m.b.geometry.regionsMax())
	room := limit - before.File
	switch {
	case err == nil:
		m.tickets = append(m.tickets, k)
		if q.Below > 0 && after.File > before.File {
			rt.Fatalf("the file grew for pages below %d: before %+v, after %+v", q.Below, before, after)
		}
		if !q.Privileged && after.Free-after.Unbacked < after.Reserve {
			rt.Fatalf("%+v: an ordinary ticket took from the reserve", after)
		}
	case !errors.Is(err, env.ErrNoSpace):
		rt.Fatal(err)
	case int(after.Used)-fixedAfter != int(before.Used)-fixedBefore || after.Pending != before.Pending:
		rt.Fatalf("before the ticket that failed %+v, after it %+v", before, after)
	case !m.full && room > 800 && q.Below == 0:
		rt.Fatalf("%+v: no space, though the disk has some and the file may grow by %d pages", after, room)
	}
}

func (m *model) reopen(rt *rapid.T) {
	if err := m.b.reopen(); err != nil {
		rt.Fatal(err)
	}
	m.tickets, m.born, m.retired, m.live = nil, nil, nil, map[ID]Run{}
	m.staged = maps.Clone(m.cur)
	for id := range m.cur {
		m.live[id] = Run{id, 1}
	}
	m.b.SetReserve(0)
}

// compare checks the allocator's maps and sums against the sets.
func (m *model) compare(rt *rapid.T) {
	m.b.sound()
	asRuns := func(s map[ID]bool) (runs []Run) {
		for _, id := range slices.Sorted(maps.Keys(s)) {
			runs = append(runs, Run{id, 1})
		}
		return runs
	}
	if f := m.b.faults(MapPublished, asRuns(m.cur)...); f != "" {
		rt.Fatal("newest meta: ", f)
	}
	if f := m.b.faults(MapFallback, asRuns(m.old)...); f != "" {
		rt.Fatal("other meta: ", f)
	}
	used := slices.Collect(maps.Values(m.live))
	for _, k := range m.tickets {
		used = append(used, k.runs...)
		for _, id := range k.pages {
			used = append(used, Run{id, 1})
		}
	}
	if f := m.b.faults(MapUsed, used...); f != "" {
		rt.Fatal("in memory: ", f)
	}
	for _, k := range m.tickets {
		for _, r := range append(k.runs[:len(k.runs):len(k.runs)], asRuns(m.old)...) {
			if want := m.old[r.First] || m.cur[r.First]; m.b.Reached(r) != want {
				rt.Fatalf("run %v: reached by a meta: %v", r, !want)
			}
		}
	}
}
