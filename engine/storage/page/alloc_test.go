package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// bench is an allocator on a file in memory, and the publishes that make its life.
type bench struct {
	testing.TB
	*Allocator
	e    *env.Env
	f    env.File
	meta Meta
}

func newBench(t testing.TB, g Geometry) *bench {
	e := simfs.Memory()
	f, err := e.FS.Open("/data", env.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Create(e, f, g)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, Allocator: a, e: e, f: f}
	b.publish(nil, nil)
	b.publish(nil, nil)
	return b
}

// disk is the disk that the file is on.
func (b *bench) disk() *simfs.FS { return b.e.FS.(*simfs.FS) }

// take reserves and takes everything at once.
func (b *bench) take(q Request) []Run {
	b.Helper()
	t, err := b.Reserve(q)
	if err != nil {
		b.Fatal(err)
	}
	var runs []Run
	for range q.Pages {
		id, ok := t.Page()
		if !ok {
			b.Fatal("the ticket is short of a page")
		}
		runs = append(runs, Run{id, 1})
	}
	for _, n := range q.Runs {
		run, ok := t.Run(n)
		if !ok || run.Count != n {
			b.Fatalf("the ticket is short of a run of %d pages", n)
		}
		runs = append(runs, run)
	}
	t.Release()
	return runs
}

func (b *bench) publish(born, retired []Run) {
	b.Helper()
	b.Stage(born, retired)
	b.meta.Generation++
	if err := b.WriteBitmaps(&b.meta); err != nil {
		b.Fatal(err)
	}
	if err := b.meta.Write(b.f); err != nil {
		b.Fatal(err)
	}
	b.Published()
	b.sound()
}

func (b *bench) choice() (Choice, error) {
	slot0, slot1, err := ReadMetaPages(b.f)
	if err != nil {
		b.Fatal(err)
	}
	return Pick(slot0, slot1, b.meta.Generation, true)
}

func (b *bench) reopen() error {
	c, err := b.choice()
	if err == nil {
		c, err = Settle(b.f, c)
	}
	if err != nil {
		return err
	}
	b.Allocator, err = Load(b.e, b.f, c)
	if err == nil {
		b.meta = c.Chosen
		b.sound()
	}
	return err
}

func (b *bench) sound() {
	b.Helper()
	if err := b.Check(); err != nil {
		b.Fatal(err)
	}
	s := b.Stats()
	if s.Used+s.Pending+s.Free != s.File {
		b.Fatalf("%+v does not add up", s)
	}
}

// faults compares a map with the runs.
func (b *bench) faults(m Map, runs ...Run) string {
	b.Helper()
	faults, err := b.Audit(m, func(yield func(Run)) error {
		for _, r := range runs {
			yield(r)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	var s []string
	for _, f := range faults {
		s = append(s, f.String())
	}
	return strings.Join(s, "; ")
}

func TestPageNeverPublishedIsFreeAtOnce(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	runs := b.take(Request{Pages: 1})
	if runs[0].First != 8 {
		t.Fatalf("first page is %d", runs[0].First)
	}
	b.Free(runs[0])
	if again := b.take(Request{Pages: 1}); again[0] != runs[0] {
		t.Fatalf("took %v, then %v", runs, again)
	}
}

func TestPageIsReusedTwoPublishesAfterItsLast(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	runs := b.take(Request{Pages: 1, Runs: []uint32{4}})
	b.publish(runs, nil)
	for _, r := range runs {
		b.Free(r)
	}
	for i := range 2 {
		if !b.Reached(runs[0]) || !b.Reached(runs[1]) {
			t.Fatalf("after %d publishes no meta reaches %v", i, runs)
		}
		other := b.take(Request{Pages: 1, Runs: []uint32{4}})
		if other[0] == runs[0] || other[1] == runs[1] {
			t.Fatalf("used again after %d publishes", i)
		}
		for _, r := range other {
			b.Free(r)
		}
		if i == 0 {
			b.publish(nil, runs)
		} else {
			b.publish(nil, nil)
		}
	}
	if again := b.take(Request{Pages: 1, Runs: []uint32{4}}); !slices.Equal(again, runs) {
		t.Fatalf("took %v, not %v", again, runs)
	}
}

func TestSinglePagesKeepOutOfRuns(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	// A file full of extents of 1 MiB, of which every other one has been freed.
	extents := b.take(Request{Runs: slices.Repeat([]uint32{256}, 40)})
	for i := 0; i < 40; i += 2 {
		b.Free(extents[i])
	}
	// Tree pages come one by one, and go in the same order, a hundred living.
	var live []Run
	for range 5000 {
		live = append(live, b.take(Request{Pages: 1})...)
		if len(live) > 100 {
			b.Free(live[0])
			live = live[1:]
		}
	}
	// They must have spoilt one extent at most.
	n := 0
	for i := 0; i < 40; i += 2 {
		n += len(b.take(Request{Runs: []uint32{256}}))
	}
	if s := b.Stats(); s.File > uint64(extents[39].End())+4*groupPages+s.File/growthShare {
		t.Fatalf("%d extents needed %d pages, the last ended at %d", n, s.File, extents[39].End())
	}
	b.sound()
}

func TestShortRunsLieWithinAGroupOfPages(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	for _, n := range []uint32{4, 8, 16, 32, 3, 5, 33, 63, 1} {
		r := b.take(Request{Runs: []uint32{n}})[0]
		align := ID(1)
		for align*2 <= ID(n) {
			align *= 2
		}
		if r.First%align != 0 || r.First/groupPages != (r.End()-1)/groupPages {
			t.Errorf("run of %d pages at %d", n, r.First)
		}
	}
	b.sound()
}

func TestRunsUpToTheLargest(t *testing.T) {
	for _, g := range []Geometry{tiny, {RegionPages: 128, Inline: 10, PerPage: 10}, {RegionPages: 256, Inline: 10, PerPage: 1}} {
		b := newBench(t, g)
		seen := map[ID]bool{}
		for n := uint32(1); n <= b.MaxRun(); n += 1 + n/7 {
			r := b.take(Request{Runs: []uint32{n}})[0]
			for id := r.First; id < r.End(); id++ {
				if seen[id] {
					t.Fatalf("%+v: page %d handed out twice", g, id)
				}
				seen[id] = true
			}
			if n%2 == 0 {
				b.Free(r)
				for id := r.First; id < r.End(); id++ {
					delete(seen, id)
				}
			}
			b.sound()
		}
		if _, err := b.Reserve(Request{Runs: []uint32{b.MaxRun() + 1}}); err == nil {
			t.Fatal("a run larger than the largest")
		}
		for {
			if _, err := b.Reserve(Request{Runs: []uint32{b.MaxRun()}}); errors.Is(err, env.ErrNoSpace) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if s := b.Stats(); s.File != uint64(g.RegionPages)*uint64(g.regionsMax()) && s.File < uint64(g.RegionPages)*uint64(g.regionsMax()-1) {
			t.Fatalf("%+v: the largest file has %d pages", g, s.File)
		}
	}
}

func TestReopenKeepsExactlyWhatWasPublished(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	kept := b.take(Request{Pages: 100, Runs: []uint32{4, 256, 1000}})
	b.publish(kept, nil)
	b.take(Request{Pages: 50, Runs: []uint32{64}}) // never published
	if err := b.reopen(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []Map{MapUsed, MapPublished} {
		if f := b.faults(m, kept...); f != "" {
			t.Fatal(f)
		}
	}
	if f := b.faults(MapFallback); f != "" {
		t.Fatal(f)
	}
	if s := b.Stats(); s.Free != s.Unbacked {
		t.Fatalf("%+v: after an open nothing is known of free pages", s)
	}
	// What the trees had, they go on with: no run is placed among single pages.
	r := b.take(Request{Runs: []uint32{16}})[0]
	if w := r.First / groupPages; w <= kept[99].First/groupPages && w >= kept[0].First/groupPages {
		t.Fatalf("run %v in a group", r)
	}
	b.publish(nil, nil)
}

func TestAuditNamesFaults(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	runs := b.take(Request{Pages: 10, Runs: []uint32{256}})
	b.publish(runs, nil)
	p, big := runs[0].First, runs[10]
	got := b.faults(MapPublished, append([]Run{{p, 1}, {3, 1}, {9999, 2}, {big.First - 1, 1}, {p + 9, 1}}, runs[2:]...)...)
	want := fmt.Sprintf("page 3: reached, but it belongs to the allocator; "+
		"pages 9999 to 10000: reached, but it lies outside of the file; "+
		"page %d: reached twice; page %d: reached, but marked as free; page %d: in use, but nothing reaches it",
		p+9, big.First-1, p+1)
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// In a file of many small regions the directory leaves the meta page, and comes back.
func TestDirectoryPages(t *testing.T) {
	b := newBench(t, tiny)
	var runs []Run
	for len(b.meta.Directory.Slots) != b.geometry.dirPages(20) || b.meta.Directory.Regions != 20 {
		born := b.take(Request{Runs: []uint32{16}})
		runs = append(runs, born...)
		b.publish(born, nil)
		if f := b.faults(MapPublished, runs...); f != "" {
			t.Fatal(f)
		}
		if err := b.reopen(); err != nil {
			t.Fatal(err)
		}
		if f := b.faults(MapPublished, runs...) + b.faults(MapUsed, runs...); f != "" {
			t.Fatal(f)
		}
	}
	for len(runs) > 1 {
		last := runs[len(runs)-1]
		runs = runs[:len(runs)-1]
		b.Free(last)
		b.publish(nil, []Run{last})
		if err := b.reopen(); err != nil {
			t.Fatal(err)
		}
		if f := b.faults(MapPublished, runs...); f != "" {
			t.Fatal(f)
		}
	}
	if b.meta.Directory.Regions != 1 {
		t.Fatalf("%d regions for one run", b.meta.Directory.Regions)
	}
	b.publish(nil, nil)
	if err := b.Trim(); err != nil {
		t.Fatal(err)
	}
	if size, _ := b.f.Size(); size != int64(runs[0].End())*Size || b.HighWater() != runs[0].End() {
		t.Fatalf("the file ends at %d, the last page in use at %d", size, runs[0].End()*Size)
	}
	b.sound()
	if err := b.reopen(); err != nil {
		t.Fatal(err)
	}
	b.take(Request{Pages: 100})
	b.sound()
}

func TestLoadNamesDamage(t *testing.T) {
	b := newBench(t, tiny)
	runs := b.take(Request{Runs: slices.Repeat([]uint32{32}, 9)})
	b.publish(runs, nil)
	b.publish(nil, runs[8:])
	c, err := b.choice()
	if err != nil {
		t.Fatal(err)
	}
	flip := func(id ID) {
		one := make([]byte, 1)
		at := int64(id)*Size + 4000
		if _, err := b.f.ReadAt(one, at); err != nil {
			t.Fatal(err)
		}
		one[0] ^= 8
		if _, err := b.f.WriteAt(one, at); err != nil {
			t.Fatal(err)
		}
	}
	chosen, _, err := readSlots(b.f, &c.Chosen)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		id   ID
		want string
	}{
		{b.geometry.bitmapSlot(1, chosen[1].Number), fmt.Sprintf("bitmap of region 1, slot %d", chosen[1].Number)},
		{b.geometry.dirSlot(0, c.Chosen.Directory.Slots[0].Number), fmt.Sprintf("directory page 0, slot %d", c.Chosen.Directory.Slots[0].Number)},
		{b.geometry.dirSlot(0, c.Fallback.Directory.Slots[0].Number), fmt.Sprintf("directory page 0, slot %d", c.Fallback.Directory.Slots[0].Number)},
	} {
		flip(x.id)
		if _, err := Load(b.e, b.f, c); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("damage to %s: %v", x.want, err)
		}
		flip(x.id)
	}
	if _, err := Load(b.e, b.f, c); err != nil {
		t.Fatal(err)
	}
	// A bitmap that its checksum calls good may still say what cannot be.
	for _, mark := range []struct {
		bit  int
		want string
	}{{0, "cannot be marked"}, {8 * Size / 2, "cannot be marked"}} {
		page := make([]byte, Size)
		putWords(page, b.regions[1].cur)
		page[mark.bit/8] ^= 1
		s := chosen[1]
		s.CRC = Checksum(page)
		if _, err := b.f.WriteAt(page, int64(b.geometry.bitmapSlot(1, s.Number))*Size); err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(chosen)
		bad[1] = s
		m := newRegion(tiny, 1, 64, new(tally)).cur
		if _, err := b.loadBitmap(m, bad, 1, c.Chosen.HighWater); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), mark.want) {
			t.Errorf("bit %d: %v", mark.bit, err)
		}
	}
	if err := b.f.Truncate(int64(c.Chosen.HighWater-1) * Size); err != nil {
		t.Fatal(err)
	}
	c.Fallback.HighWater = c.Chosen.HighWater
	if _, err := Load(b.e, b.f, c); !errors.Is(err, ErrCorrupt) {
		t.Errorf("file too short: %v", err)
	}
}

// A publish that fails before its meta has harmed nothing, and can be tried again.
func TestAbandonedPublish(t *testing.T) {
	b := newBench(t, tiny)
	runs := b.take(Request{Pages: 100})
	b.disk().SetHooks(simfs.Hooks{Fault: simfs.FailNth(2, simfs.Fault{Err: simfs.EIO}, simfs.OpWrite)})
	b.Stage(runs, nil)
	m := b.meta
	m.Generation++
	if err := b.WriteBitmaps(&m); !errors.Is(err, simfs.EIO) {
		t.Fatal(err)
	}
	b.Abandon()
	c, err := b.choice()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(b.e, b.f, c); err != nil { // both metas are whole
		t.Fatal(err)
	}
	more := b.take(Request{Pages: 1})
	b.publish(more, nil)
	if err := b.reopen(); err != nil {
		t.Fatal(err)
	}
	if f := b.faults(MapPublished, append(runs, more...)...); f != "" {
		t.Fatal(f)
	}
}

func TestMisuseIsCaught(t *testing.T) {
	b := newBench(t, DefaultGeometry)
	runs := b.take(Request{Pages: 1})
	p := runs[0].First
	panics := func(want string, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if r := fmt.Sprint(recover()); !strings.Contains(r, want) {
				t.Errorf("panic %q, want %q", r, want)
			}
		}()
		f()
	}
	panics("page 2: freed, but not in use", func() { b.Free(Run{2, 1}) })
	panics(fmt.Sprintf("page %d: freed, but not in use", p+1), func() { b.Free(Run{p, 2}) })
	panics("in a file of", func() { b.Free(Run{1 << 30, 1}) })
	panics("in a file of", func() { b.Free(Run{p, 0}) })
	panics(fmt.Sprintf("page %d: staged as retired, but not reached", p), func() { b.Stage(nil, runs) })
	b.Stage(runs, nil)
	panics(fmt.Sprintf("page %d: staged as born, but reached already", p), func() { b.Stage(runs, nil) })
	panics("nothing was written", func() { b.Published() })
	m := b.meta
	panics("publish of generation", func() { _ = b.WriteBitmaps(&m) })
}
