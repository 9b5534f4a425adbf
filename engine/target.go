package engine

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// target is what a statement that changes documents looks for.
type target struct {
	filter *match.Filter
	sort   *query.SortX
	hint   bson.RawValue
	byID   bool // the filter is a test of _id alone
	most   int  // how many documents a search gives at most; 0: all
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

func (c *writing) target(filter, sort bson.Raw, hint bson.RawValue, collation bson.Raw) (*target, error) {
	t := &target{hint: hint}
	if collation != nil {
		if err := catalog.CheckCollation(value.Document(collation)); err != nil {
			return nil, err
		}
	}
	var err error
	if t.filter, err = match.Parse(filter, match.Options{}); err != nil {
		return nil, err
	}
	if sort != nil {
		if t.sort, err = query.ParseSort(sort); err != nil {
			return nil, err
		}
	}
	n, ok := t.filter.Root().(*match.Comparison)
	t.byID = ok && hint.Type == 0 && n.Path == "_id" && n.Op == match.Eq && n.Value.Type != bson.TypeArray && !value.IsNullish(n.Value)
	return t, nil
}

func (t *target) plan(col *collection, s source, sortMemory int) (*query.Plan, error) {
	return query.New(query.Query{Filter: t.filter, Sort: t.sort, Hint: t.hint, SortMemory: sortMemory}, col.plan, s.estimate)
}

// change runs f on the documents that match, or on one of them, and tells on how many.
//
// It searches what is visible, without a lock. Then, with the lock, it reads each candidate again at head and tests it again. A
// search for one document that found candidates none of which will do any more has lost to other writers: it waits until
// their commit is visible and searches again. A test of _id alone is looked up at head at once.
func (c *writing) change(t *target, multi bool, f func(u *unit, m matched) error) (int, error) {
	for {
		ids, err := c.search(t, multi)
		if err != nil || len(ids) == 0 && !t.byID {
			return 0, err
		}
		n, err := c.changeAll(t, ids, multi, f)
		if err != nil || n > 0 || multi || t.byID {
			return n, err
		}
		if err := c.commit.Wait(); err != nil {
			return 0, err
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
func (c *writing) changeAll(t *target, ids []uint64, multi bool, f func(u *unit, m matched) error) (int, error) {
	total := 0
	for first := true; first || len(ids) > 0; first = false {
		var looked, n int
		var bad error
		found, err := c.do(false, func(u *unit) error {
			looked, n, bad = 0, 0, nil
			if t.byID {
				var err error
				if ids, err = u.lookUp(t); err != nil {
					return err
				}
			}
			for _, id := range ids {
				if looked == scanUnit || u.full(n) {
					break
				}
				looked++
				m, ok, err := u.matches(t, id)
				if err == nil && ok {
					err = f(u, m)
				}
				if refused(err) {
					bad = err
					return nil
				}
				if err != nil {
					return err
				}
				if ok {
					if n++; !multi {
						return nil
					}
				}
			}
			return nil
		})
		if err != nil || !found {
			return total, err
		}
		total += n
		if bad != nil || !multi && n > 0 {
			return total, bad
		}
		ids = ids[looked:]
	}
	return total, nil
}

// lookUp finds the record by _id, at head.
func (u *unit) lookUp(t *target) ([]uint64, error) {
	p, err := t.plan(u.collection, source{u.sc}, 0)
	if err != nil {
		return nil, err
	}
	r := p.Start()
	r.Attach(source{u.sc}, func() error { return nil })
	var ids []uint64
	for r.Next() {
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
