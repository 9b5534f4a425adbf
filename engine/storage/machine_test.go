package storage

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// machine is a Store beside the states that it went through, as plain maps. Statements change several trees and records of one or
// two collections at once, and some fail in the middle; snapshots are held across everything else; the power fails.
type machine struct {
	disk  *simfs.FS
	o     Options
	s     *Store
	life  uint64 // how often it was opened
	small bool   // background work goes in small steps

	// states are those that a snapshot may show: the one known to be durable and those after it, up to that at head.
	states  []model
	waiting []Commit // of the states after the first
	held    []heldSnapshot
	full    bool // the disk
}

// heldSnapshot is a pinned snapshot and what it showed at first.
type heldSnapshot struct {
	sn  *Snapshot
	was model
}

var errStop = errors.New("this statement is given up")

func TestStoreAgainstMaps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{disk: simfs.New(simfs.Options{}), states: []model{{0: newModelColl()}}, o: Options{
			Manual: true, SegmentSize: 32 << 10, Reserve: 64, MapReserve: 1 << 28, CleanSlack: 4096,
			BlockSize: rapid.SampledFrom([]int{4096, 16 << 10}).Draw(rt, "block size"),
			Geometry:  page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8},
			Tree:      btree.Config{MaxEntries: rapid.SampledFrom([]int{0, 4}).Draw(rt, "fan-out")},
		}}
		m.small = rapid.Bool().Draw(rt, "small steps")
		defer func() { m.disk.Discard() }()
		m.open(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"statement":       m.statement,
			"statement again": m.statement,
			"create":          m.create,
			"drop":            m.drop,
			"bulk":            m.bulk,
			"thin out":        m.thinOut,
			"wait":            m.wait,
			"hold":            m.hold,
			"look":            m.look,
			"let go":          m.letGo,
			"checkpoint":      func(rt *rapid.T) { m.may(rt, m.s.Checkpoint()) },
			"mark":            func(rt *rapid.T) { m.may(rt, m.s.Mark()) },
			"trim":            func(rt *rapid.T) { m.may(rt, m.s.Trim()) },
			"punch":           func(rt *rapid.T) { m.may(rt, m.s.Punch()) },
			"compact": func(rt *rapid.T) {
				_, err := m.s.Compact(func() error { return nil })
				m.may(rt, err)
			},
			"clean":     func(rt *rapid.T) { m.steps(rt, m.s.CleanStep) },
			"clear":     func(rt *rapid.T) { m.steps(rt, m.s.ClearStep) },
			"reopen":    m.reopen,
			"power cut": m.powerCut,
			"disk fills": func(rt *rapid.T) {
				m.full = true
				m.disk.SetCapacity(m.disk.Used() + int64(rapid.IntRange(0, 100).Draw(rt, "pages left"))*page.Size)
			},
			"disk grows": func(*rapid.T) { m.grow() },
			"":           m.seen,
		})
		m.grow()
		m.reopen(rt)
		m.closed(rt)
	})
}

func (m model) clone() model {
	out := maps.Clone(m)
	for id, c := range out {
		d := *c
		d.records, d.trees = maps.Clone(c.records), maps.Clone(c.trees)
		for t, entries := range d.trees {
			d.trees[t] = maps.Clone(entries)
		}
		out[id] = &d
	}
	return out
}

func (m model) equal(n model) bool { return reflect.DeepEqual(m, n) }

// difference names one place where two states differ.
func (m model) difference(n model) string {
	for _, id := range sortedKeys(m) {
		a, b := m[id], n[id]
		if b == nil {
			return fmt.Sprintf("collection %d is only in one", id)
		}
		if a.desc != b.desc || a.next != b.next {
			return fmt.Sprintf("collection %d: descriptors of %d and %d bytes, last records %d and %d", id, len(a.desc), len(b.desc), a.next, b.next)
		}
		for _, r := range sortedKeys(a.records) {
			if x, ok := b.records[r]; !ok || x != a.records[r] {
				return fmt.Sprintf("collection %d, record %d: %.40q and %.40q", id, r, a.records[r], x)
			}
		}
		for _, t := range sortedKeys(a.trees) {
			for _, k := range sortedKeys(a.trees[t]) {
				if x, ok := b.trees[t][k]; !ok || x != a.trees[t][k] {
					return fmt.Sprintf("collection %d, tree %d, key %.40q: %.40q and %.40q", id, t, k, a.trees[t][k], x)
				}
			}
		}
	}
	return "one has more than the other"
}

func (m *machine) now() model { return m.states[len(m.states)-1] }

func (m *machine) env() *env.Env {
	m.life++
	e := m.disk.Env(m.life)
	e.Buggify = func(string) bool { return m.small }
	return e
}

func (m *machine) open(rt *rapid.T) {
	s, err := Open(m.env(), testDir, m.o)
	if m.full && (errors.Is(err, ErrDiskFull) || errors.Is(err, env.ErrNoSpace)) {
		m.grow() // a recovery needs some space; one that did not get it has done no harm
		s, err = Open(m.env(), testDir, m.o)
	}
	if err != nil {
		rt.Fatalf("open: %v", err)
	}
	m.s = s
}

func (m *machine) grow() {
	m.full = false
	m.disk.SetCapacity(0)
}

// may takes note of an error that only a full disk excuses.
func (m *machine) may(rt *rapid.T, err error) (done bool) {
	if err != nil && !(m.full && errors.Is(err, ErrDiskFull)) {
		rt.Fatal(err)
	}
	return err == nil
}

// edit is one change of a statement.
type edit struct {
	coll CollID
	do   func(c *Collection) error
}

// run makes a statement of edits, which fails with want in its last edit if want is not nil, and leads to the state next.
func (m *machine) run(rt *rapid.T, edits []edit, next model, want error) {
	var ids []CollID
	for _, e := range edits {
		ids = append(ids, e.coll)
	}
	slices.Sort(ids)
	write := m.s.Write
	if rapid.Bool().Draw(rt, "may use the reserve") {
		write = m.s.WriteFreeing
	}
	c, err := write(func(w *Writer) error {
		colls := map[CollID]*Collection{}
		for _, id := range slices.Compact(slices.Clone(ids)) {
			colls[id] = w.Lock(id)
		}
		for _, e := range edits {
			if err := e.do(colls[e.coll]); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil && want == nil:
		m.wrote(rt, c, next)
	case want != nil && errors.Is(err, want):
		m.may(rt, c.Wait())
	default:
		m.may(rt, err)
	}
}

func (m *machine) wrote(rt *rapid.T, c Commit, next model) {
	m.states, m.waiting = append(m.states, next), append(m.waiting, c)
	if rapid.Bool().Draw(rt, "wait") {
		m.wait(rt)
	}
}

func (m *machine) wait(rt *rapid.T) {
	for _, c := range m.waiting {
		if err := c.Wait(); err != nil {
			rt.Fatal(err)
		}
	}
	m.waiting, m.states = nil, m.states[len(m.states)-1:]
}

var (
	someKey = rapid.Custom(func(t *rapid.T) string {
		k := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 5, -1).Draw(t, "key")
		if rapid.IntRange(0, 15).Draw(t, "long") == 0 {
			k += strings.Repeat("k", rapid.IntRange(500, 3000).Draw(t, "more"))
		}
		return k
	})
	someBytes = rapid.Custom(func(t *rapid.T) string {
		c := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "letter")
		return strings.Repeat(c, rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 300), rapid.IntRange(1000, 5000), rapid.IntRange(10000, 40000)).Draw(t, "size"))
	})
)

// keyOf draws a key, most often one that is there.
func keyOf(rt *rapid.T, entries map[string]string) string {
	if len(entries) > 0 && rapid.IntRange(0, 2).Draw(rt, "is there") > 0 {
		return rapid.SampledFrom(sortedKeys(entries)).Draw(rt, "key")
	}
	return someKey.Draw(rt, "new key")
}

// statement makes a few changes of one or two collections.
func (m *machine) statement(rt *rapid.T) {
	next := m.now().clone()
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(sortedKeys(next)), 1, min(2, len(next)), rapid.ID).Draw(rt, "collections")
	var edits []edit
	for range rapid.IntRange(1, 6).Draw(rt, "edits") {
		id := rapid.SampledFrom(ids).Draw(rt, "collection")
		edits = append(edits, edit{id, change(rt, next[id])})
	}
	var want error
	switch rapid.IntRange(0, 9).Draw(rt, "end") {
	case 0:
		want = errStop
		edits = append(edits, edit{ids[0], func(*Collection) error { return errStop }})
	case 1:
		want = ErrNoRecord
		edits = append(edits, edit{ids[0], func(c *Collection) error { return c.Remove(next[ids[0]].next + 1) }})
	}
	m.run(rt, edits, next, want)
}

// change draws a change of one collection, and makes it in the model.
func change(rt *rapid.T, mc *modelColl) func(c *Collection) error {
	kind := rapid.SampledFrom([]string{"put", "put", "delete", "insert", "insert", "replace", "remove", "tree", "descriptor"}).Draw(rt, "kind")
	tree := TreeID(rapid.IntRange(0, 2).Draw(rt, "tree"))
	entries, has := mc.trees[tree]
	rid := RecordID(0)
	if len(mc.records) > 0 {
		rid = rapid.SampledFrom(sortedKeys(mc.records)).Draw(rt, "record")
	}
	switch {
	case kind == "put" && has:
		k, v := keyOf(rt, entries), someBytes.Draw(rt, "value")
		entries[k] = v
		return func(c *Collection) error { return c.Put(tree, []byte(k), []byte(v)) }
	case kind == "delete" && has:
		k := keyOf(rt, entries)
		_, there := entries[k]
		delete(entries, k)
		return func(c *Collection) error {
			found, err := c.Delete(tree, []byte(k))
			if err == nil && found != there {
				err = fmt.Errorf("delete of %.40q in tree %d: found %v, should be %v", k, tree, found, there)
			}
			return err
		}
	case kind == "replace" && rid > 0:
		v := someBytes.Draw(rt, "bytes")
		mc.records[rid] = v
		return func(c *Collection) error { return c.Replace(rid, []byte(v)) }
	case kind == "remove" && rid > 0:
		delete(mc.records, rid)
		return func(c *Collection) error { return c.Remove(rid) }
	case kind == "descriptor":
		mc.desc = someBytes.Draw(rt, "descriptor")
		desc := []byte(mc.desc)
		return func(c *Collection) error { return c.SetDesc(desc) }
	case kind == "insert" || kind == "replace" || kind == "remove":
		return insertOne(mc, someBytes.Draw(rt, "bytes"))
	case has:
		delete(mc.trees, tree)
		return func(c *Collection) error { return c.DropTree(tree) }
	}
	mc.trees[tree] = map[string]string{}
	return func(c *Collection) error { return c.CreateTree(tree) }
}

// insertOne inserts a record, whose number must be the next that was never used.
func insertOne(mc *modelColl, v string) func(c *Collection) error {
	mc.next++
	want := mc.next
	mc.records[want] = v
	return func(c *Collection) error {
		id, err := c.Insert([]byte(v))
		if err == nil && id != want {
			err = fmt.Errorf("a new record has number %d, should be %d", id, want)
		}
		return err
	}
}

func (m *machine) create(rt *rapid.T) {
	if len(m.now()) >= 5 {
		rt.Skip("enough collections")
	}
	mc := newModelColl()
	mc.desc = someBytes.Draw(rt, "descriptor")
	mc.trees[1] = map[string]string{}
	first := insertOne(mc, "first")
	var id CollID
	c, err := m.s.Write(func(w *Writer) error {
		w.Lock(0)
		c, err := w.Create([]byte(mc.desc))
		if err != nil {
			return err
		}
		id = c.ID()
		return errors.Join(c.CreateTree(1), first(c))
	})
	if m.may(rt, err) {
		next := m.now().clone()
		if next[id] != nil {
			rt.Fatalf("a new collection has number %d, which another has", id)
		}
		next[id] = mc
		m.wrote(rt, c, next)
	}
}

func (m *machine) drop(rt *rapid.T) {
	ids := sortedKeys(m.now())[1:]
	if len(ids) == 0 {
		rt.Skip("no collection")
	}
	id := rapid.SampledFrom(ids).Draw(rt, "collection")
	c, err := m.s.WriteFreeing(func(w *Writer) error {
		w.Lock(0)
		return w.Lock(id).Drop()
	})
	if m.may(rt, err) {
		next := m.now().clone()
		delete(next, id)
		m.wrote(rt, c, next)
	}
}

// bulk inserts many small records, enough for a record table of two levels, or keys, enough for a tree of several.
func (m *machine) bulk(rt *rapid.T) {
	next := m.now().clone()
	id := rapid.SampledFrom(sortedKeys(next)).Draw(rt, "collection")
	mc := next[id]
	n := rapid.SampledFrom([]int{40, 150, 520}).Draw(rt, "n")
	var edits []edit
	if entries, ok := mc.trees[1]; ok && rapid.Bool().Draw(rt, "keys") {
		prefix, step := someKey.Draw(rt, "prefix"), rapid.SampledFrom([]int{1, 7, -1}).Draw(rt, "step")
		for i := range n {
			k := fmt.Sprintf("%.100s%05d", prefix, (i*step+n)%n)
			entries[k] = "v"
			edits = append(edits, edit{id, func(c *Collection) error { return c.Put(1, []byte(k), []byte("v")) }})
		}
	} else {
		for range n {
			edits = append(edits, edit{id, insertOne(mc, "small")})
		}
	}
	m.run(rt, edits, next, nil)
}

// thinOut removes a share of a collection's records and keys: work for merges and for the cleaner.
func (m *machine) thinOut(rt *rapid.T) {
	next := m.now().clone()
	id := rapid.SampledFrom(sortedKeys(next)).Draw(rt, "collection")
	mc := next[id]
	share := rapid.IntRange(1, 4).Draw(rt, "one in")
	edits := []edit{{id, func(*Collection) error { return nil }}}
	for i, r := range sortedKeys(mc.records) {
		if i%share == 0 {
			delete(mc.records, r)
			edits = append(edits, edit{id, func(c *Collection) error { return c.Remove(r) }})
		}
	}
	for _, t := range sortedKeys(mc.trees) {
		for i, k := range sortedKeys(mc.trees[t]) {
			if i%share == 0 {
				delete(mc.trees[t], k)
				edits = append(edits, edit{id, func(c *Collection) error { _, err := c.Delete(t, []byte(k)); return err }})
			}
		}
	}
	m.run(rt, edits, next, nil)
}

// steps goes on with a background job for a while.
func (m *machine) steps(rt *rapid.T, step func() (bool, error)) {
	for range rapid.IntRange(1, 10).Draw(rt, "steps") {
		if more, err := step(); !m.may(rt, err) || !more {
			return
		}
	}
}

// show reads a snapshot, which must show one of the states; what it shows is durable, so no older one may be seen any more.
func (m *machine) show(rt *rapid.T, sn *Snapshot) model {
	got, err := dump(sn)
	if err != nil {
		rt.Fatal(err)
	}
	i := slices.IndexFunc(m.states, got.equal)
	if i < 0 {
		rt.Fatalf("what is seen is none of the %d states it may be; against head: %s", len(m.states), got.difference(m.now()))
	}
	m.states, m.waiting = m.states[i:], m.waiting[i:]
	return got
}

func (m *machine) seen(rt *rapid.T) {
	sn := m.s.Snapshot()
	defer sn.Release()
	m.show(rt, sn)
}

func (m *machine) hold(rt *rapid.T) {
	if len(m.held) == 3 {
		rt.Skip("enough snapshots")
	}
	sn := m.s.Snapshot()
	m.held = append(m.held, heldSnapshot{sn, m.show(rt, sn)})
}

func (m *machine) someHeld(rt *rapid.T) int {
	if len(m.held) == 0 {
		rt.Skip("no snapshot")
	}
	return rapid.IntRange(0, len(m.held)-1).Draw(rt, "snapshot")
}

// look reads a held snapshot in other ways than dump does.
func (m *machine) look(rt *rapid.T) {
	h := m.held[m.someHeld(rt)]
	id := rapid.SampledFrom(sortedKeys(h.was)).Draw(rt, "collection")
	err := h.sn.Guard(func() error { return lookAt(rt, h.sn.Collection(id), h.was[id]) })
	if err != nil {
		rt.Fatalf("collection %d: %v", id, err)
	}
}

func lookAt(rt *rapid.T, c *Collection, mc *modelColl) error {
	for _, t := range sortedKeys(mc.trees) {
		tree, _ := c.Tree(t)
		keys := sortedKeys(mc.trees[t])
		k := keyOf(rt, mc.trees[t])
		want, there := mc.trees[t][k]
		if v, ok, err := tree.Get([]byte(k)); err != nil || ok != there || string(v) != want {
			return fmt.Errorf("tree %d, key %.40q: %.40q, %v, %v; should be %.40q, %v", t, k, v, ok, err, want, there)
		}
		at, _ := slices.BinarySearch(keys, k)
		it := tree.Iter()
		for ok := it.SeekBefore([]byte(k)); ok; ok = it.Prev() {
			if at--; at < 0 || string(it.Key()) != keys[at] {
				return fmt.Errorf("tree %d, back from %.40q: key %.40q in place %d", t, k, it.Key(), at)
			}
		}
		if it.Err() != nil || at != 0 {
			return fmt.Errorf("tree %d, back from %.40q: ends %d keys too early, %v", t, k, at, it.Err())
		}
	}
	rids := sortedKeys(mc.records)
	it := c.Records(0, true)
	for it.Next() {
		if len(rids) == 0 || it.ID() != rids[len(rids)-1] || string(it.Bytes()) != mc.records[it.ID()] {
			return fmt.Errorf("records in reverse: %d, and %d more should come", it.ID(), len(rids))
		}
		rids = rids[:len(rids)-1]
	}
	if it.Err() != nil || len(rids) > 0 {
		return fmt.Errorf("records in reverse: %d are missing, %v", len(rids), it.Err())
	}
	rid := RecordID(rapid.Uint64Range(1, uint64(mc.next)+1).Draw(rt, "record"))
	want, there := mc.records[rid]
	if b, err := c.Record(rid); there && (err != nil || string(b) != want) || !there && !errors.Is(err, ErrNoRecord) {
		return fmt.Errorf("record %d: %.40q, %v; should be %.40q, %v", rid, b, err, want, there)
	}
	return nil
}

func (m *machine) letGo(rt *rapid.T) {
	i := m.someHeld(rt)
	h := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.release(rt, h)
}

// release lets a snapshot go, which must still show what it did at first.
func (m *machine) release(rt *rapid.T, h heldSnapshot) {
	got, err := dump(h.sn)
	if err != nil {
		rt.Fatalf("a held snapshot: %v", err)
	}
	if !got.equal(h.was) {
		rt.Fatalf("a held snapshot has changed: %s", got.difference(h.was))
	}
	h.sn.Release()
}

// sound demands that the database has no fault. All snapshots are let go.
func (m *machine) sound(rt *rapid.T) {
	for _, h := range m.held {
		m.release(rt, h)
	}
	m.held = nil
	if rep := m.s.Check(); len(rep.Faults) > 0 {
		rt.Fatalf("check: %q", rep.Faults)
	}
}

func (m *machine) closed(rt *rapid.T) {
	m.wait(rt)
	m.seen(rt)
	m.sound(rt)
	if err := m.s.Close(); err != nil {
		rt.Fatalf("close: %v (%v)", err, m.s.Failed())
	}
}

func (m *machine) reopen(rt *rapid.T) {
	m.closed(rt)
	m.open(rt)
	m.seen(rt)
	m.sound(rt)
}

// powerCut goes on with what a power cut, or a kill, may have left: one of the states that were not yet known to be durable, or the last
// that was.
func (m *machine) powerCut(rt *rapid.T) {
	choices := append(m.disk.Choices(rapid.Uint64().Draw(rt, "seed"), 6), simfs.Choice{Gen: simfs.Killed})
	choice := rapid.SampledFrom(choices).Draw(rt, "choice")
	for _, h := range m.held {
		m.release(rt, h)
	}
	m.held, m.waiting = nil, nil
	old, oldDisk := m.s, m.disk
	m.disk = oldDisk.Crash(choice)
	m.open(rt)
	sn := m.s.Snapshot()
	got, err := dump(sn)
	sn.Release()
	if err != nil {
		rt.Fatalf("after choice %v: %v", choice, err)
	}
	if !slices.ContainsFunc(m.states, got.equal) {
		rt.Fatalf("after choice %v: recovered a state that is none of %d; against the durable one: %s", choice, len(m.states), got.difference(m.states[0]))
	}
	m.states = []model{got}
	m.sound(rt)
	if err := old.release(); err != nil {
		rt.Fatal(err)
	}
	oldDisk.Discard()
}
