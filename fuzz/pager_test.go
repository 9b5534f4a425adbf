package fuzz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// pager is the least store that lives on meta pages and the allocator: runs of pages that come and go in batches, snapshots
// that hold freed ones back, publishes. What it promises is kept as plain sets, and judged at every write and every crash:
//
//   - a page is handed out only if nothing holds it, and with storage: a full disk cannot hurt it;
//   - no page, bitmap or meta is written that a durable meta reaches;
//   - whatever a crash leaves opens as one of the two last published states, all their pages whole, and never as one before
//     what the log has proven;
//   - the bitmaps mark exactly what is reached, and in the end nothing is lost.
//
// The log is a number: the generation that it calls durable.
type pager struct {
	t    testing.TB
	draw *draw

	disk *simfs.FS
	e    *env.Env
	f    env.File
	a    *page.Allocator
	g    page.Geometry

	proven   uint64
	known    bool
	cur, old published // the durable metas
	next     uint64    // generation
	copies   uint64    // while recovery copies the newest meta: the first generation of a copy
	staged   state     // the snapshot that was last to be published
	failed   bool      // a page could not be written

	head    state
	visible state
	pins    []state
	held    []run // freed, but for a snapshot
	born    []run // in the open batch
	retired []page.Run
	batches []batch
	tickets []*page.Ticket
	stamps  uint64

	images int // how many crash images each step is judged by
	depth  int // of interrupted recoveries
}

// run is a piece of content: its pages hold its stamp.
type run struct {
	page.Run
	stamp uint64
}

// state is what a snapshot reaches, by first page.
type state map[page.ID]run

// batch is what a sealed batch added and took away.
type batch struct {
	born    []run
	retired []page.Run
}

// published is a durable meta: what it reaches, and the slots that it names.
type published struct {
	generation uint64
	state      state
	slots      map[page.ID]bool
}

const dataFile = "/data"

func newPager(t testing.TB, d *draw, g page.Geometry) *pager {
	p := &pager{t: t, draw: d, disk: simfs.New(simfs.Options{}), g: g, head: state{}, visible: state{}}
	p.e = p.disk.Env(1)
	var err error
	if p.f, err = p.e.FS.Open(dataFile, env.OpenCreate); err == nil {
		if err = p.disk.SyncDir("/"); err == nil {
			p.a, err = page.Create(p.e, p.f, g)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	p.next = 1
	for range 2 {
		p.publish()
	}
	p.watch()
	return p
}

// watch sets the judges on the disk.
func (p *pager) watch() {
	p.disk.SetHooks(simfs.Hooks{Watch: func(ev simfs.Event) {
		if ev.Op == simfs.OpWrite && ev.When == simfs.Before && ev.Path == dataFile {
			p.mayWrite(page.Run{First: page.ID(ev.Off / page.Size), Count: uint32(ev.Len / page.Size)})
		}
		if p.images == 0 {
			return
		}
		for _, c := range p.disk.Choices(p.draw.seed(), p.images) {
			p.judge(c)
		}
	}})
}

// mayWrite fails if a durable meta needs what the pages hold.
func (p *pager) mayWrite(r page.Run) {
	for id := r.First; id < r.End(); id++ {
		for _, m := range []published{p.cur, p.old} {
			if id < 2 && m.generation == p.cur.generation && id == page.ID(m.generation&1) {
				p.t.Fatalf("meta page %d written, which holds the newest durable meta, generation %d", id, m.generation)
			}
			if m.slots[id] {
				p.t.Fatalf("page %d written: a bitmap that generation %d names", id, m.generation)
			}
			if x, ok := m.state.at(id); ok {
				p.t.Fatalf("page %d written: it is part of %v, which generation %d reaches", id, x.Run, m.generation)
			}
		}
	}
}

// judge opens the image of a crash, on a clone, and throws it away.
func (p *pager) judge(c simfs.Choice) {
	defer func() {
		if p.t.Failed() {
			p.t.Log(p.disk.Describe(c))
		}
	}()
	q := p.clone(p.disk.Crash(c))
	q.draw = &draw{}
	q.open()
	q.disk.Discard()
}

// clone is a pager that has died with this one and now stands before disk.
func (p *pager) clone(disk *simfs.FS) *pager {
	return &pager{
		t: p.t, draw: p.draw, disk: disk, e: disk.Env(1), g: p.g,
		proven: p.proven, known: p.known, cur: p.cur, old: p.old, next: p.next, stamps: p.stamps, copies: p.copies, depth: p.depth,
	}
}

// open recovers what a crash has left.
func (p *pager) open() {
	var err error
	if p.f, err = p.e.FS.Open(dataFile, env.OpenExisting); err != nil {
		p.t.Fatal(err)
	}
	slot0, slot1, err := page.ReadMetaPages(p.f)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := page.Pick(slot0, slot1, p.proven, p.known)
	if err != nil {
		p.t.Fatal(err)
	}
	chosen, ok := p.durable(c.Chosen.Generation)
	if !ok || c.Chosen.Generation < p.proven {
		p.t.Fatalf("opened generation %d; durable are %d and %d, %d is proven", c.Chosen.Generation, p.cur.generation, p.old.generation, p.proven)
	}
	other := chosen
	if c.Fallback != nil {
		if other, ok = p.durable(c.Fallback.Generation); !ok {
			p.t.Fatalf("fallback is generation %d; durable are %d and %d", c.Fallback.Generation, p.cur.generation, p.old.generation)
		}
	}
	if c.Fallback == nil {
		// Recovery may be interrupted as well.
		p.cur, p.copies = chosen, c.Next
		if p.depth > 0 {
			p.depth--
			p.disk.SetHooks(simfs.Hooks{Watch: func(simfs.Event) {
				for _, c := range p.disk.Choices(p.draw.seed(), 3) {
					p.judge(c)
				}
			}})
		}
		c, err = page.Settle(p.f, c)
		p.disk.SetHooks(simfs.Hooks{})
		if err != nil {
			p.t.Fatal(err)
		}
		chosen.generation, other.generation = c.Chosen.Generation, c.Fallback.Generation
	}
	if p.a, err = page.Load(p.e, p.f, c); err != nil {
		p.t.Fatal(err)
	}
	p.cur, p.old, p.next, p.copies = chosen, other, c.Next, 0
	p.head, p.visible = maps.Clone(chosen.state), chosen.state
	p.audit(page.MapPublished, chosen.state.runs())
	p.audit(page.MapUsed, chosen.state.runs())
	p.audit(page.MapFallback, other.state.runs())
	p.whole(chosen)
	p.whole(other)
}

// durable is what was published with the generation, by a publish or by a copy of the newest one.
func (p *pager) durable(generation uint64) (published, bool) {
	switch {
	case generation == p.cur.generation:
		return p.cur, true
	case generation == p.old.generation:
		return p.old, true
	case p.copies > 0 && generation >= p.copies:
		m := p.cur
		m.generation = generation
		return m, true
	}
	return published{}, false
}

// whole reads all that m reaches.
func (p *pager) whole(m published) {
	b := make([]byte, page.Size)
	for _, r := range m.state {
		for id := r.First; id < r.End(); id++ {
			if _, err := p.f.ReadAt(b, int64(id)*page.Size); err != nil {
				p.t.Fatal(err)
			}
			for at := 0; at < page.Size; at += 512 {
				if got := binary.LittleEndian.Uint64(b[at:]); got != r.stamp {
					p.t.Fatalf("page %d, byte %d: holds %d, generation %d has %d there", id, at, got, m.generation, r.stamp)
				}
			}
		}
	}
}

func (p *pager) audit(m page.Map, runs []page.Run) {
	faults, err := p.a.Audit(m, func(yield func(page.Run)) error {
		for _, r := range runs {
			yield(r)
		}
		return nil
	})
	if err == nil {
		err = p.a.Check()
	}
	if err != nil || len(faults) > 0 {
		p.t.Fatalf("map %d: %v, %v", m, faults, err)
	}
}

// take makes the run a part of the head.
func (p *pager) take(r page.Run) {
	for id := r.First; id < r.End(); id++ {
		for name, s := range map[string]state{
			"the head": p.head, "what is freed, but held": stateOf(p.held), "what is being published": p.staged,
			"the newest meta": p.cur.state, "the other meta": p.old.state,
		} {
			if x, ok := s.at(id); ok {
				p.t.Fatalf("page %d handed out, but %v is part of %s", id, x.Run, name)
			}
		}
		if p.fixed(id) {
			p.t.Fatalf("page %d handed out, but it is the allocator's", id)
		}
	}
	p.stamps++
	x := run{r, p.stamps}
	p.head[r.First] = x
	p.born = append(p.born, x)
	if p.draw.n(4) == 0 {
		p.write(x)
	}
}

func (p *pager) write(r run) {
	b := make([]byte, int(r.Count)*page.Size)
	for at := 0; at < len(b); at += 512 {
		binary.LittleEndian.PutUint64(b[at:], r.stamp)
	}
	if _, err := p.f.WriteAt(b, int64(r.First)*page.Size); errors.Is(err, simfs.EIO) {
		p.failed = true
	} else if err != nil {
		p.t.Fatalf("%v was reserved: %v", r.Run, err)
	}
}

// retire takes some run out of the head.
func (p *pager) retire() {
	if len(p.head) == 0 {
		return
	}
	firsts := slices.Sorted(maps.Keys(p.head))
	r := p.head[firsts[p.draw.n(len(firsts))]]
	delete(p.head, r.First)
	if i := slices.Index(p.born, r); i >= 0 { // no snapshot has seen it
		p.born = slices.Delete(p.born, i, i+1)
		p.a.Free(r.Run)
		return
	}
	p.retired = append(p.retired, r.Run)
	p.held = append(p.held, r)
	p.sweep()
}

// sweep frees what no snapshot reaches any more.
func (p *pager) sweep() {
	p.held = slices.DeleteFunc(p.held, func(r run) bool {
		for _, s := range append(p.pins, p.visible) {
			if s[r.First] == r {
				return false
			}
		}
		p.a.Free(r.Run)
		return true
	})
}

// seal ends the batch: a snapshot.
func (p *pager) seal() {
	p.batches = append(p.batches, batch{p.born, p.retired})
	p.born, p.retired = nil, nil
	p.visible = maps.Clone(p.head)
	p.sweep()
}

// publish makes the visible snapshot durable. It is false if the disk did not let it.
func (p *pager) publish() bool {
	p.seal()
	snapshot := p.visible
	p.staged = snapshot
	if p.draw.n(2) == 0 { // if not, the allocator alone keeps its pages
		p.pins = append(p.pins, snapshot)
	}
	for _, b := range p.batches {
		p.a.Stage(runsOf(b.born), b.retired)
	}
	p.batches = nil
	for _, first := range slices.Sorted(maps.Keys(snapshot)) {
		r := snapshot[first]
		if p.cur.state[first] != r {
			p.write(r)
		}
	}
	m := page.Meta{UUID: [16]byte{7}, Generation: p.next}
	err := p.a.WriteBitmaps(&m)
	p.meanwhile()
	if err == nil {
		err = p.f.Datasync()
		p.meanwhile()
		if err == nil && !p.failed {
			if err = m.Write(p.f); err == nil {
				p.meanwhile()
				err = p.f.Datasync()
			}
		}
		if err != nil || p.failed {
			return false // for good
		}
		p.a.Published()
		p.old = p.cur
		p.cur = published{m.Generation, snapshot, p.slots(&m)}
		p.next++
	} else {
		p.a.Abandon()
	}
	p.pins = slices.DeleteFunc(p.pins, func(s state) bool { return fmt.Sprintf("%p", s) == fmt.Sprintf("%p", snapshot) })
	p.sweep()
	if p.draw.n(4) > 0 {
		p.prove()
	}
	return true
}

// prove writes the block that says that the newest meta is durable.
func (p *pager) prove() { p.proven, p.known = p.cur.generation, true }

// slots reads from the file which pages the meta's directory stands for.
func (p *pager) slots(m *page.Meta) map[page.ID]bool {
	slots := map[page.ID]bool{}
	head := func(region int) page.ID {
		id := page.ID(region) * page.ID(p.g.RegionPages)
		if region == 0 {
			id += 2
		}
		return id
	}
	d := m.Directory
	if d.Regions <= int(p.g.Inline) {
		for i, s := range d.Slots {
			if s.Number > 0 {
				slots[head(i)+page.ID(s.Number)-1] = true
			}
		}
		return slots
	}
	for i, s := range d.Slots {
		id := head(i*int(p.g.PerPage)) + 3 + page.ID(s.Number) - 1
		slots[id] = true
		b := make([]byte, page.Size)
		if _, err := p.f.ReadAt(b, int64(id)*page.Size); err != nil {
			p.t.Fatal(err)
		}
		for k := range int(p.g.PerPage) {
			if n := b[k*12+4] & 3; n > 0 {
				slots[head(i*int(p.g.PerPage)+k)+page.ID(n)-1] = true
			}
		}
	}
	return slots
}

func (p *pager) fixed(id page.ID) bool {
	region, n := int(id/page.ID(p.g.RegionPages)), page.ID(3)
	if region == 0 {
		n += 2
	}
	if region%int(p.g.PerPage) == 0 {
		n += 3
	}
	return id%page.ID(p.g.RegionPages) < n
}

// meanwhile is life beside a publish.
func (p *pager) meanwhile() {
	for range p.draw.n(6) {
		p.step()
	}
}

// step is a small one: pages come, go, are held back.
func (p *pager) step() {
	switch p.draw.n(8) {
	case 0, 1:
		q := page.Request{Pages: p.draw.n(24), Privileged: p.draw.n(4) == 0}
		for range p.draw.n(3) {
			q.Runs = append(q.Runs, uint32(1+p.draw.n(int(p.a.MaxRun()))))
		}
		t, err := p.a.Reserve(q)
		if err == nil {
			p.tickets = append(p.tickets, t)
		} else if !errors.Is(err, env.ErrNoSpace) {
			p.t.Fatal(err)
		}
	case 2, 3:
		if len(p.tickets) > 0 {
			t := p.tickets[p.draw.n(len(p.tickets))]
			if n := p.draw.n(20); n >= 16 {
				if r, ok := t.Run(uint32(n)); ok {
					p.take(r)
				}
			} else {
				for range n {
					if id, ok := t.Page(); ok {
						p.take(page.Run{First: id, Count: 1})
					}
				}
			}
		}
	case 4:
		if len(p.tickets) > 0 {
			i := p.draw.n(len(p.tickets))
			p.tickets[i].Release()
			p.tickets = slices.Delete(p.tickets, i, i+1)
		}
	case 5:
		for range p.draw.n(12) {
			p.retire()
		}
	case 6:
		p.seal()
	case 7:
		if len(p.pins) > 1+p.draw.n(3) {
			p.pins = p.pins[1:]
			p.sweep()
		} else {
			p.pins = append(p.pins, p.visible)
		}
	}
}

// bigStep may end this process's life: the pager that goes on is returned.
func (p *pager) bigStep() *pager {
	switch p.draw.n(16) {
	default:
		p.step()
	case 0, 1, 2:
		if !p.publish() {
			return p.crash(simfs.Choice{Gen: simfs.Killed})
		}
	case 3:
		choices := p.disk.Choices(p.draw.seed(), 8)
		return p.crash(choices[p.draw.n(len(choices))])
	case 4:
		return p.crash(simfs.Choice{Gen: simfs.Killed})
	case 5: // the publish is cut short by a crash, or by an error
		n := 1 + p.draw.n(12)
		f := simfs.Fault{Err: simfs.EIO, Short: int64(p.draw.n(9) * 512)}
		f.Sync = []simfs.SyncFault{simfs.StayDirty, simfs.CleanKept, simfs.CleanReverted}[p.draw.n(3)]
		return p.failing(simfs.FailNth(n, f, simfs.OpWrite, simfs.OpSync, simfs.OpSize))
	case 6:
		// Both metas must be known to last: so a process that trims has published, and proven it.
		p.prove()
		if err := p.a.Trim(); err != nil {
			p.t.Fatal(err)
		}
	case 7:
		p.disk.SetCapacity(p.disk.Used() + int64(p.draw.n(200)*page.Size))
	case 8:
		p.disk.SetCapacity(0)
	case 9:
		p.a.SetReserve(p.draw.n(100))
	case 10:
		p.prove()
	case 11:
		p.disk.WriteBack(p.draw.seed(), 0.5)
	}
	return p
}

// failing publishes on a disk that fails. An error in the bitmaps is not the end; one in a page, the meta or a sync is.
func (p *pager) failing(fault func(simfs.Call) *simfs.Fault) *pager {
	p.disk.SetHooks(simfs.Hooks{Fault: fault})
	ok := p.publish()
	if !ok {
		return p.crash(simfs.Choice{Gen: simfs.Killed})
	}
	p.watch()
	return p
}

func (p *pager) crash(c simfs.Choice) *pager {
	q := p.clone(p.disk.Crash(c))
	q.images = p.images
	p.disk.SetHooks(simfs.Hooks{})
	p.disk.Discard()
	q.disk.SetCapacity(0)
	q.open()
	q.watch()
	return q
}

// end gives everything back, and looks whether it is all there.
func (p *pager) end() {
	p.disk.SetCapacity(0)
	for _, t := range p.tickets {
		t.Release()
	}
	p.tickets, p.pins = nil, nil
	for len(p.head) > 0 {
		p.retire()
	}
	p.draw.data = nil // no more surprises
	for range 3 {
		if !p.publish() {
			p.t.Fatal("publish failed")
		}
	}
	s := p.a.Stats()
	fixed := uint64(0)
	for id := range page.ID(s.File) {
		if p.fixed(id) {
			fixed++
		}
	}
	if s.Free+fixed != s.File || s.Used != fixed || s.Pending != 0 {
		p.t.Fatalf("%+v, of which %d fixed: pages are lost", s, fixed)
	}
	p.disk.Discard()
}

func (s state) runs() (runs []page.Run) {
	for _, first := range slices.Sorted(maps.Keys(s)) {
		runs = append(runs, s[first].Run)
	}
	return runs
}

// at is the run that page id is part of.
func (s state) at(id page.ID) (run, bool) {
	if r, ok := s[id]; ok {
		return r, true
	}
	for _, r := range s {
		if r.First <= id && id < r.End() {
			return r, true
		}
	}
	return run{}, false
}

func stateOf(runs []run) state {
	s := state{}
	for _, r := range runs {
		s[r.First] = r
	}
	return s
}

func runsOf(runs []run) (out []page.Run) {
	for _, r := range runs {
		out = append(out, r.Run)
	}
	return out
}

// draw makes decisions out of bytes; when they are used up, all are 0.
type draw struct {
	data []byte
	k    uint64
}

func (d *draw) n(n int) int {
	if len(d.data) == 0 || n <= 1 {
		return 0
	}
	b := int(d.data[0])
	d.data = d.data[1:]
	return b % n
}

func (d *draw) seed() uint64 {
	d.k++
	return d.k<<32 + uint64(len(d.data))
}

var pagerGeometries = []page.Geometry{
	{RegionPages: 64, Inline: 3, PerPage: 5},
	{RegionPages: 128, Inline: 2, PerPage: 4},
	{RegionPages: 64, Inline: 40, PerPage: 40},
	{RegionPages: 1024, Inline: 2, PerPage: 2},
}

func runPager(t testing.TB, data []byte, images int) {
	d := &draw{data: data}
	p := newPager(t, d, pagerGeometries[d.n(len(pagerGeometries))])
	p.images, p.depth = images, 1
	for len(d.data) > 0 {
		p = p.bigStep()
	}
	p.end()
}

// FuzzPager allocates, frees, pins, publishes, fails, crashes and reopens as the bytes say.
func FuzzPager(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		runPager(t, data[:min(len(data), 600)], 0)
	})
}

// After every write, part of a write and sync, and inside every sync, images of a crash are opened and judged.
func TestPagerSurvivesACrashAfterEveryWrite(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runPager(t, randomBytes(seed, 200), 3) })
	}
}

// The same over many lives, of which each ends in one crash.
func TestPagerLivesOn(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runPager(t, randomBytes(seed, 2000), 0) })
	}
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	b[0] = byte(seed)
	return b
}
