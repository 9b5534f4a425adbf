package pipeline

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
)

// grouping is what $group and $bucket make of documents: one for each value of id, with what the accumulators come to.
type grouping struct {
	who   string
	id    *expr.Expr
	key   func(id bson.RawValue) (bson.RawValue, error) // makes the key of the id; nil: that is it
	names []string
	accs  []*accumulation
	opts  *Options
}

// table is groups with their accumulators: those of group g are states[g*len(accs):].
//
// When the groups outgrow the memory, they leave it by partitions: a group belongs to the one that some bits of its key's hash say.
// What the groups of a partition have come to is written to its log, and whatever comes for it later, too: keys with the values
// that the accumulators are to be given. Groups that stay in memory are therefore whole, and at the end each log is read into a
// table of its own, which takes the next bits of the hash if it is too large again. Nothing is merged, so a result is, to the last
// digit, what it would have been in memory. Records of a log:
//
//	0  key  accumulator's value ...            a document
//	1  key  length and state of an accumulator ...   a group, before all documents of its key
type table struct {
	*grouping
	groups *groups
	states []accumulator
	sizes  []int64 // by group: the bytes that it holds
	used   int64
	level  uint // how many times what is here was on the disk
	gone   int  // partitions below this number have left
	logs   [partitions]*spill.Log
	eval   *evaluator
	buf    []byte
}

const (
	// groupSize is about what a group takes beside its key and its accumulators' own bytes.
	groupSize = 120

	partitionBits = 5
	partitions    = 1 << partitionBits
	// levelMax is where the bits of the hash end. Nobody comes so far but with keys that a collation does not tell apart by hash.
	levelMax = 64/partitionBits - 1

	recordDocument = 0
	recordGroup    = 1
)

func (g *grouping) table(groups *groups) *table {
	exprs := []*expr.Expr{g.id}
	for _, a := range g.accs {
		exprs = append(exprs, a.exprs...)
	}
	return &table{grouping: g, groups: groups, eval: newEvaluator(g.opts.Context, exprs)}
}

// run reads all of in and gives a document for each group, in the order of their first documents as long as they fit the memory.
func (g *grouping) run(in Iterator) Iterator {
	return after(in, func() (Iterator, error) {
		t := g.table(newGroups(g.opts))
		err := each(in, func(doc bson.Raw) error {
			values, err := t.eval.eval(doc)
			if err != nil {
				return err
			}
			id := values[0]
			if id.Type == 0 || id.Type == bson.TypeUndefined {
				id = value.Null
			}
			if g.key != nil {
				if id, err = g.key(id); err != nil {
					return err
				}
			}
			return t.add(id, values[1:])
		})
		r := &groupIterator{t: t, g: -1, doc: newDocument()}
		if err != nil {
			r.Close()
			return nil, err
		}
		return r, nil
	})
}

// add lets the group with the key id count one more document, of which args are the accumulators' values.
func (t *table) add(id bson.RawValue, args []bson.RawValue) error {
	h := t.groups.hash(id)
	if p := t.partition(h); p < t.gone {
		t.buf = appendValues(appendValue(append(t.buf[:0], recordDocument), id), args)
		return t.write(p)
	}
	g, born, err := t.group(h, id)
	if err != nil {
		return err
	}
	grew := 0
	for i, a := range t.accs {
		n, err := t.states[g*len(t.accs)+i].add(t.opts.Context, args[:len(a.exprs)])
		if err != nil {
			return err
		}
		grew, args = grew+n, args[len(a.exprs):]
	}
	if grew == 0 && !born {
		return nil
	}
	return t.hold(g, grew)
}

// group finds a group, and makes it if need be.
func (t *table) group(h uint64, id bson.RawValue) (g int, born bool, err error) {
	if g, born = t.groups.findHashed(h, id); !born {
		return g, false, nil
	}
	for _, a := range t.accs {
		s, err := a.start(t.opts.Context, id)
		if err != nil {
			return g, true, err
		}
		t.states = append(t.states, s)
	}
	n := int64(len(id.Value) + groupSize*(1+len(t.accs)))
	t.sizes, t.used = append(t.sizes, n), t.used+n
	return g, true, nil
}

// hold notes that group g has grown, and sees to the memory. It is called when a group is whole, since it may leave.
func (t *table) hold(g, n int) error {
	t.sizes[g] += int64(n)
	if t.used += int64(n); t.used <= t.opts.Memory {
		return nil
	}
	switch {
	case t.opts.Disk == nil:
		return mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed.Errorf(
			"Exceeded memory limit for %s, but didn't allow external sort. Pass allowDiskUse:true to opt in.", t.who)
	case t.level > levelMax || t.sizes[g] > t.opts.Memory:
		return mongoerr.ExceededMemoryLimit.Errorf("%s used too much memory for one group and cannot spill it to disk. Memory limit: %d bytes",
			t.who, t.opts.Memory)
	}
	return t.leave()
}

func (t *table) partition(h uint64) int {
	return int(h >> (64 - partitionBits*(t.level+1)) & (partitions - 1))
}

// leave writes half of the partitions that are here to the disk, and again until half of the memory is free.
func (t *table) leave() error {
	old, states, sizes := t.groups, t.states, t.sizes
	for t.used > t.opts.Memory/2 && t.gone < partitions {
		t.gone += (partitions - t.gone + 1) / 2
		t.used = 0
		for g, size := range sizes {
			if t.partition(old.hash(old.keys[g])) >= t.gone {
				t.used += size
			}
		}
	}
	t.groups, t.states, t.sizes = old.fresh(), nil, nil
	n := len(t.accs)
	for g, id := range old.keys {
		h := old.hash(id)
		mine := states[g*n : g*n+n]
		if p := t.partition(h); p < t.gone {
			if err := t.save(p, id, mine); err != nil {
				return err
			}
			continue
		}
		t.groups.findHashed(h, id)
		t.states, t.sizes = append(t.states, mine...), append(t.sizes, sizes[g])
	}
	return nil
}

// save writes a group.
func (t *table) save(p int, id bson.RawValue, states []accumulator) error {
	t.buf = appendValue(append(t.buf[:0], recordGroup), id)
	for _, a := range states {
		at := len(t.buf)
		t.buf = a.save(append(t.buf, 0, 0, 0, 0))
		binary.LittleEndian.PutUint32(t.buf[at:], uint32(len(t.buf)-at-4))
	}
	return t.write(p)
}

func (t *table) write(p int) (err error) {
	if t.logs[p] == nil {
		if t.logs[p], err = spill.Create(t.opts.Disk); err != nil {
			return err
		}
	}
	_, err = t.logs[p].Append(t.buf)
	return err
}

// load reads what a partition of another table has written.
func (t *table) load(l *spill.Log) error {
	r, err := l.Reader()
	if err != nil {
		return err
	}
	var args []bson.RawValue
	for n := 1; ; n++ {
		if c := t.opts.Context; n%tickEvery == 0 && c.Tick != nil {
			if err := c.Tick(); err != nil {
				return err
			}
		}
		b, err := r.Next()
		if err != nil || b == nil {
			return err
		}
		id, rest := cutValue(b[1:])
		if b[0] == recordGroup {
			if err = t.restore(id, rest); err != nil {
				return err
			}
			continue
		}
		args = args[:0]
		for len(rest) > 0 {
			var v bson.RawValue
			v, rest = cutValue(rest)
			args = append(args, v)
		}
		if err := t.add(id, args); err != nil {
			return err
		}
	}
}

// restore reads a group.
func (t *table) restore(id bson.RawValue, b []byte) error {
	h := t.groups.hash(id)
	if p := t.partition(h); p < t.gone {
		t.buf = append(appendValue(append(t.buf[:0], recordGroup), id), b...)
		return t.write(p)
	}
	g, _, err := t.group(h, id)
	if err != nil {
		return err
	}
	grew := len(b)
	b = append([]byte(nil), b...) // the accumulators keep it
	for i := range t.accs {
		n := binary.LittleEndian.Uint32(b)
		t.states[g*len(t.accs)+i].load(b[4 : 4+n : 4+n])
		b = b[4+n:]
	}
	return t.hold(g, grew)
}

// close lets go of the logs.
func (t *table) close() error {
	var first error
	for p, l := range t.logs {
		if l == nil {
			continue
		}
		if err := l.Close(); first == nil {
			first = err
		}
		t.logs[p] = nil
	}
	return first
}

// groupIterator gives a document for each group of a table: those in memory, then those of each partition.
type groupIterator struct {
	t     *table
	g     int
	doc   *builder
	p     int // the partition that is next
	inner *groupIterator
}

func (r *groupIterator) Next() (bson.Raw, error) {
	if r.g++; r.g < len(r.t.groups.keys) {
		return r.result()
	}
	r.t.groups, r.t.states, r.t.sizes = r.t.groups.fresh(), nil, nil
	for {
		if r.inner != nil {
			if doc, err := r.inner.Next(); doc != nil || err != nil {
				return doc, err
			}
			if err := r.inner.Close(); err != nil {
				return nil, err
			}
			r.inner = nil
		}
		for ; r.p < partitions && r.t.logs[r.p] == nil; r.p++ {
		}
		if r.p == partitions {
			return nil, nil
		}
		t := r.t.grouping.table(r.t.groups.fresh())
		t.level = r.t.level + 1
		r.inner = &groupIterator{t: t, g: -1, doc: r.doc}
		if err := t.load(r.t.logs[r.p]); err != nil {
			return nil, err
		}
		err := r.t.logs[r.p].Close()
		if r.t.logs[r.p] = nil; err != nil {
			return nil, err
		}
	}
}

func (r *groupIterator) result() (bson.Raw, error) {
	b := r.doc
	b.reset()
	b.field("_id", r.t.groups.keys[r.g])
	n := len(r.t.accs)
	for i, name := range r.t.names {
		v, err := r.t.states[r.g*n+i].result(r.t.opts.Context)
		if err != nil {
			return nil, err
		}
		if v.Type == 0 {
			v = value.Null
		}
		b.field(name, v)
	}
	doc := b.raw()
	return doc, checkSize(r.t.who, len(doc))
}

func (r *groupIterator) Close() error {
	err := r.t.close()
	if r.inner != nil {
		if e := r.inner.Close(); err == nil {
			err = e
		}
		r.inner = nil
	}
	return err
}
