package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// CreateIndexesResult is what MongoDB's reply is made of. If After equals Before, all the indexes existed already.
type CreateIndexesResult struct {
	Before, After     int
	CreatedCollection bool
}

const (
	// buildSort is how many bytes of keys a build sorts in memory before it puts them into the tree.
	buildSort = 64 << 20
	// buildEntries is how many entries a build puts under one lock.
	buildEntries = 1024
	// scanTick is how many documents a build scans before it lets others have the processor.
	scanTick = 64
)

// CreateIndexes builds indexes, given as MongoDB's createIndexes has them ({key: …, name: …, unique: …}), and makes the
// collection if there is none. All of them are there afterwards, or none.
//
// Writers go on meanwhile. The first write of a build enters the indexes into the definition as being built; from then on each write of a
// document keeps their trees up to date, as far as they are filled, and notes the record in a second tree, the side. One snapshot behind
// that is scanned and its keys are sorted, a part of bounded size at a time, and put, except those of records that the side names: what the
// tree has of these is newer. The last write looks at what could not be decided on the way, drops the sides and says that the
// indexes are ready. If anything goes wrong, or at the next Open after a crash, they are dropped.
func (db *DB) CreateIndexes(ctx context.Context, ns Namespace, specs []bson.Raw) (CreateIndexesResult, error) {
	var result CreateIndexesResult
	if err := db.enter(); err != nil {
		return result, err
	}
	defer db.leave()
	if err := ns.Check(); err != nil {
		return result, err
	}
	parsed, err := parseSpecs(specs)
	if err != nil {
		return result, err
	}
	c := db.writing(ctx, ns, true)
	if err := c.find(false); err != nil {
		return result, clientError(err)
	}
	if result.CreatedCollection = c.into == nil; result.CreatedCollection {
		if err := c.find(true); err != nil {
			return result, c.end(err)
		}
	}
	b := build{writing: c}
	if err := b.claim(); err != nil {
		return result, c.end(err)
	}
	defer b.release()
	if result.Before, err = b.begin(parsed); err == nil && len(b.names) > 0 {
		if err = b.fill(); err == nil {
			err = b.ready()
		}
		if err != nil {
			b.drop()
		}
	}
	if errors.Is(err, errGone) {
		err = mongoerr.IndexBuildAborted.Errorf("the index build on %s was given up: its collection was dropped or renamed, or one of its indexes dropped", ns)
	}
	if err == nil {
		result.After = result.Before + len(b.names)
	}
	return result, c.end(err)
}

func parseSpecs(specs []bson.Raw) ([]catalog.IndexSpec, error) {
	if len(specs) == 0 {
		return nil, mongoerr.BadValue.Errorf("Must specify at least one index to create")
	}
	out := make([]catalog.IndexSpec, len(specs))
	for i, raw := range specs {
		var err error
		if out[i], err = catalog.ParseIndexSpec(raw); err != nil {
			return nil, err
		}
		if out[i].Partial != nil {
			f, err := match.Parse(out[i].Partial, match.Options{})
			if err != nil {
				return nil, err
			}
			if err := checkPartial(f.Root(), true); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// checkPartial holds the filters that MongoDB allows in partialFilterExpression.
func checkPartial(n match.Node, top bool) error {
	switch n := n.(type) {
	case *match.Always, *match.Comparison, *match.Type, *match.Exists:
		return nil
	case *match.In:
		if len(n.Regexes) == 0 {
			return nil
		}
	case *match.And:
		for _, inner := range n.Nodes {
			if err := checkPartial(inner, false); err != nil {
				return err
			}
		}
		return nil
	case *match.Or:
		for _, inner := range n.Nodes {
			if err := checkPartial(inner, false); err != nil {
				return err
			}
		}
		return nil
	}
	return mongoerr.CannotCreateIndex.Errorf("Expression not supported in partial index: only $eq, $in, $gt, $gte, $lt, $lte, $exists: true, $type, $and and $or are")
}

// build is the building of some indexes of one collection.
type build struct {
	*writing
	id       storage.CollID
	names    []string
	parts    []part
	progress *Progress
}

// claimStep is how often a build that waits for another asks whether it was killed.
const claimStep = 100 * time.Millisecond

// claim waits until no other build is under way in the collection, and keeps others out.
func (b *build) claim() error {
	b.id, b.progress = b.into.id, progressOf(b.ctx)
	db := b.db
	db.mu.Lock()
	defer db.mu.Unlock()
	for {
		if _, busy := db.builds[b.id]; !busy {
			db.builds[b.id] = struct{}{}
			return nil
		}
		if err := b.ctx.Err(); err != nil {
			return err
		}
		stop := db.env.Clock.AfterFunc(claimStep, func() {
			db.mu.Lock()
			db.changed.Broadcast()
			db.mu.Unlock()
		})
		db.changed.Wait()
		stop()
	}
}

func (b *build) release() {
	b.db.mu.Lock()
	delete(b.db.builds, b.id)
	b.db.changed.Broadcast()
	b.db.mu.Unlock()
}

func (db *DB) isBuilding(id storage.CollID) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	_, ok := db.builds[id]
	return ok
}

// write is a storage.Write on the collection; it is errGone if that was dropped, or one of the indexes.
func (b *build) write(f func(u *unit) error) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	commit, err := b.db.store.Write(func(w *storage.Writer) error {
		u, err := b.db.lock(w, b.into)
		if err != nil {
			return err
		}
		for _, name := range b.names {
			if i := u.def.Index(name); i < 0 || !u.def.Indexes[i].Building {
				return errGone
			}
		}
		return f(u)
	})
	b.commit = b.commit.Later(commit)
	return err
}

// begin enters what is new into the definition. Indexes that are being built though nobody builds them, since a build failed and could
// not tidy up, go.
func (b *build) begin(specs []catalog.IndexSpec) (before int, err error) {
	var names []string
	err = b.write(func(u *unit) error {
		if u.def.NS != b.ns {
			return errGone // it was renamed
		}
		names, before = nil, u.def.Ready()
		if u.def.Options.IsView() {
			return onView(u.def.NS)
		}
		d := u.def.Clone()
		if err := u.dropBuilding(d); err != nil {
			return err
		}
		for i := range specs {
			spec := specs[i]
			if err := spec.Inherit(d.Options.Collation); err != nil {
				return err
			}
			relation, err := d.Relate(&spec)
			if err != nil {
				return err
			}
			if relation == catalog.Identical {
				continue
			}
			if err := d.CheckIndexCount(1); err != nil {
				return err
			}
			x := d.AddIndex(spec)
			for _, tree := range []storage.TreeID{x.Tree, x.Side} {
				if err := u.sc.CreateTree(tree); err != nil {
					return err
				}
			}
			names = append(names, spec.Name)
		}
		if len(names) == 0 && len(d.Indexes) == len(u.def.Indexes) {
			return nil
		}
		return u.sc.SetDesc(d.Encode())
	})
	b.names = names
	return before, err
}

// dropBuilding drops the indexes that are being built.
func (u *unit) dropBuilding(d *catalog.Definition) error {
	for i := range u.def.Indexes {
		if x := &u.def.Indexes[i]; x.Building {
			if err := u.dropIndex(d, x.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropIndex drops the index from d, which replaces the unit's definition, and its trees.
func (u *unit) dropIndex(d *catalog.Definition, name string) error {
	x := d.Indexes[d.Index(name)]
	if x.Building {
		if err := u.sc.DropTree(x.Side); err != nil {
			return err
		}
	}
	d.RemoveIndex(name)
	return u.sc.DropTree(x.Tree)
}

// part is some of an index's entries, each a key with its record and its trailer, in one buffer.
type part struct {
	x       *index
	learned catalog.Index // of arrays
	buf     []byte
	entries []partEntry
	later   bool // others went into the tree before
}

type partEntry struct {
	at         int // of key and record id in the buffer
	end        int // of them, and where the trailer begins
	trailerEnd int
}

func (p *part) bytes() int { return len(p.buf) + 24*len(p.entries) }

// fill puts the entries of all documents.
func (b *build) fill() error {
	if err := b.commit.Wait(); err != nil {
		return err
	}
	sn := b.db.store.Snapshot()
	defer sn.Release()
	return sn.Guard(func() error {
		sc := sn.Collection(b.id)
		if sc == nil {
			return errGone
		}
		col, err := b.db.open(sc)
		if err != nil {
			return err
		}
		if !b.into.is(col.def) {
			return errGone
		}
		for i := range col.indexes {
			if x := &col.indexes[i]; slices.Contains(b.names, x.Name) {
				b.parts = append(b.parts, part{x: x})
			}
		}
		b.progress.begin("Index Build: scanning collection", int64(sc.Count()))
		var set keySet
		tick := b.db.tick(b.ctx)
		n := 0
		it := sc.Records(0, false)
		for it.Next() {
			for i := range b.parts {
				p := &b.parts[i]
				if err := set.make(p.x, it.Bytes()); err != nil {
					return err
				}
				p.learned.Learn(uint64(set.set.Multikey), set.set.Arrays)
				p.add(&set, it.ID())
				if p.bytes() > buildSort/len(b.parts) {
					if err := b.put(p); err != nil {
						return err
					}
				}
			}
			if n++; n%scanTick == 0 {
				b.progress.add(scanTick)
				if err := tick(); err != nil {
					return err
				}
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
		rest := 0
		for i := range b.parts {
			rest += len(b.parts[i].entries)
		}
		b.progress.begin("Index Build: inserting keys", int64(rest))
		for i := range b.parts {
			if err := b.put(&b.parts[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *part) add(set *keySet, id storage.RecordID) {
	for _, e := range set.keys {
		at := len(p.buf)
		p.buf = key.AppendRecordID(append(p.buf, e.key...), uint64(id))
		end := len(p.buf)
		p.buf = append(p.buf, e.trailer...)
		p.entries = append(p.entries, partEntry{at, end, len(p.buf)})
	}
}

func (p *part) key(i int) []byte { return p.buf[p.entries[i].at:p.entries[i].end] }

// put sorts the part and puts it into the tree, and empties it.
func (b *build) put(p *part) error {
	slices.SortFunc(p.entries, func(x, y partEntry) int { return bytes.Compare(p.buf[x.at:x.end], p.buf[y.at:y.end]) })
	most := buildEntries
	if b.db.env.Buggy("index build: small units") {
		most = 3
	}
	for done := 0; done < len(p.entries); {
		var next int
		err := b.write(func(u *unit) error {
			side, ok := u.sc.Tree(p.x.Side)
			if !ok {
				return corruptIndex(u.def.NS, p.x, "its side tree is not there")
			}
			for next = done; next < len(p.entries) && next < done+most && !u.full(0); next++ {
				k, id, _ := key.CutRecordID(p.key(next))
				if _, newer, err := side.Get(sideTouched.record(storage.RecordID(id))); err != nil {
					return err
				} else if newer {
					continue
				}
				if err := b.checkUnique(u, p, next, k, storage.RecordID(id), side.Entries > 0); err != nil {
					return err
				}
				e := p.entries[next]
				if err := u.sc.Put(p.x.Tree, p.key(next), p.buf[e.end:e.trailerEnd]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.progress.add(int64(next - done))
		done = next
	}
	p.buf, p.entries, p.later = p.buf[:0], p.entries[:0], true
	return nil
}

// checkUnique refuses entry i, with the key k, if there is one of its key. What is in the tree is as it is at head, so there are two
// documents with it. While the part is the first and no writer came, the tree has what stands before i in the part.
func (b *build) checkUnique(u *unit, p *part, i int, k []byte, id storage.RecordID, written bool) error {
	if !p.x.unique {
		return nil
	}
	twice := false
	if p.later || written {
		var err error
		if twice, err = u.another(p.x, k, id); err != nil {
			return err
		}
	} else if i > 0 {
		before, _, _ := key.CutRecordID(p.key(i - 1))
		twice = bytes.Equal(before, k)
	}
	if !twice {
		return nil
	}
	doc, err := u.sc.Record(id)
	if err != nil {
		return err
	}
	return duplicateKey(u.def.NS, p.x, k, doc)
}

// ready ends a build that went well.
func (b *build) ready() error {
	b.progress.begin("Index Build: draining writes", 0)
	return b.write(func(u *unit) error {
		d := u.def.Clone()
		for i := range b.parts {
			p := &b.parts[i]
			at := d.Index(p.x.Name)
			if err := u.judgeSide(&u.indexes[at]); err != nil {
				return err
			}
			x := &d.Indexes[at]
			if err := u.sc.DropTree(x.Side); err != nil {
				return err
			}
			x.Learn(p.learned.Multikey, p.learned.Arrays)
			x.Building, x.Side = false, 0
		}
		return u.sc.SetDesc(d.Encode())
	})
}

// drop ends one that did not: all indexes that are being built are its own.
func (b *build) drop() {
	commit, err := b.db.dropBuilding(b.into)
	if b.commit = b.commit.Later(commit); err != nil && !errors.Is(err, errGone) {
		b.db.log.Warn("an index build failed, and its indexes could not be dropped before the next one or the next start", "collection", b.ns.String(), "error", err)
	}
}
