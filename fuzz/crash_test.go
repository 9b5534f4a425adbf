package fuzz

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/simfs"
)

// FuzzCrash runs a program of writes, checkpoints and power cuts, spelled in bytes, on a simulated disk. Whatever a cut leaves
// opens, is sound, and holds a state between the last acknowledged and the last submitted; the judges of package judge watch
// all of it. A program may go on with what a cut has left, and so cuts recoveries as well.
func FuzzCrash(f *testing.F) {
	for kind := range byte(crashSteps) {
		// Each step with something before it and a cut in it, for each kind of cut.
		for cut := range byte(8) {
			f.Add([]byte{kind ^ cut, crashCreate, crashPut, 9, 40, crashInsert, 200, crashInsert, 3, crashWait, crashCheckpoint,
				crashInsert, 90, crashArm, 3 * cut, cut, 5 * kind, kind, 1, 77, crashPut, 8, 1, crashWait, crashCheckpoint, crashBecome, cut, kind,
				crashInsert, 7, crashWait})
		}
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 200 {
			return
		}
		w := &crashWorld{t: t, rest: program, disk: simfs.New(simfs.Options{}), model: crashModel{}}
		defer func() { w.disk.Discard() }()
		w.begin()
		for len(w.rest) > 0 {
			w.step()
		}
		w.end()
	})
}

const (
	crashInsert = iota
	crashReplace
	crashRemove
	crashPut
	crashDelete
	crashCreate
	crashDrop
	crashWait
	crashCheckpoint
	crashMark
	crashClear
	crashReopen
	crashArm    // a cut at one of the next steps of the disk
	crashCut    // a cut now
	crashBecome // a cut now, and the program goes on with what it left
	crashSteps
)

const (
	crashDir     = "/db"
	crashCollMax = 128 // no program is long enough for a higher number
)

// crashModel is what the database should hold.
type crashModel map[storage.CollID]crashColl

type crashColl struct {
	records map[storage.RecordID]string
	entries map[string]string
}

func (m crashModel) clone() crashModel {
	n := crashModel{}
	for id, c := range m {
		n[id] = crashColl{maps.Clone(c.records), maps.Clone(c.entries)}
	}
	return n
}

func (m crashModel) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "collection %d\n", id)
		for _, k := range slices.Sorted(maps.Keys(m[id].entries)) {
			fmt.Fprintf(&b, "  %q: %q\n", k, m[id].entries[k])
		}
		for _, r := range slices.Sorted(maps.Keys(m[id].records)) {
			fmt.Fprintf(&b, "  %d: %q\n", r, m[id].records[r])
		}
	}
	return b.String()
}

type crashWorld struct {
	t     *testing.T
	rest  []byte
	disk  *simfs.FS
	judge *judge.Judge
	o     storage.Options
	s     *storage.Store

	model   crashModel
	history []crashModel // after the n-th write
	acked   int          // in history
	waiting []storage.Commit

	armed  int // a cut at so many steps of the disk from now; 0 is none
	choice [2]byte
	err    error
}

func (w *crashWorld) next() byte {
	if len(w.rest) == 0 {
		return 0
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b
}

// try ends the run if something went wrong, or a judge has spoken.
func (w *crashWorld) try(err error) {
	w.t.Helper()
	if err = errors.Join(err, w.err, w.judge.Err()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *crashWorld) begin() {
	b := w.next()
	w.o = storage.Options{
		Manual: true, SegmentSize: 32 << 10, BlockSize: 4096 << (b & 1), Reserve: 16, MapReserve: 1 << 28,
		Geometry: page.Geometry{RegionPages: 256, Inline: 1, PerPage: 8}, Tree: btree.Config{MaxEntries: 4 * int(b>>1&1)},
	}
	w.history = []crashModel{w.model.clone()}
	w.attach()
	w.open()
}

// attach puts judges to the disk.
func (w *crashWorld) attach() {
	w.judge = judge.New(w.disk, crashDir, judge.Options{LogShare: 8})
	w.disk.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) {
		w.judge.Watch(e)
		if w.armed > 0 {
			if w.armed--; w.armed == 0 && w.err == nil {
				w.err = w.cut(w.pick(w.choice))
			}
		}
	}})
}

func (w *crashWorld) open() {
	s, err := storage.Open(w.disk.Env(7), crashDir, w.o)
	w.s = s
	w.try(err)
}

// pick chooses what a cut leaves.
func (w *crashWorld) pick(b [2]byte) simfs.Choice {
	units := max(len(w.disk.Pending()), 1)
	k := int(b[1]) % units
	switch b[0] % 8 {
	case 0:
		return simfs.Choice{Gen: simfs.DropAll}
	case 1:
		return simfs.Choice{Gen: simfs.KeepAll}
	case 2:
		return simfs.Choice{Gen: simfs.Prefix, K: k}
	case 3:
		return simfs.Choice{Gen: simfs.OmitOne, K: k, J: units}
	case 4:
		return simfs.Choice{Gen: simfs.OnlyOne, K: k}
	case 5:
		return simfs.Choice{Gen: simfs.Torn, K: k, Mask: b[0]>>3 | 1<<(b[1]&7)}
	case 6:
		return simfs.Choice{Gen: simfs.Killed}
	}
	return simfs.Choice{Gen: simfs.Random, P: 0.5, Seed: uint64(b[1]), Garbage: b[0]&8 != 0}
}

// cut opens what the choice leaves.
func (w *crashWorld) cut(choice simfs.Choice) error {
	image := w.disk.Crash(choice)
	defer image.Discard()
	s, _, err := w.recovered(image)
	if err != nil {
		return fmt.Errorf("choice %v: %w\n%s", choice, err, w.disk.Describe(choice))
	}
	return s.Close()
}

// recovered opens an image and finds its state in the history.
func (w *crashWorld) recovered(image *simfs.FS) (*storage.Store, int, error) {
	s, err := storage.Open(image.Env(9), crashDir, w.o)
	if err != nil {
		return nil, 0, fmt.Errorf("does not open: %w", err)
	}
	if r := s.Check(); len(r.Faults) > 0 {
		return nil, 0, fmt.Errorf("check: %q", r.Faults)
	}
	for n := len(w.history) - 1; n >= w.acked; n-- {
		same, err := holds(s, w.history[n])
		if err != nil {
			return nil, 0, err
		}
		if same {
			return s, n, nil
		}
	}
	return nil, 0, fmt.Errorf("holds none of the states from %d, acknowledged, to %d, submitted", w.acked, len(w.history)-1)
}

// holds reports whether the newest snapshot is m.
func holds(s *storage.Store, m crashModel) (same bool, err error) {
	sn := s.Snapshot()
	defer sn.Release()
	err = sn.Guard(func() error {
		got := crashModel{}
		for id := storage.CollID(1); id <= crashCollMax; id++ {
			c := sn.Collection(id)
			if c == nil {
				continue
			}
			h := crashColl{records: map[storage.RecordID]string{}, entries: map[string]string{}}
			t, _ := c.Tree(1)
			it := t.Iter()
			for ok := it.Seek(nil); ok; ok = it.Next() {
				h.entries[string(it.Key())] = string(it.Value())
			}
			records := c.Records(0, false)
			for records.Next() {
				h.records[records.ID()] = string(records.Bytes())
			}
			if err := errors.Join(it.Err(), records.Err()); err != nil {
				return err
			}
			got[id] = h
		}
		same = got.String() == m.String()
		return nil
	})
	return same, err
}

// write submits what the model holds already, add what change tells it of then.
func (w *crashWorld) write(f func(wr *storage.Writer) error) { w.add(f, func() {}) }

func (w *crashWorld) add(f func(wr *storage.Writer) error, change func()) {
	c, err := w.s.Write(f)
	change()
	w.history = append(w.history, w.model.clone())
	w.waiting = append(w.waiting, c)
	w.try(err)
}

func (w *crashWorld) wait() {
	for _, c := range w.waiting {
		w.try(c.Wait())
	}
	w.waiting, w.acked = nil, len(w.history)-1
	sn := w.s.Snapshot()
	w.judge.Visible(uint64(sn.LSN()))
	sn.Release()
	w.try(nil)
}

// bytes spells out a value of a length that matters: tiny, of some pages, or beyond what a tree keeps in a leaf.
func (w *crashWorld) bytes() string {
	b := w.next()
	n := int(b & 31)
	if b > 127 {
		n = int(b-127) * 97
	}
	return strings.Repeat(string(rune('a'+b%26)), n)
}

func (w *crashWorld) step() {
	kind := w.next() % crashSteps
	ids := slices.Sorted(maps.Keys(w.model))
	if len(ids) == 0 && kind < crashDrop {
		kind = crashCreate
	}
	switch {
	case kind == crashCreate:
		w.create(ids)
	case kind < crashCreate:
		w.edit(kind, ids[int(w.next())%len(ids)])
	case kind == crashDrop && len(ids) > 0:
		id := ids[int(w.next())%len(ids)]
		delete(w.model, id)
		w.write(func(wr *storage.Writer) error {
			wr.Lock(0)
			return wr.Lock(id).Drop()
		})
	case kind == crashWait:
		w.wait()
	case kind == crashCheckpoint:
		w.try(w.s.Checkpoint())
	case kind == crashMark:
		w.try(w.s.Mark())
	case kind == crashClear:
		_, err := w.s.ClearStep()
		w.try(err)
	case kind == crashReopen:
		w.wait()
		w.try(w.s.Close())
		w.open()
	case kind == crashArm:
		w.armed, w.choice = 1+int(w.next()), [2]byte{w.next(), w.next()}
	case kind == crashCut:
		w.try(w.cut(w.pick([2]byte{w.next(), w.next()})))
	case kind == crashBecome:
		w.become(w.pick([2]byte{w.next(), w.next()}))
	}
}

func (w *crashWorld) create(ids []storage.CollID) {
	if len(ids) >= 4 {
		return
	}
	id := storage.CollID(0)
	w.add(func(wr *storage.Writer) error {
		wr.Lock(0)
		c, err := wr.Create([]byte("c"))
		if err != nil {
			return err
		}
		id = c.ID()
		return c.CreateTree(1)
	}, func() {
		w.model[id] = crashColl{records: map[storage.RecordID]string{}, entries: map[string]string{}}
	})
}

// edit changes records and entries of a collection.
func (w *crashWorld) edit(kind byte, id storage.CollID) {
	c := w.model[id]
	var rid storage.RecordID
	switch kind {
	case crashInsert:
		record := w.bytes()
		w.add(func(wr *storage.Writer) (err error) {
			rid, err = wr.Lock(id).Insert([]byte(record))
			return err
		}, func() { c.records[rid] = record })
	case crashReplace, crashRemove:
		rids := slices.Sorted(maps.Keys(c.records))
		if len(rids) == 0 {
			return
		}
		rid = rids[int(w.next())%len(rids)]
		if kind == crashRemove {
			delete(c.records, rid)
			w.write(func(wr *storage.Writer) error { return wr.Lock(id).Remove(rid) })
			return
		}
		record := w.bytes()
		c.records[rid] = record
		w.write(func(wr *storage.Writer) error { return wr.Lock(id).Replace(rid, []byte(record)) })
	case crashPut:
		key, value := w.bytes(), w.bytes()
		c.entries[key] = value
		w.write(func(wr *storage.Writer) error { return wr.Lock(id).Put(1, []byte(key), []byte(value)) })
	case crashDelete:
		key := w.bytes()
		_, want := c.entries[key]
		delete(c.entries, key)
		w.write(func(wr *storage.Writer) error {
			found, err := wr.Lock(id).Delete(1, []byte(key))
			if err == nil && found != want {
				err = fmt.Errorf("delete of %q: found %v", key, found)
			}
			return err
		})
	}
}

// become goes on with what a cut has left.
func (w *crashWorld) become(choice simfs.Choice) {
	image := w.disk.Crash(choice)
	old := w.disk
	w.disk, w.armed = image, 0
	w.attach()
	s, n, err := w.recovered(image)
	if err != nil {
		w.t.Fatalf("choice %v: %v\n%s", choice, err, old.Describe(choice))
	}
	old.Discard()
	w.s, w.waiting = s, nil
	w.model = w.history[n].clone()
	// After a kill only, what was found may yet be lost; but opening has made it durable.
	w.history, w.acked = []crashModel{w.model.clone()}, 0
}

func (w *crashWorld) end() {
	w.wait()
	if same, err := holds(w.s, w.model); err != nil || !same {
		w.t.Fatalf("the state is not the model's (%v)", err)
	}
	w.try(w.s.Close())
}
