package query

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Run is a plan under way. It reads one Source at a time and may go on in a later one:
//
//	r := plan.Start()
//	r.Attach(source, tick)
//	for r.Next() { use(r.ID(), r.Doc()) }
//	err := r.Err()
//	r.Detach()
//	r.Close()
//
// tick is called about every 50 µs; an error from it ends the run. Between Detach and Attach a Run holds the key of the
// last entry it has seen, what it needs to give no record twice, and the rows of a sort.
type Run struct {
	plan *Plan
	access
	seen map[uint64]struct{} // ids given, if entries may name a record twice
	covered
	sieve  *sieve
	sifted covered

	skipped  int64
	returned int64
	rows     *sortkey.Sorter // of a sort in memory, once it is filled

	id   uint64
	doc  bson.Raw
	out  []byte // the projected document
	key  []byte // the document of returnKey
	kept bool   // doc is to be given again
	err  error
}

// Start begins a run.
func (p *Plan) Start() *Run {
	r := &Run{plan: p, access: access{scan: &p.scan, tail: p.Tail}, covered: covered{cover: p.cover}, sieve: p.sieve}
	if p.sieve != nil {
		r.sifted.cover = p.sieve.cover
	}
	if p.scan.repeats() {
		r.seen = map[uint64]struct{}{}
	}
	return r
}

// repeats says whether the scan can come by one record twice.
func (s *scan) repeats() bool {
	switch s.kind {
	case scanUnion:
		return true
	case scanMerge:
		return s.parts[0].mergeLen > 0 // it is one of an $or
	case scanIndex:
		return s.index.Multikey != 0 || s.index.path != "" && !s.sets[0].point()
	}
	return false
}

func (r *Run) Attach(src Source, tick func() error) { r.attach(src, tick) }

// Detach lets go of the source. Doc dies, unless it is kept by Unread.
func (r *Run) Detach() { r.detach() }

// Revise tells the run of the indexes as they have become since it was planned. Where arrays have come, entries do not tell all that a document
// has any more, and several may name one.
func (r *Run) Revise(indexes []*Index) {
	parts := r.scan.parts
	if r.kind == scanIndex {
		parts = []scan{*r.scan}
	}
	for i := range parts {
		was := parts[i].index
		now := slices.IndexFunc(indexes, func(x *Index) bool { return x.Tree == was.Tree })
		if now < 0 || indexes[now].Multikey == 0 || was.Multikey != 0 {
			continue
		}
		if r.cover, r.sieve = nil, nil; r.seen == nil {
			r.seen = map[uint64]struct{}{}
		}
	}
}

// Unread makes Next give the same document again, also after a Detach.
func (r *Run) Unread() {
	r.kept = true
	r.doc = append(bson.Raw(nil), r.doc...)
}

// ID is the record's id, Doc the document as the projection leaves it. Doc dies at the next call of Next.
func (r *Run) ID() uint64    { return r.id }
func (r *Run) Doc() bson.Raw { return r.doc }

// Err is what ended the run, or nil at its end.
func (r *Run) Err() error { return r.err }

// LastRecord is the id of the last record that a scan of the records has come by, or 0.
func (r *Run) LastRecord() uint64 { return r.last }

// KeysExamined and DocsExamined are what explain counts.
func (r *Run) KeysExamined() int {
	n := r.keys
	for i := range r.parts {
		n += r.parts[i].keys
	}
	return n
}
func (r *Run) DocsExamined() int { return r.docs }

// Returned is how many documents were given.
func (r *Run) Returned() int64 { return r.returned }

// Next moves to the next document.
func (r *Run) Next() bool {
	if r.kept {
		r.kept = false
		return true
	}
	if r.err != nil || r.Done() {
		return false
	}
	for {
		id, doc, ok, err := r.row()
		if err != nil || !ok {
			r.err = err
			return false
		}
		if r.skipped < r.plan.Skip {
			r.skipped++
			continue
		}
		r.returned++
		r.id, r.doc = id, doc
		if r.plan.Project != nil && !r.plan.ReturnKey && (r.cover == nil || !r.cover.projected || r.fetched) {
			if r.out, r.err = r.plan.Project.Apply(r.out[:0], doc); r.err != nil {
				return false
			}
			r.doc = r.out
		}
		return true
	}
}

// Done says that no document is left because as many as asked for were given. It is false at an end that was not
// looked for yet.
func (r *Run) Done() bool {
	return !r.kept && (r.plan.Limit > 0 && r.returned == r.plan.Limit || r.rows != nil && r.rows.Left() == 0 || r.rows == nil && r.ended)
}

// row gives the next document that matches, in order, before skip and limit.
func (r *Run) row() (uint64, bson.Raw, bool, error) {
	if r.plan.sorted {
		return r.match()
	}
	if r.rows == nil {
		if err := r.sort(); err != nil {
			return 0, nil, false, err
		}
	}
	item, ok, err := r.rows.Next()
	return item.ID, item.Doc, ok, err
}

// match gives the next document of the scan that passes the filter.
func (r *Run) match() (uint64, bson.Raw, bool, error) {
	for {
		id, doc, ok, err := r.access.next()
		if err != nil || !ok {
			return 0, nil, false, err
		}
		if r.seen != nil {
			if _, twice := r.seen[id]; twice {
				continue
			}
		}
		if r.cover != nil {
			if doc, err = r.covered.document(r.place, r.entries.Value()); err != nil {
				return 0, nil, false, fmt.Errorf("index %s, record %d: %w", r.index.Name, id, err)
			}
			r.fetched = doc == nil
		}
		residual := r.plan.residual
		if r.sieve != nil {
			told, err := r.sifted.document(r.place, r.entries.Value())
			if err != nil {
				return 0, nil, false, fmt.Errorf("index %s, record %d: %w", r.index.Name, id, err)
			}
			if told != nil {
				if pass, err := r.sieve.filter.Match(told); err != nil {
					return 0, nil, false, err
				} else if !pass {
					continue
				}
				residual = r.sieve.rest
			}
		}
		if doc == nil && (residual != nil || !r.plan.OnlyIDs || !r.plan.sorted) {
			if doc, err = r.fetch(id); err != nil {
				return 0, nil, false, err
			}
		}
		if residual != nil {
			pass, err := residual.Match(doc)
			if err != nil {
				return 0, nil, false, err
			}
			if !pass {
				continue
			}
		}
		if r.seen != nil {
			r.seen[id] = struct{}{}
		}
		if r.plan.ReturnKey {
			doc, err = r.keyOf(doc)
		}
		return id, doc, true, err
	}
}

// keyOf is what returnKey gives for the document at which the scan stands: nothing, if it came by no index.
func (r *Run) keyOf(doc bson.Raw) (_ bson.Raw, err error) {
	at := &r.access
	switch r.kind {
	case scanID:
		v := value.Lookup(doc, "_id")
		return bson.Raw(bsoncore.NewDocumentBuilder().AppendValue("_id", bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}).Build()), nil
	case scanUnion:
		at = &r.parts[r.part]
	case scanMerge:
		at = &r.parts[r.taken]
	case scanRecords:
		return noFields, nil
	}
	r.key, err = at.index.keyDocument(r.key[:0], at.place, at.entries.Value())
	return r.key, err
}

// sort fills the rows. With a limit, only as many are kept as can be asked for.
func (r *Run) sort() error {
	keep := int64(0)
	if r.plan.Limit > 0 {
		keep = r.plan.Skip + r.plan.Limit
	}
	rows := r.plan.Sort.Sorter(sortkey.SorterOptions{Keep: keep, Memory: int64(r.plan.SortMemory), Disk: r.plan.Disk, Tick: r.tick})
	r.rows = rows
	for {
		id, doc, ok, err := r.match()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := rows.Add(id, doc); err != nil {
			return err
		}
	}
	return rows.Sort()
}

// Close lets go of the sort, which may have gone to the disk. The run gives nothing any more.
func (r *Run) Close() error {
	if r.rows == nil {
		return nil
	}
	return r.rows.Close()
}
