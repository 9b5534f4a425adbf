package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"

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
	// buildUnit is how many bytes of log one write of a build makes.
	buildUnit = 1 << 20
)

// CreateIndexes builds indexes, given as MongoDB's createIndexes has them ({key: …, name: …, unique: …}), and makes the
// collection if there is none. All of them are there afterwards, or none.
//
// A build has three phases, and writers of the collection wait through all of them. The first write enters the indexes into the definition as being
// built. From then on no document changes, so one snapshot holds all that is to be indexed; its keys are sorted, a part of bounded size at a
// time, and put. The last write says that they are ready. If anything goes wrong, or at the next Open after a crash, they are dropped.
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
	b.claim()
	defer b.release()
	result.Before, err = b.begin(parsed)
	if err != nil || len(b.names) == 0 {
		result.After = result.Before
		return result, c.end(err)
	}
	if err = b.fill(); err == nil {
		err = b.ready()
	}
	if err != nil {
		if drop := b.drop(); drop != nil {
			db.log.Warn("an index build failed, and its indexes could not be dropped before the next start", "collection", ns.String(), "error", drop)
		}
		return result, c.end(err)
	}
	result.After = result.Before + len(b.names)
	return result, c.end(nil)
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
		if _, err := key.ParsePattern(out[i].Key); err != nil {
			return nil, err
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
	id    storage.CollID
	names []string
}

// claim waits until no other build is under way in the collection, and keeps others out.
func (b *build) claim() {
	b.id = b.into.id
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	for {
		if _, busy := b.db.builds[b.id]; !busy {
			b.db.builds[b.id] = struct{}{}
			return
		}
		b.db.changed.Wait()
	}
}

func (b *build) release() {
	b.db.mu.Lock()
	delete(b.db.builds, b.id)
	b.db.changed.Broadcast()
	b.db.mu.Unlock()
}

// write is a storage.Write on the collection, of which the build is the only writer of documents.
func (b *build) write(f func(u *unit) error) error {
	commit, err := b.db.store.Write(func(w *storage.Writer) error {
		u, err := b.db.lock(w, b.into)
		if err != nil {
			return err
		}
		return f(u)
	})
	b.commit = b.commit.Later(commit)
	if errors.Is(err, errGone) {
		return mongoerr.IndexBuildAborted.Errorf("the index build on %s was given up: the collection was dropped", b.ns)
	}
	return err
}

// begin enters what is new into the definition.
func (b *build) begin(specs []catalog.IndexSpec) (before int, err error) {
	err = b.write(func(u *unit) error {
		b.names, before = nil, u.def.Ready()
		d := u.def.Clone()
		for i := range specs {
			relation, err := d.Relate(&specs[i])
			if err != nil {
				return err
			}
			if relation == catalog.Identical {
				continue
			}
			if err := d.CheckIndexCount(1); err != nil {
				return err
			}
			if err := u.sc.CreateTree(d.AddIndex(specs[i]).Tree); err != nil {
				return err
			}
			b.names = append(b.names, specs[i].Name)
		}
		if len(b.names) == 0 {
			return nil
		}
		return u.sc.SetDesc(d.Encode())
	})
	return before, err
}

// part is some of an index's entries, each a key with its record and its trailer, in one buffer.
type part struct {
	x       *index
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
	var parts []part
	multikey := map[string]uint64{}
	err := sn.Guard(func() error {
		col, sc, err := b.db.collection(sn, b.ns)
		if err != nil {
			return err
		}
		if col == nil || !b.into.is(col.def) {
			return errGone
		}
		for i := range col.indexes {
			if x := &col.indexes[i]; slices.Contains(b.names, x.Name) {
				parts = append(parts, part{x: x})
			}
		}
		var set keySet
		tick := b.db.tick(b.ctx)
		n := 0
		it := sc.Records(0, false)
		for it.Next() {
			for i := range parts {
				p := &parts[i]
				if err := set.make(p.x, it.Bytes()); err != nil {
					return err
				}
				multikey[p.x.Name] |= uint64(set.set.Multikey)
				p.add(&set, it.ID())
				if p.bytes() > buildSort/len(parts) {
					if err := b.put(p); err != nil {
						return err
					}
				}
			}
			if n++; n%64 == 0 {
				if err := tick(); err != nil {
					return err
				}
			}
		}
		return it.Err()
	})
	for i := range parts {
		if err == nil {
			err = b.put(&parts[i])
		}
	}
	if errors.Is(err, errGone) {
		return mongoerr.IndexBuildAborted.Errorf("the index build on %s was given up: the collection was dropped", b.ns)
	}
	if err == nil {
		err = b.setMultikey(multikey)
	}
	return err
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

// put sorts the part and puts it into the tree, and empties it. It does not hold what it reads in the mapping across a wait.
func (b *build) put(p *part) error {
	slices.SortFunc(p.entries, func(x, y partEntry) int { return bytes.Compare(p.buf[x.at:x.end], p.buf[y.at:y.end]) })
	for done := 0; done < len(p.entries); {
		var next int
		err := b.write(func(u *unit) error {
			for next = done; next < len(p.entries); next++ {
				if _, size := u.w.Size(); size >= buildUnit {
					break
				}
				if err := b.checkUnique(u, p, next); err != nil {
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
		if err := b.ctx.Err(); err != nil {
			return err
		}
		done = next
	}
	p.buf, p.entries, p.later = p.buf[:0], p.entries[:0], true
	return nil
}

// checkUnique refuses entry i if the one before it, or one in the tree, has its key.
func (b *build) checkUnique(u *unit, p *part, i int) error {
	if !p.x.unique {
		return nil
	}
	k, id, _ := key.CutRecordID(p.key(i))
	twice := false
	if i > 0 {
		before, _, _ := key.CutRecordID(p.key(i - 1))
		twice = bytes.Equal(before, k)
	}
	if p.later && !twice {
		t, ok := u.sc.Tree(p.x.Tree)
		if !ok {
			return corruptIndex(u.def.NS, p.x, "its tree is not there")
		}
		it := t.Iter()
		twice = it.Seek(k) && bytes.HasPrefix(it.Key(), k)
		if err := it.Err(); err != nil {
			return err
		}
	}
	if !twice {
		return nil
	}
	doc, err := u.sc.Record(storage.RecordID(id))
	if err != nil {
		return err
	}
	return duplicateKey(u.def.NS, p.x, k, doc)
}

// setMultikey, ready and drop are the ends of a build.
func (b *build) setMultikey(bits map[string]uint64) error {
	return b.define(func(x *catalog.Index) { x.Multikey |= bits[x.Name] })
}

func (b *build) ready() error { return b.define(func(x *catalog.Index) { x.Building = false }) }

func (b *build) define(f func(x *catalog.Index)) error {
	return b.write(func(u *unit) error {
		d := u.def.Clone()
		for _, name := range b.names {
			if i := d.Index(name); i >= 0 {
				f(&d.Indexes[i])
			}
		}
		return u.sc.SetDesc(d.Encode())
	})
}

func (b *build) drop() error {
	return b.write(func(u *unit) error {
		d := u.def.Clone()
		for _, name := range b.names {
			if i := d.Index(name); i >= 0 {
				if err := u.sc.DropTree(d.Indexes[i].Tree); err != nil {
					return err
				}
				d.RemoveIndex(name)
			}
		}
		return u.sc.SetDesc(d.Encode())
	})
}
