package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/simfs"
)

const testDir = "/db"

// tiny makes everything small, so that a short run reaches what a long one would.
func tiny(r *rand.Rand) Options {
	o := Options{
		Manual:      true,
		SegmentSize: 32 << 10,
		BlockSize:   16 << 10,
		Reserve:     32,
		MapReserve:  1 << 28,
		CleanSlack:  16 << 10,
		Geometry:    page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8},
	}
	if r.IntN(2) == 0 {
		o.Tree = btree.Config{MaxEntries: 4}
	}
	if r.IntN(3) == 0 {
		o.BlockSize = 4096
	}
	return o
}

// model is what a Store should hold: a plain map of maps.
type model map[CollID]*modelColl

type modelColl struct {
	desc    string
	next    RecordID // the number of the last record ever inserted; no part of the fingerprint
	records map[RecordID]string
	trees   map[TreeID]map[string]string
}

func newModelColl() *modelColl {
	return &modelColl{records: map[RecordID]string{}, trees: map[TreeID]map[string]string{}}
}

type fingerprint [8]byte

type dumper struct{ hash.Hash }

func (d dumper) str(ss ...string) {
	for _, s := range ss {
		var n [4]byte
		binary.LittleEndian.PutUint32(n[:], uint32(len(s)))
		d.Write(n[:])
		d.Write([]byte(s))
	}
}

func (d dumper) sum() (f fingerprint) { copy(f[:], d.Sum(nil)); return f }

func (m model) fingerprint() fingerprint {
	d := dumper{sha256.New()}
	for _, id := range sortedKeys(m) {
		c := m[id]
		d.str("coll", fmt.Sprint(id), c.desc)
		for _, t := range sortedKeys(c.trees) {
			d.str("tree", fmt.Sprint(t))
			for _, k := range sortedKeys(c.trees[t]) {
				d.str(k, c.trees[t][k])
			}
		}
		d.str("records")
		for _, r := range sortedKeys(c.records) {
			d.str(fmt.Sprint(r), c.records[r])
		}
	}
	return d.sum()
}

func sortedKeys[K ~uint32 | ~uint64 | ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// read gives the fingerprint of what the newest snapshot holds.
func read(s *Store) (f fingerprint, err error) {
	sn := s.Snapshot()
	defer sn.Release()
	return readSnapshot(sn)
}

func readSnapshot(sn *Snapshot) (fingerprint, error) {
	m, err := dump(sn)
	return m.fingerprint(), err
}

// dump reads all that a snapshot shows, and proves that it comes in order and is counted right.
func dump(sn *Snapshot) (model, error) {
	m := model{}
	err := sn.Guard(func() error {
		return sn.heads.all(func(id CollID, h *head) error {
			c := sn.Collection(id)
			if c == nil {
				return nil
			}
			mc := newModelColl()
			mc.desc, mc.next = string(c.Desc()), h.nextID
			m[id] = mc
			for _, nt := range h.trees {
				if err := mc.dumpTree(c, nt.id); err != nil {
					return fmt.Errorf("collection %d, tree %d: %w", id, nt.id, err)
				}
			}
			if err := mc.dumpRecords(c); err != nil {
				return fmt.Errorf("collection %d: %w", id, err)
			}
			return nil
		})
	})
	return m, err
}

func (mc *modelColl) dumpTree(c *Collection, id TreeID) error {
	t, _ := c.Tree(id)
	entries := map[string]string{}
	before := ""
	it := t.Iter()
	for ok := it.Seek(nil); ok; ok = it.Next() {
		k := string(it.Key())
		if it.Err() == nil && len(entries) > 0 && k <= before {
			return fmt.Errorf("key %q follows %q", k, before)
		}
		entries[k], before = string(it.Value()), k
	}
	if it.Err() == nil && t.Entries != uint64(len(entries)) {
		return fmt.Errorf("%d keys, and %d are counted", len(entries), t.Entries)
	}
	mc.trees[id] = entries
	return it.Err()
}

func (mc *modelColl) dumpRecords(c *Collection) error {
	before, bytes := RecordID(0), 0
	it := c.Records(0, false)
	for it.Next() {
		if it.ID() <= before {
			return fmt.Errorf("record %d follows %d", it.ID(), before)
		}
		before = it.ID()
		mc.records[before] = string(it.Bytes())
		bytes += len(it.Bytes())
	}
	if it.Err() == nil && (c.Count() != uint64(len(mc.records)) || c.Bytes() != uint64(bytes)) {
		return fmt.Errorf("%d records of %d bytes, and %d of %d are counted", len(mc.records), bytes, c.Count(), c.Bytes())
	}
	return it.Err()
}

// world is a Store on a simulated disk, the model beside it, and the history of the states that the model went through.
type world struct {
	t    testing.TB
	r    *rand.Rand
	disk *simfs.FS
	env  *env.Env
	o    Options
	s    *Store

	judge *judge.Judge
	watch func(simfs.Event) // told of what the judge has seen

	m       model
	history []fingerprint // state after the n-th write
	acked   int           // index in history
	waiting []Commit      // of the writes after acked
	parked  []parked
}

// parked is a snapshot that is held for a while, and what it showed at first.
type parked struct {
	sn  *Snapshot
	was fingerprint
	pin *judge.Pin
}

func newWorld(t testing.TB, r *rand.Rand, disk simfs.Options) *world {
	w := &world{t: t, r: r, o: tiny(r), m: model{0: newModelColl()}}
	disk.Hooks.Watch = func(e simfs.Event) {
		w.judge.Watch(e)
		if w.watch != nil {
			w.watch(e)
		}
	}
	w.disk = simfs.New(disk)
	w.judge = judge.New(w.disk, testDir, judge.Options{})
	w.env = w.disk.Env(r.Uint64())
	small := r.IntN(2) == 0
	w.env.Buggify = func(string) bool { return small }
	w.history = []fingerprint{w.m.fingerprint()}
	return w
}

func (w *world) open() error {
	s, err := Open(w.env, testDir, w.o)
	w.s = s
	return err
}

func (w *world) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefgh"[w.r.IntN(8)]
	}
	return b
}

func (w *world) size() int {
	switch w.r.IntN(20) {
	case 0:
		return 4000 + w.r.IntN(30000)
	case 1:
		return 0
	case 2, 3:
		return 1000 + w.r.IntN(3500)
	}
	return w.r.IntN(300)
}

func (w *world) key() []byte {
	n := w.r.IntN(12)
	if w.r.IntN(12) == 0 {
		n = w.r.IntN(3000)
	}
	return w.bytes(n)
}

// pick chooses a collection other than 0.
func (w *world) pick() (CollID, *modelColl) {
	ids := sortedKeys(w.m)[1:]
	if len(ids) == 0 {
		return 0, nil
	}
	id := ids[w.r.IntN(len(ids))]
	return id, w.m[id]
}

func one[K ~uint32 | ~uint64 | ~string, V any](r *rand.Rand, m map[K]V) K {
	return sortedKeys(m)[r.IntN(len(m))]
}

// write runs f, and remembers what change does to the model as the next state.
func (w *world) write(f func(wr *Writer) error, change func()) error {
	c, err := w.s.Write(f)
	if err != nil {
		return errors.Join(err, c.Wait())
	}
	change()
	w.history = append(w.history, w.m.fingerprint())
	w.waiting = append(w.waiting, c)
	if w.r.IntN(3) > 0 {
		return w.wait()
	}
	return nil
}

func (w *world) wait() error {
	for _, c := range w.waiting {
		if err := c.Wait(); err != nil {
			return err
		}
	}
	w.waiting = nil
	w.acked = len(w.history) - 1
	if w.r.IntN(8) == 0 {
		w.judge.Visible(uint64(w.s.visible.Load().lsn))
	}
	return w.judge.Err()
}

// park holds the newest snapshot for a while, or lets one go.
func (w *world) park() error {
	if len(w.parked) >= 3 || len(w.parked) > 0 && w.r.IntN(3) == 0 {
		i := w.r.IntN(len(w.parked))
		p := w.parked[i]
		w.parked = slices.Delete(w.parked, i, i+1)
		return p.leave()
	}
	p := parked{sn: w.s.Snapshot()}
	var refs []page.Ref
	f, err := readSnapshot(p.sn)
	if err == nil {
		refs, err = p.sn.pageRefs()
	}
	if err != nil {
		p.sn.Release()
		return err
	}
	p.was, p.pin = f, w.judge.Pin(refs)
	w.parked = append(w.parked, p)
	return nil
}

// leave lets the snapshot go, which must still show what it did at first.
func (p parked) leave() error {
	f, err := readSnapshot(p.sn)
	if err == nil && f != p.was {
		err = errors.New("a pinned snapshot shows another state than before")
	}
	p.pin.Release()
	p.sn.Release()
	return err
}

func (w *world) leaveAll() error {
	var errs []error
	for _, p := range w.parked {
		errs = append(errs, p.leave())
	}
	w.parked = nil
	return errors.Join(errs...)
}

// pageRefs gives every page with a header that the snapshot reaches.
func (sn *Snapshot) pageRefs() (refs []page.Ref, err error) {
	add := func(ref page.Ref) error {
		refs = append(refs, ref)
		return nil
	}
	err = sn.Guard(func() error {
		return sn.heads.all(func(_ CollID, h *head) error {
			for _, t := range h.trees {
				err := btree.Tree{Head: t.Head, R: sn.s}.Walk(func(ref page.Ref, _ uint8, _ bool) error { return add(ref) })
				if err != nil {
					return err
				}
			}
			return h.table.Walk(sn.s, func(ref page.Ref, _ int) error { return add(ref) })
		})
	})
	return refs, err
}

// compactPart moves some of what lies in the back of the file.
func (w *world) compactPart() error {
	c := compaction{s: w.s, mark: w.s.compactMark(uint64(w.r.IntN(20)))}
	err := c.run(func() error {
		if w.r.IntN(4) == 0 {
			return errStopped
		}
		return nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

var errStopped = errors.New("stopped")

// step does one random thing.
func (w *world) step() error {
	id, mc := w.pick()
	kind := w.r.IntN(100)
	switch {
	case mc == nil || kind < 4 && len(w.m) < 6:
		return w.create()
	case kind < 6:
		return w.drop(id)
	case kind < 9:
		return w.tree(id, mc)
	case kind < 11:
		desc := w.bytes(w.r.IntN(3000))
		return w.write(func(wr *Writer) error { return wr.Lock(id).SetDesc(desc) }, func() { mc.desc = string(desc) })
	case kind < 50:
		return w.insert(id, mc)
	case kind < 75:
		return w.change(id, mc)
	case kind < 84:
		return w.delete(id, mc)
	case kind < 91:
		if err := w.s.Checkpoint(); err != nil || w.r.IntN(3) > 0 {
			return err
		}
		return errors.Join(w.s.Punch(), w.s.Trim(), w.compactPart())
	case kind < 93:
		return w.s.Mark()
	case kind < 95:
		return w.park()
	case kind < 96:
		_, err := w.s.ClearStep()
		return err
	case kind < 98:
		_, err := w.s.CleanStep()
		return err
	case kind == 98:
		if err := errors.Join(w.wait(), w.leaveAll()); err != nil {
			return err
		}
		if err := w.s.Close(); err != nil {
			return err
		}
		return w.open()
	default:
		return w.wait()
	}
}

// drop drops a collection, and now and then makes another one of the same number at once: recovery meets both in one log.
func (w *world) drop(id CollID) error {
	err := w.write(func(wr *Writer) error {
		wr.Lock(0)
		return wr.Lock(id).Drop()
	}, func() { delete(w.m, id) })
	if err != nil || w.r.IntN(2) == 0 {
		return err
	}
	for {
		if more, err := w.s.ClearStep(); err != nil {
			return err
		} else if !more {
			return w.create()
		}
	}
}

func (w *world) create() error {
	var id CollID
	desc := w.bytes(1 + w.r.IntN(40))
	return w.write(func(wr *Writer) error {
		wr.Lock(0)
		c, err := wr.Create(desc)
		if err != nil {
			return err
		}
		id = c.ID()
		return c.CreateTree(1)
	}, func() {
		mc := newModelColl()
		mc.desc = string(desc)
		mc.trees[1] = map[string]string{}
		w.m[id] = mc
	})
}

func (w *world) tree(id CollID, mc *modelColl) error {
	t := TreeID(w.r.IntN(4))
	if _, ok := mc.trees[t]; ok {
		return w.write(func(wr *Writer) error { return wr.Lock(id).DropTree(t) }, func() { delete(mc.trees, t) })
	}
	entries := map[string]string{}
	for range w.r.IntN(60) {
		entries[string(w.key())] = string(w.bytes(w.r.IntN(20)))
	}
	return w.write(func(wr *Writer) error {
		c := wr.Lock(id)
		if err := c.CreateTree(t); err != nil {
			return err
		}
		for _, k := range sortedKeys(entries) {
			if err := c.Put(t, []byte(k), []byte(entries[k])); err != nil {
				return err
			}
		}
		return nil
	}, func() { mc.trees[t] = entries })
}

// insert stores some records, with an entry in each tree for each.
func (w *world) insert(id CollID, mc *modelColl) error {
	type doc struct{ record, key []byte }
	docs := make([]doc, 1+w.r.IntN(8)*w.r.IntN(3))
	for i := range docs {
		docs[i] = doc{w.bytes(w.size()), w.key()}
	}
	if w.r.IntN(60) == 0 { // enough for a record table of two levels
		docs = make([]doc, 520)
		for i := range docs {
			docs[i] = doc{w.bytes(w.r.IntN(20)), w.bytes(w.r.IntN(6))}
		}
	}
	var first RecordID
	return w.write(func(wr *Writer) error {
		c := wr.Lock(id)
		for i, d := range docs {
			rid, err := c.Insert(d.record)
			if err != nil {
				return err
			}
			if i == 0 {
				first = rid
			}
			for _, t := range sortedKeys(mc.trees) {
				if err := c.Put(t, d.key, binary.BigEndian.AppendUint64(nil, uint64(rid))); err != nil {
					return err
				}
			}
		}
		return nil
	}, func() {
		for i, d := range docs {
			rid := first + RecordID(i)
			mc.records[rid] = string(d.record)
			for _, t := range mc.trees {
				t[string(d.key)] = string(binary.BigEndian.AppendUint64(nil, uint64(rid)))
			}
		}
	})
}

func (w *world) change(id CollID, mc *modelColl) error {
	if len(mc.records) == 0 {
		return nil
	}
	rid, record := one(w.r, mc.records), w.bytes(w.size())
	return w.write(func(wr *Writer) error { return wr.Lock(id).Replace(rid, record) }, func() { mc.records[rid] = string(record) })
}

func (w *world) delete(id CollID, mc *modelColl) error {
	rids := sortedKeys(mc.records)
	if len(rids) == 0 {
		return nil
	}
	from := w.r.IntN(len(rids))
	rids = rids[from:min(from+1+w.r.IntN(20), len(rids))]
	var keys []string
	trees := sortedKeys(mc.trees)
	if len(trees) > 0 {
		for _, k := range sortedKeys(mc.trees[trees[0]]) {
			if w.r.IntN(4) == 0 {
				keys = append(keys, k)
			}
		}
	}
	return w.write(func(wr *Writer) error {
		c := wr.Lock(id)
		for _, rid := range rids {
			if err := c.Remove(rid); err != nil {
				return err
			}
		}
		for _, k := range keys {
			if found, err := c.Delete(trees[0], []byte(k)); err != nil || !found {
				return fmt.Errorf("delete of %q: %v, %w", k, found, err)
			}
		}
		return nil
	}, func() {
		for _, rid := range rids {
			delete(mc.records, rid)
		}
		for _, k := range keys {
			delete(mc.trees[trees[0]], k)
		}
	})
}

// sound fails the test unless the Store's durable state is the model's, and Check finds nothing.
func (w *world) sound(context string) {
	w.t.Helper()
	if err := w.wait(); err != nil {
		w.t.Fatalf("%s: wait: %v", context, err)
	}
	f, err := read(w.s)
	if err != nil {
		w.t.Fatalf("%s: read: %v", context, err)
	}
	if f != w.history[len(w.history)-1] {
		w.t.Fatalf("%s: the state is not the model's", context)
	}
	if err := errors.Join(w.leaveAll(), w.judge.Err()); err != nil {
		w.t.Fatalf("%s: %v", context, err)
	}
	if r := w.s.Check(); len(r.Faults) > 0 {
		w.t.Fatalf("%s: check: %v", context, r.Faults)
	}
	for _, c := range *w.s.colls.Load() {
		if c == nil || c.head.Load().dropped {
			continue
		}
		if h := c.head.Load(); h.count == 0 && h.table.Root != 0 {
			w.t.Fatalf("%s: collection %d has no record, and a record table of %d pages", context, c.id, h.table.Pages)
		}
		for _, x := range c.extents {
			if x.live == 0 && x.run != c.head.Load().open.run {
				w.t.Fatalf("%s: collection %d keeps the extent at page %d, in which nothing is live", context, c.id, x.run.First)
			}
		}
	}
}

// bounded fails the test if two checkpoints leave more of the log than they need.
func (w *world) bounded() {
	w.t.Helper()
	for range 2 {
		if err := errors.Join(w.s.Checkpoint(), w.s.Mark()); err != nil {
			w.t.Fatal(err)
		}
	}
	if n := w.s.Stats().LogBytes; n > 7*w.o.SegmentSize {
		w.t.Fatalf("the log still has %d bytes after two checkpoints", n)
	}
}
