package engine

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// target is what a statement that changes documents looks for.
type target struct {
	filter *match.Filter
	sort   *sortkey.Spec
	hint   bson.RawValue
	terms  *terms
	byID   bool // the filter is a test of _id alone
	most   int  // how many documents a search gives at most; 0: all

	searched *collection // where the candidates are: the numbers of records mean nothing elsewhere
}

// matched is a document that a change is made to, at head. index is the array position that the filter's positional
// operator stands for, or -1.
type matched struct {
	id    storage.RecordID
	doc   bson.Raw
	index int
}

const (
	// spareCandidates is how many documents a search for one gives. If others are quicker with the first, the next may still do.
	spareCandidates = 16
	// scanUnit is how many candidates are looked at under one lock.
	scanUnit = unitDocs
)

func (c *writing) target(in *terms, filter, sort bson.Raw, hint bson.RawValue) (*target, error) {
	t := &target{hint: hint, terms: in}
	var err error
	if t.filter, err = match.Parse(filter, in.matching()); err != nil {
		return nil, err
	}
	if t.sort, err = sortkey.Parse(sort, in.sorting()); err != nil {
		return nil, err
	}
	n, ok := t.filter.Root().(*match.Comparison)
	t.byID = ok && hint.Type == 0 && n.Path == "_id" && n.Op == match.Eq && n.Value.Type != bson.TypeArray && !value.IsNullish(n.Value) &&
		(in.inherits || !key.HoldsText(n.Value))
	return t, nil
}

func (t *target) plan(col *collection, s source, sortMemory int) (*query.Plan, error) {
	if err := t.terms.fit(col); err != nil {
		return nil, err
	}
	q := query.Query{Filter: t.filter, Sort: t.sort, Hint: t.hint, SortMemory: sortMemory, Collation: t.terms.coll, OnlyIDs: true}
	return query.New(q, col.plan, s, &col.choices)
}

// edit changes a document that matches, and says whether that made a difference. It may be called more than once for one document.
type edit func(u *unit, m matched) (changed bool, err error)

// tally counts documents.
type tally struct{ matched, changed int }

// change runs f on the documents that match, or on one of them.
//
// It searches what is visible, without a lock. Then, with the lock, it reads each candidate again at head and tests it again. A
// search for one document that found candidates none of which will do any more has lost to other writers: it waits until
// their commit is visible and searches again. A test of _id alone is looked up at head at once.
func (c *writing) change(t *target, multi bool, f edit) (tally, error) {
	for {
		ids, err := c.search(t, multi)
		if err != nil || len(ids) == 0 && !t.byID {
			return tally{}, err
		}
		n, err := c.changeAll(t, ids, multi, f)
		if err != nil || n.matched > 0 || multi || t.byID {
			return n, err
		}
		if err := c.commit.Wait(); err != nil {
			return tally{}, err
		}
	}
}

// search collects candidates from what is visible.
func (c *writing) search(t *target, multi bool) ([]uint64, error) {
	if t.byID {
		return nil, nil
	}
	var ids []uint64
	sn := c.db.store.Snapshot()
	defer sn.Release()
	err := sn.Guard(func() error {
		col, sc, err := c.db.collection(sn, c.ns)
		if err != nil || col == nil {
			return err
		}
		if c.into == nil || !c.into.is(col.def) {
			c.into = col
		}
		t.searched = col
		p, err := t.plan(col, source{sc}, c.db.opt.SortMemory)
		if err != nil {
			return err
		}
		r := p.Start()
		r.Attach(source{sc}, c.db.tick(c.ctx))
		most := t.most
		if !multi {
			most = spareCandidates
		}
		for (most == 0 || len(ids) < most) && r.Next() {
			ids = append(ids, r.ID())
		}
		return r.Err()
	})
	return ids, err
}

// changeAll runs f on those of the candidates that still match, in as many writes as it takes.
func (c *writing) changeAll(t *target, ids []uint64, multi bool, f edit) (total tally, err error) {
	for first := true; first || len(ids) > 0; first = false {
		var looked int
		var n tally
		var bad error
		found, err := c.do(false, func(u *unit) (err error) {
			if t.byID {
				if ids, err = u.lookUp(t, false); err != nil {
					return err
				}
			}
			if !t.searched.is(u.def) {
				looked, n, bad = len(ids), tally{}, nil
				return nil
			}
			looked, n, err = u.changeSome(t, ids, multi, f)
			if bad = nil; refused(err) {
				bad, err = err, nil
			}
			return err
		})
		if err != nil || !found {
			return total, err
		}
		total.matched += n.matched
		total.changed += n.changed
		if bad != nil || !multi && n.matched > 0 {
			return total, bad
		}
		ids = ids[looked:]
	}
	return total, nil
}

// changeSome runs f on those of the candidates that still match, until the write is full; looked is how many were dealt with. An
// error that refuses one document leaves what was done to those before it.
func (u *unit) changeSome(t *target, ids []uint64, multi bool, f edit) (looked int, n tally, err error) {
	for _, id := range ids {
		if looked == scanUnit || u.full(n.matched) {
			break
		}
		looked++
		m, ok, err := u.matches(t, id)
		if err != nil {
			return looked, n, err
		}
		if !ok {
			continue
		}
		changed, err := f(u, m)
		if err != nil {
			return looked, n, err
		}
		n.matched++
		if changed {
			n.changed++
		}
		if !multi {
			break
		}
	}
	return looked, n, nil
}

// lookUp searches at head.
func (u *unit) lookUp(t *target, multi bool) ([]uint64, error) {
	t.searched = u.collection
	p, err := t.plan(u.collection, source{u.sc}, u.sortMemory)
	if err != nil {
		return nil, err
	}
	r := p.Start()
	r.Attach(source{u.sc}, func() error { return nil })
	var ids []uint64
	for (multi || len(ids) == 0) && r.Next() {
		ids = append(ids, r.ID())
	}
	return ids, r.Err()
}

// matches reads a candidate at head.
func (u *unit) matches(t *target, id uint64) (m matched, ok bool, err error) {
	m.id = storage.RecordID(id)
	m.doc, err = u.sc.Record(m.id)
	if errors.Is(err, storage.ErrNoRecord) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	ok, m.index, err = t.filter.MatchIndex(m.doc)
	return m, ok, err
}
