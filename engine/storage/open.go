package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
)

const (
	dataName = "data"
	dataNew  = "data-new" // a data file that is being made
	lockName = "lock"
)

// Open opens the database in dir, and creates it if there is none.
//
// The steps, and what a crash in each leaves:
//
//  1. If there is no data file, make one under another name with two durable meta pages, then rename it. Before the rename is
//     durable there is no database, after it there is an empty one, whose log is empty too.
//  2. Read both meta pages and scan the log; the log tells which meta page is durable, and the meta page tells where
//     the log begins. Nothing is written, but a meta page whose place is in doubt is overwritten by the one that is not.
//  3. Accept the log's tail into a new segment, durably. From here on the outcome of this recovery cannot change any more.
//  4. Load the chosen snapshot, replay the log after it. Pages that the crashed process wrote and did not publish are free by
//     themselves.
func Open(e *env.Env, dir string, o Options) (*Store, error) { return open(e, dir, o, nil) }

// open calls loaded, if there is one, when the published checkpoint is loaded and the log not yet replayed.
func open(e *env.Env, dir string, o Options, loaded func(*Store)) (_ *Store, err error) {
	s := newStore(e, dir, o.withDefaults())
	defer func() {
		if err != nil {
			_ = s.release() // the error that is returned tells more
		}
	}()
	if err := e.FS.Mkdir(dir); err != nil {
		return nil, err
	}
	if s.lock, err = e.FS.Lock(path.Join(dir, lockName)); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if _, err = e.FS.Stat(path.Join(dir, dataName)); errors.Is(err, fs.ErrNotExist) {
		err = s.create()
	}
	if err != nil {
		return nil, err
	}
	// A name that an earlier process gave may be seen and not be durable.
	if err = e.FS.SyncDir(dir); err != nil {
		return nil, err
	}
	if s.file, err = e.FS.Open(path.Join(dir, dataName), env.OpenExisting); err != nil {
		return nil, err
	}
	if err := s.recover(loaded); err != nil {
		return nil, err
	}
	s.startKeeper()
	return s, nil
}

func newStore(e *env.Env, dir string, o Options) *Store {
	s := &Store{env: e, dir: dir, o: o}
	s.frames.init(e)
	s.verified.init(e, "verified pages")
	s.asked.init(e, "pages asked for")
	s.buffers.mu.Init(e, env.RankLeaf, "log buffers")
	s.colls.Store(new([]*coll))
	s.gate.Init(e, env.RankGate, "gate")
	s.pipe.Init(e, env.RankPipeline, "pipeline")
	s.leadFree.Init(e, &s.pipe, "leadership")
	s.chain.Init(e, env.RankSnapshots, "snapshots")
	s.checkpointer.mu.Init(e, env.RankAdmin, "checkpoint")
	s.checkpointer.done.Init(e, &s.pipe, "checkpoint done")
	s.keeper.mu.Init(e, env.RankLeaf, "keeper")
	s.keeper.work.Init(e, env.RankNone, "keeper at work")
	s.keeper.cond.Init(e, &s.keeper.mu, "keeper")
	s.keeper.done.Init(e, "keeper")
	s.committer.init(e)
	s.open = s.newBatch(1)
	return s
}

func (s *Store) walOptions() wal.Options {
	return wal.Options{SegmentSize: s.o.SegmentSize, BlockSize: s.o.BlockSize}
}

// create makes an empty database.
func (s *Store) create() (err error) {
	log, err := wal.Open(s.env, s.dir, s.walOptions())
	if err != nil {
		return err
	}
	if log.Size() > 0 {
		return errors.Join(fmt.Errorf("%s: there is a log, but no data file: %w", s.dir, ErrCorrupt), log.Close())
	}
	if err := log.Close(); err != nil {
		return err
	}
	temp := path.Join(s.dir, dataNew)
	switch err := s.env.FS.Remove(temp); {
	case err == nil:
		probe.DataFileUnfinished.Hit()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := s.env.FS.Open(temp, env.OpenExclusive)
	if err != nil {
		return err
	}
	var uuid [16]byte
	binary.LittleEndian.PutUint64(uuid[:], s.env.Rand.Uint64())
	binary.LittleEndian.PutUint64(uuid[8:], s.env.Rand.Uint64())
	if err := s.createData(f, uuid); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return s.env.FS.Rename(temp, path.Join(s.dir, dataName)) // the caller syncs the directory
}

// createData makes an empty data file with two durable meta pages.
func (s *Store) createData(f env.File, uuid [16]byte) error {
	alloc, err := page.Create(s.env, f, s.o.Geometry)
	if err != nil {
		return err
	}
	for generation := uint64(1); generation <= 2; generation++ {
		m := page.Meta{UUID: uuid, Generation: generation}
		if err := alloc.WriteBitmaps(&m); err != nil {
			return err
		}
		if err := f.Datasync(); err != nil {
			return err
		}
		if err := m.Write(f); err != nil {
			return err
		}
		if err := f.Datasync(); err != nil {
			return err
		}
		alloc.Published()
	}
	return nil
}

// recover brings the Store to the newest durable state.
func (s *Store) recover(loaded func(*Store)) (err error) {
	choice, err := s.pickMeta()
	if err != nil {
		return err
	}
	from, oldest := wal.LSN(choice.Chosen.LSN), wal.LSN(choice.Chosen.LSN)
	if choice.Fallback != nil {
		oldest = min(oldest, wal.LSN(choice.Fallback.LSN))
	}
	if _, err := s.log.Recover(from, oldest); err != nil {
		return err
	}
	// Settle comes before anything of the log is taken away: where a killed process left a meta page that was never synced,
	// a power cut would bring back the one below it, whose log must still be there then.
	if choice, err = page.Settle(s.file, choice); err != nil {
		return err
	}
	if err := s.log.Accept(); err != nil {
		return err
	}
	if s.alloc, err = page.Load(s.env, s.file, choice); err != nil {
		return err
	}
	s.setReserve()
	if s.mapping, err = s.file.Map(s.o.MapReserve); err != nil {
		return err
	}
	c := &s.checkpointer
	c.meta, c.next = choice.Chosen, choice.Next
	c.trees = metaTrees{heads: btreeHead(c.meta.Heads), space: btreeHead(c.meta.Space)}
	s.publishedMeta.Store(c.meta.Generation)
	s.checkpointLSN = LSN(c.meta.LSN)
	// Pages that a crashed process wrote and never published may bear births of this counter's last value. So each open has
	// one of its own, which Accept has made durable.
	c.meta.Opens = max(c.meta.Opens+1, s.log.Epoch())
	s.gen.Store(c.meta.Opens << page.GenCounterBits)
	if err := s.mapping.Guard(s.load); err != nil {
		return err
	}
	if loaded != nil {
		loaded(s)
	}
	return s.mapping.Guard(func() error { return s.replay(from) })
}

// setReserve fits the reserve to the size of the file.
func (s *Store) setReserve() {
	s.alloc.SetReserve(min(s.o.Reserve, max(64, int(s.alloc.Stats().File/200))))
}

func (s *Store) pickMeta() (page.Choice, error) {
	slot0, slot1, err := page.ReadMetaPages(s.file)
	if err != nil {
		return page.Choice{}, err
	}
	if s.log, err = wal.Open(s.env, s.dir, s.walOptions()); err != nil {
		return page.Choice{}, err
	}
	proven, known := s.log.Proven()
	return page.Pick(slot0, slot1, proven, known)
}

// load makes the chosen meta page's snapshot the visible one.
func (s *Store) load() error {
	t := s.checkpointer.trees
	loaded, err := loadHeads(btree.Tree{Head: t.heads, R: s})
	if err != nil {
		return err
	}
	if loaded[0] == nil {
		loaded[0] = new(head)
	}
	var touched []*coll
	colls := []*coll{}
	for _, id := range slices.Sorted(maps.Keys(loaded)) {
		h := loaded[id]
		c := newColl(s.env, id)
		h.open = h.open.rounded()
		c.head.Store(h)
		for int(id) >= len(colls) {
			colls = append(colls, nil)
		}
		colls[id] = c
		touched = append(touched, c)
	}
	s.colls.Store(&colls)
	if err := s.loadExtents(btree.Tree{Head: t.space, R: s}); err != nil {
		return err
	}
	s.sealed = heads(nil).with(touched)
	s.checkpointer.heads = s.sealed
	sn := &Snapshot{s: s, num: s.nextGen(), lsn: LSN(s.checkpointer.meta.LSN), heads: s.sealed}
	sn.pins.Store(1)
	s.visible.Store(sn)
	return nil
}

func (s *Store) loadExtents(t btree.Tree) error {
	it := t.Iter()
	for ok := it.Seek(nil); ok; ok = it.Next() {
		id, x, err := decodeExtent(it.Key(), it.Value())
		if err != nil {
			return err
		}
		c := s.coll(id)
		if c == nil {
			return fmt.Errorf("space tree: an extent of collection %d, which does not exist: %w", id, ErrCorrupt)
		}
		c.extents = append(c.extents, x)
		s.count(c, space{total: int64(x.run.Count) * page.Size, live: x.live})
	}
	return it.Err()
}

// replay applies the log after the checkpoint. What it builds is installed like any write, and published at the ends of
// batches, but nothing is logged again.
func (s *Store) replay(from wal.LSN) error {
	var pending int
	err := s.log.Replay(from, func(end wal.LSN, last bool, payload []byte) error {
		if err := s.apply(payload); err != nil {
			return fmt.Errorf("log before LSN %d: %w", end, err)
		}
		if pending += len(payload); last {
			s.publishReplayed(LSN(end))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if int64(pending) > s.o.CheckpointBytes/2 {
		s.wantCheckpoint()
	}
	s.checkpointer.pending.logBytes = int64(pending)
	s.keeper.clear = true
	return nil
}

func (s *Store) publishReplayed(end LSN) {
	probe.ReplayedBatch.Hit()
	b, sn := s.seal(false)
	sn.lsn = end
	s.publish(b, sn)
	s.finish(b, nil)
}

// applyMax is how many records one write of a replay takes.
const applyMax = 1024

// apply applies the records of one block. Each write takes records as long as it need not lock a collection of a lower
// number than it holds already.
func (s *Store) apply(payload []byte) error {
	d := wal.NewDecoder(payload)
	var chunk []wal.Record
	highest := uint32(0)
	held := make(map[uint32]bool)
	flush := func() error {
		highest = 0
		clear(held)
		if len(chunk) == 0 {
			return nil
		}
		_, err := s.write(func(w *Writer) error {
			for _, r := range chunk {
				if err := w.apply(r); err != nil {
					return err
				}
			}
			w.log = w.log[:0]
			return nil
		}, freeing)
		chunk = chunk[:0]
		return err
	}
	for d.Next() {
		r := d.Record()
		if r.Type == wal.CreateCollection {
			if err := flush(); err != nil {
				return err
			}
			if err := s.vacate(CollID(r.Coll)); err != nil {
				return err
			}
		}
		if len(chunk) == applyMax || r.Coll < highest && !held[r.Coll] {
			if err := flush(); err != nil {
				return err
			}
		}
		highest = max(highest, r.Coll)
		held[r.Coll] = true
		chunk = append(chunk, r)
	}
	if err := d.Err(); err != nil {
		return err
	}
	return flush()
}

// vacate clears a dropped collection away whose number the log gives to a new one: in the run that wrote the log it was.
func (s *Store) vacate(id CollID) error {
	for s.coll(id) != nil {
		if h := s.coll(id).head.Load(); !h.dropped {
			return fmt.Errorf("collection %d is created, but exists: %w", id, ErrCorrupt)
		}
		probe.ReplayVacated.Hit()
		if _, err := s.WriteFreeing(func(w *Writer) error { return w.clearStep(id) }); err != nil {
			return err
		}
	}
	return nil
}

// apply does to the collection at head what the record says.
func (w *Writer) apply(r wal.Record) error {
	if r.Type == wal.CreateCollection {
		_, err := w.createAs(CollID(r.Coll))
		return err
	}
	c := w.Lock(CollID(r.Coll))
	if c == nil {
		return fmt.Errorf("no collection %d: %w", r.Coll, ErrCorrupt)
	}
	switch r.Type {
	case wal.DropCollection:
		return c.Drop()
	case wal.SetDesc:
		return c.SetDesc(append([]byte(nil), r.Value...))
	case wal.CreateTree:
		return c.CreateTree(TreeID(r.Tree))
	case wal.DropTree:
		return c.DropTree(TreeID(r.Tree))
	case wal.TreePut:
		return c.Put(TreeID(r.Tree), r.Key, r.Value)
	case wal.TreeDelete:
		_, err := c.Delete(TreeID(r.Tree), r.Key)
		return err
	case wal.RecordPut:
		if _, err := c.Record(RecordID(r.ID)); errors.Is(err, ErrNoRecord) {
			return c.put(RecordID(r.ID), r.Value)
		}
		return c.Replace(RecordID(r.ID), r.Value)
	case wal.RecordDelete:
		return c.Remove(RecordID(r.ID))
	}
	return fmt.Errorf("%w: %d", wal.ErrUnknownRecord, r.Type)
}

// release closes what is open.
func (s *Store) release() error {
	var errs []error
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.mapping != nil {
		errs = append(errs, s.mapping.Unmap())
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
