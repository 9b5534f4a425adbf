package storage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
)

// checkpointer publishes snapshots to the data file. Its fields belong to whoever holds mu, but for those under Store.pipe.
type checkpointer struct {
	mu    env.Mutex // one checkpoint at a time
	meta  page.Meta // the newest published
	next  uint64    // generation of the next
	trees metaTrees // as published
	heads heads     // as published: what the heads tree says
	mark  page.ID   // if not 0, the next checkpoint moves pages of its trees from there on below it

	// Under Store.pipe: admission.
	done    env.Cond
	pending pendingWork
	left    int64 // pages in memory after the last checkpoint: the empty ones of open extents are no reason for the next
	err     error // of the last checkpoint
}

// pendingWork is what recovery would have to do again, and what a checkpoint would write.
type pendingWork struct {
	logBytes int64
	edits    int64
}

// Checkpoint publishes the newest durable state to the data file. Writers and readers go on meanwhile.
//
// The order of its steps is what makes a crash at any of them harmless:
//
//  1. The log must already say that the meta page published last is durable: until it does, recovery may choose the one
//     that this checkpoint is about to overwrite.
//  2. Seal with rounded extents, wait until that batch is durable, pin its snapshot. What is written from here on is what
//     that snapshot says, whatever writers do.
//  3. Build the new heads and space trees in pages of their own.
//  4. Write the pages and records that no earlier checkpoint has written, and the bitmaps of what is reachable, to places
//     that neither published meta page reaches.
//  5. Sync. Only then write the meta page: a meta page that names an unwritten root is data loss. Sync again.
//  6. Only then let go of frames, of the pages that only the overwritten meta page reached, and of the log before the
//     older of the two meta pages.
func (s *Store) Checkpoint() error {
	c := &s.checkpointer
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	return s.checkpoint()
}

func (s *Store) checkpoint() error {
	c := &s.checkpointer
	if err := s.proveMeta(); err != nil {
		return err
	}
	s.pipe.Lock()
	before := c.pending
	c.pending = pendingWork{}
	s.pipe.Unlock()

	var sn *Snapshot
	var folds []fold
	var trees metaTrees
	var w *Writer
	err := s.holdFree(func() (err error) {
		// Pinned while leading: in a snapshot published after this one the extents would not be rounded.
		s.lead(func() {
			s.commitOpen(true)
			sn = s.Snapshot()
		})
		if s.Failed() != nil {
			return ErrFailed
		}
		folds = s.foldsUpTo(sn.num)
		trees, w, err = s.buildMetaTrees(sn, folds)
		return err
	})
	defer sn.Release()
	if err != nil { // nothing was written; the folds are still there
		s.pipe.Lock()
		c.pending.logBytes += before.logBytes
		c.pending.edits += before.edits
		s.pipe.Unlock()
		return err
	}
	if err := s.writeCheckpoint(sn, folds, trees, w); err != nil {
		probe.CheckpointFailed.Hit()
		return s.fail(err)
	}
	return nil
}

// proveMeta makes the log say that the newest meta page is durable.
func (s *Store) proveMeta() error {
	if proven, ok := s.log.Proven(); ok && proven >= s.publishedMeta.Load() {
		return nil
	}
	return s.mark()
}

// leftOf tells what batches have made, and taken from what was published, in all. What one of them made and another gave up has been in
// memory only; it may even have been cut off with the end of the file.
func leftOf(folds []fold) (born, retired []page.Run) {
	at := make(map[page.ID]int)
	for _, f := range folds {
		for _, r := range f.born {
			at[r.First] = len(born)
			born = append(born, r)
		}
		for _, r := range f.retired {
			if i, ok := at[r.First]; ok {
				born[i].Count = 0
				delete(at, r.First)
			} else {
				retired = append(retired, r.Run)
			}
		}
	}
	return slices.DeleteFunc(born, func(r page.Run) bool { return r.Count == 0 }), retired
}

// foldsUpTo gives what the batches since the last checkpoint did, up to snapshot num.
func (s *Store) foldsUpTo(num page.Gen) []fold {
	s.chain.Lock()
	defer s.chain.Unlock()
	n := len(s.unfolded)
	for n > 0 && s.unfolded[n-1].num > num {
		n--
	}
	return s.unfolded[:n:n]
}

// buildMetaTrees makes the heads tree and the space tree say what the snapshot says. They are built like any other pages, by a
// Writer that is never installed: no snapshot reaches them, only the meta page.
func (s *Store) buildMetaTrees(sn *Snapshot, folds []fold) (metaTrees, *Writer, error) {
	for need := (need{pages: 64}); ; need.pages *= 2 {
		w, err := s.begin(need, freeing)
		if err != nil {
			return metaTrees{}, nil, err
		}
		trees := s.checkpointer.trees
		err = sn.Guard(func() error { return s.editMetaTrees(w, &trees, sn, folds) })
		if err == nil {
			return trees, w, nil
		}
		w.drop()
		w.ticket.Release()
		if !errors.Is(err, errShort) {
			return metaTrees{}, nil, err
		}
	}
}

func (s *Store) editMetaTrees(w *Writer, trees *metaTrees, sn *Snapshot, folds []fold) error {
	var ids []CollID
	type key struct {
		coll  CollID
		first page.ID
	}
	changes := make(map[key]extentChange)
	var keys []key
	for _, f := range folds {
		for _, c := range f.touched {
			ids = append(ids, c.id)
		}
		for _, x := range f.extents {
			k := key{x.coll, x.run.First}
			have, ok := changes[k]
			if !ok {
				keys = append(keys, k)
			}
			switch {
			case have.birth != x.birth:
				have = x // the first change of this extent, in a place where another may have been
			case x.gone:
				have.gone = true
			default:
				have.live += x.live
			}
			changes[k] = have
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if err := saveHead(s.o.Tree, w, &trees.heads, id, s.checkpointer.heads.get(id), sn.heads.get(id)); err != nil {
			return err
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.coll != b.coll {
			return int(int64(a.coll) - int64(b.coll))
		}
		return int(int64(a.first) - int64(b.first))
	})
	for _, k := range keys {
		if err := saveExtent(w, &trees.space, changes[k]); err != nil {
			return err
		}
	}
	return s.tidyMetaTrees(w, trees)
}

// saveExtent applies a change to the space tree.
func saveExtent(w *Writer, t *btree.Head, x extentChange) error {
	k := spaceKey(x.coll, x.run.First)
	old, ok, err := btree.Tree{Head: *t, R: w}.Get(k)
	if err != nil {
		return err
	}
	if x.gone {
		if ok {
			_, err = w.s.o.Tree.Delete(w, t, k)
		}
		return err
	}
	live := x.live
	if ok {
		var pages, birth, was uint64
		if !uvarints(old, &pages, &birth, &was) {
			return fmt.Errorf("space tree: key %x: %w", k, ErrCorrupt)
		}
		if page.Gen(birth) == x.birth {
			live += int64(was)
		}
	}
	if live < 0 {
		panic(fmt.Sprintf("collection %d: extent at page %d has %d live bytes", x.coll, x.run.First, live))
	}
	_, err = w.s.o.Tree.Put(w, t, k, appendUvarints(nil, uint64(x.run.Count), uint64(x.birth), uint64(live)))
	return err
}

func (s *Store) writeCheckpoint(sn *Snapshot, folds []fold, trees metaTrees, w *Writer) error {
	c := &s.checkpointer
	born, retired := leftOf(folds)
	s.alloc.Stage(born, retired)
	var built []page.Run
	for _, f := range w.born {
		if f != nil {
			built = append(built, page.Run{First: f.first, Count: 1})
		}
	}
	s.alloc.Stage(built, runsOf(w.retired))

	cleaned := s.stats.cleanedBytes.Load()
	written := s.writePages(folds, append(born, built...))
	if written.err != nil {
		return written.err
	}
	meta := c.meta
	meta.Generation = c.next
	meta.Gen = page.Gen(s.gen.Load())
	meta.LSN = uint64(sn.lsn)
	meta.Heads, meta.Space = treeHead(trees.heads), treeHead(trees.space)
	if err := s.alloc.WriteBitmaps(&meta); err != nil {
		return err
	}
	if err := s.file.Datasync(); err != nil {
		return fmt.Errorf("sync of the data file: %w", err)
	}
	s.env.Point("meta")
	if err := meta.Write(s.file); err != nil {
		return err
	}
	if err := s.file.Datasync(); err != nil {
		return fmt.Errorf("sync of the meta page: %w", err)
	}

	size, err := s.file.Size()
	if err != nil {
		return err
	}
	if err := s.mapping.Grow(size); err != nil {
		return err
	}
	probe.CleaningDuringCheckpoint.HitIf(s.stats.cleanedBytes.Load() > cleaned)
	older := c.meta.LSN
	c.meta, c.next, c.trees, c.heads, c.mark = meta, meta.Generation+1, trees, sn.heads, 0
	s.publishedMeta.Store(meta.Generation)
	s.alloc.Published()
	s.chain.Lock()
	s.unfolded = slices.Clone(s.unfolded[len(folds):])
	s.checkpointLSN = sn.lsn
	s.chain.Unlock()
	for _, r := range written.runs {
		s.frames.drop(r)
	}
	for _, k := range *s.colls.Load() {
		if k != nil {
			k.cleaned.Store(false) // what was in memory only can be cleaned now
		}
	}
	for _, r := range w.retired {
		s.free([]page.Run{r.Run})
	}
	w.ticket.Release()
	if err := s.log.Release(wal.LSN(older)); err != nil {
		return err
	}
	s.setReserve()
	s.stats.checkpoints.Add(1)

	s.pipe.Lock()
	c.err = nil
	c.left = s.frames.count.Load()
	c.done.Broadcast()
	s.pipe.Unlock()
	return nil
}

func treeHead(h btree.Head) page.TreeHead {
	return page.TreeHead{Root: h.Root, Height: h.Height, Entries: h.Entries, Pages: h.Pages, Overflow: h.Overflow}
}

func btreeHead(h page.TreeHead) btree.Head {
	return btree.Head{Root: h.Root, Height: h.Height, Entries: h.Entries, Pages: h.Pages, Overflow: h.Overflow}
}

func runsOf(rs []retired) []page.Run {
	out := make([]page.Run, len(rs))
	for i, r := range rs {
		out[i] = r.Run
	}
	return out
}

type writtenPages struct {
	runs []page.Run
	err  error
}

// writePages writes what the checkpoint's snapshot reaches and no earlier checkpoint has written: tree and table pages out of
// their frames, and the appended parts of extents.
func (s *Store) writePages(folds []fold, born []page.Run) writtenPages {
	var out coalescer
	out.s = s
	var ids []page.ID
	spans := make(map[*frame]span)
	var order []*frame
	for _, f := range folds {
		for _, sp := range f.spans {
			have, ok := spans[sp.f]
			if !ok {
				order = append(order, sp.f)
				have = sp
			}
			have.from, have.to = min(have.from, sp.from), max(have.to, sp.to)
			spans[sp.f] = have
		}
	}
	for _, r := range born {
		if r.Count == 1 {
			ids = append(ids, r.First)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		f := s.frames.get(id)
		if f == nil {
			panic(fmt.Sprintf("page %d: reachable, not written, and not in memory", id))
		}
		if !f.records { // else the number was given up, and is an extent's now: see the spans
			out.page(f)
		}
	}
	slices.SortFunc(order, func(a, b *frame) int { return int(int64(a.first) - int64(b.first)) })
	for _, f := range order {
		// Only if the extent is reachable still, and the run has not become another's.
		if sp, id := spans[f], page.ID(spans[f].from/page.Size); s.alloc.Staged(id) && s.frames.get(id) == f {
			out.span(sp)
		}
	}
	out.flush()
	return out.writtenPages
}

// coalescer joins adjacent pages into large writes.
type coalescer struct {
	s *Store
	writtenPages
	first page.ID
	buf   []byte
}

const coalesceMax = 1 << 20

func (o *coalescer) page(f *frame) {
	at := len(o.buf)
	if at > 0 && (o.first+page.ID(at/page.Size) != f.first || at >= coalesceMax) {
		o.flush()
		at = 0
	}
	if at == 0 {
		o.first = f.first
	}
	o.buf = append(o.buf, f.buf...)
	page.Seal(o.buf[at:])
}

// span writes the pages that records were appended to. Beyond the last record of the snapshot a page is zero in the file: a
// writer that has to run again may have left something there in memory.
func (o *coalescer) span(sp span) {
	o.flush()
	from := sp.from &^ (page.Size - 1)
	full := sp.to &^ (page.Size - 1)
	if full > from {
		o.write(page.Run{First: page.ID(from / page.Size), Count: uint32((full - from) / page.Size)}, sp.f.from(from)[:full-from])
	}
	if full < sp.to {
		var last [page.Size]byte
		copy(last[:], sp.f.from(max(full, from))[:sp.to-full])
		o.write(page.Run{First: page.ID(full / page.Size), Count: 1}, last[:])
	}
}

func (o *coalescer) flush() {
	if len(o.buf) > 0 {
		o.write(page.Run{First: o.first, Count: uint32(len(o.buf) / page.Size)}, o.buf)
		o.buf = o.buf[:0]
	}
}

func (o *coalescer) write(r page.Run, b []byte) {
	if o.err != nil {
		return
	}
	for id := r.First; id < r.End(); id++ {
		o.s.verified.retract(id)
	}
	if _, err := o.s.file.WriteAt(b, int64(r.First)*page.Size); err != nil {
		o.err = fmt.Errorf("pages %d to %d: %w", r.First, r.End()-1, err)
		return
	}
	o.runs = append(o.runs, r)
	o.s.stats.pagesWritten.Add(int64(r.Count))
}
