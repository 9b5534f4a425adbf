// Package pipeline runs aggregation pipelines: a chain of stages through which documents are pulled, one by one, from a source.
//
// Parse reads the stages, checks where they stand, and rearranges them where that gives the same documents with less work. What
// the front of the result asks for in the manner of a find (a filter, an order, skip and limit) is split off as Prefix, so that the
// caller can plan it over indexes; Run runs the rest over the documents that come out of that plan.
//
//	p, err := pipeline.Parse(stages, options)
//	source := find(p.Prefix())
//	it := p.Run(source)
//	for doc, err := it.Next(); doc != nil; doc, err = it.Next() { ... }
//	it.Close()
//
// A stage is a row of the table in stages.go and a file stage_<name>.go; what $group and $setWindowFields compute are the tables in
// accumulators.go and windows.go. The package knows documents only: other collections of the same moment, where $out and $merge
// write to, and the statistics come through the interfaces in world.go.
//
// # Rules of iterators
//
// A document that Next gives dies at the following Next, unless the caller copies it. nil without an error is the end. A stage
// closes the iterator it reads when it is closed itself. Stages that hold documents ($group, $sort, ...) hold at most
// Options.Memory bytes each; what is more goes to Options.Disk, and without one is error 292. What a stage must hold at once ($graphLookup's
// result, one group, the values of a window's partition) is bound to memory either way: error 146.
//
// A Pipeline belongs to one goroutine and one run at a time: the variables of let lie in the Context that all its expressions share.
package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
)

// code is a code of MongoDB's that has no name of its own.
type code = mongoerr.Code

const (
	// MemoryMax is how many bytes a stage may hold unless Options say otherwise, MongoDB's default.
	MemoryMax = 100 << 20
	// stagesMax is how many stages a pipeline may have, MongoDB's limit.
	stagesMax = 1000
	// depthMax is how deep pipelines may lie in pipelines, MongoDB's limit.
	depthMax = 20
	// tickEvery is how many documents lie between two calls of Context.Tick.
	tickEvery = 64
)

// Iterator gives documents, one at a time.
type Iterator interface {
	// Next is the next document, which dies at the call after; nil without an error is the end.
	Next() (bson.Raw, error)
	// Close ends the iteration. It may come before the end, and is called once.
	Close() error
}

// Collation orders strings otherwise than by their bytes.
type Collation = match.Collation

// Options are what a pipeline means beside what it says.
type Options struct {
	// Namespace is the collection that the pipeline is run on; Collection is empty for a pipeline on a database.
	Namespace Namespace
	// Context is what expressions are evaluated with; Scope knows the variables that are set in it.
	Context *expr.Context
	Scope   expr.Scope
	// Collation orders strings; nil is by bytes. Context.Order must agree with it; Parse sets it if it is nil.
	Collation Collation
	// World are the other collections, Sink is what $out and $merge write to, Statistics serve $collStats and its kin. Stages that
	// need one that is nil are refused.
	World      World
	Sink       Sink
	Statistics Statistics
	// Memory is how many bytes a stage may hold; 0 is MemoryMax. Disk takes what does not fit; nil: that is error 292.
	Memory int64
	Disk   spill.Disk
	// Strict refuses the stages that are not in the stable API.
	Strict bool
	// Plain leaves the stages as they are written; it is for tests of the optimiser.
	Plain bool
}

// Pipeline is a parsed pipeline.
type Pipeline struct {
	opts   *Options
	steps  []step // as they are run, the prefix included
	prefix Prefix
	front  int // how many steps the prefix stands for
}

// step is a stage in its place.
type step struct {
	name string
	arg  bson.RawValue
	stage
}

// stage is one stage, parsed.
type stage interface {
	// run puts the stage behind in.
	run(in Iterator) Iterator
}

// Parse reads a pipeline.
func Parse(stages []bson.Raw, opts Options) (*Pipeline, error) {
	if opts.Context == nil {
		opts.Context = &expr.Context{}
	}
	if opts.Collation != nil && opts.Context.Order == nil {
		c := opts.Collation
		opts.Context.Order = func(a, b bson.RawValue) int { return match.Compare(c, a, b) }
	}
	if opts.Memory == 0 {
		opts.Memory = MemoryMax
	}
	p := &parser{opts: &opts, table: stageTable, accumulators: accumulators, windows: windows, scope: opts.Scope, ns: opts.Namespace, place: onTop}
	return p.pipeline(stages)
}

// Split takes the stages out of a command's array.
func Split(v bson.RawValue) ([]bson.Raw, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.TypeMismatch.Errorf("'pipeline' option must be specified as an array, not %s", value.TypeName(v.Type))
	}
	var stages []bson.Raw
	for it := value.Elements(v.Value); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.TypeMismatch.Errorf("each element of the 'pipeline' array must be an object")
		}
		stages = append(stages, bson.Raw(it.Value().Value))
	}
	return stages, nil
}

// Run runs what comes behind the prefix over src, which it closes.
func (p *Pipeline) Run(src Iterator) Iterator { return p.run(src, p.steps[p.front:], nil) }

// RunCounted is Run for explain: returned[i] becomes how many documents number i of Stages has given.
func (p *Pipeline) RunCounted(src Iterator, returned []int64) Iterator {
	return p.run(src, p.steps[p.front:], returned)
}

// RunAll runs the whole pipeline over all documents of the collection.
func (p *Pipeline) RunAll(src Iterator) Iterator { return p.run(src, p.steps, nil) }

func (p *Pipeline) run(src Iterator, steps []step, returned []int64) Iterator {
	it := ticking(p.opts.Context, src)
	for i, s := range steps {
		it = s.run(it)
		switch it.(type) {
		case *delayed, *sorted: // what they give may be as much as what they have read
			it = ticking(p.opts.Context, it)
		}
		if returned != nil {
			counted := it
			it = over(counted, func() (bson.Raw, error) {
				doc, err := counted.Next()
				if doc != nil {
					returned[i]++
				}
				return doc, err
			})
		}
	}
	return it
}

// ticking asks now and then whether to go on.
func ticking(c *expr.Context, in Iterator) Iterator {
	if c.Tick == nil {
		return in
	}
	n := 0
	return over(in, func() (bson.Raw, error) {
		if n++; n%tickEvery == 0 {
			if err := c.Tick(); err != nil {
				return nil, err
			}
		}
		return in.Next()
	})
}

// NeedsSource says whether the pipeline reads the collection it is run on; $documents and $currentOp do not.
func (p *Pipeline) NeedsSource() bool {
	if len(p.steps) == 0 {
		return true
	}
	_, makes := p.steps[0].stage.(interface{ makes() })
	return !makes
}

// Writes says whether the pipeline ends in $out or $merge, and to where. It gives no documents then; the first Next does all the work.
func (p *Pipeline) Writes() (Namespace, bool) {
	if len(p.steps) == 0 {
		return Namespace{}, false
	}
	if w, ok := p.steps[len(p.steps)-1].stage.(interface{ target() Namespace }); ok {
		return w.target(), true
	}
	return Namespace{}, false
}

// Stages are the stages behind the prefix as they are run, for explain.
func (p *Pipeline) Stages() []bson.Raw {
	var stages []bson.Raw
	for _, s := range p.steps[p.front:] {
		d := newDocument()
		d.field(s.name, s.arg)
		stages = append(stages, d.raw())
	}
	return stages
}

// iter is an iterator made of a function.
type iter struct {
	next func() (bson.Raw, error)
	in   Iterator
	done bool
}

// over is an iterator whose documents next makes, by and by, of those of in.
func over(in Iterator, next func() (bson.Raw, error)) Iterator { return &iter{next: next, in: in} }

func (i *iter) Next() (bson.Raw, error) {
	if i.done {
		return nil, nil
	}
	doc, err := i.next()
	i.done = doc == nil || err != nil
	return doc, err
}

func (i *iter) Close() error {
	i.done = true
	if i.in == nil {
		return nil
	}
	return i.in.Close()
}

// Documents is an iterator over documents that are at hand.
func Documents(docs []bson.Raw) Iterator {
	i := 0
	return over(nil, func() (bson.Raw, error) {
		if i == len(docs) {
			return nil, nil
		}
		i++
		return docs[i-1], nil
	})
}

// after is an iterator over the documents that make comes to when it is asked for the first one: for stages that must have read
// all before they give any.
func after(in Iterator, make func() (Iterator, error)) Iterator {
	d := &delayed{}
	d.iter = iter{in: in, next: func() (bson.Raw, error) {
		if d.made == nil {
			var err error
			if d.made, err = make(); err != nil {
				return nil, err
			}
		}
		return d.made.Next()
	}}
	return d
}

// delayed is what after makes.
type delayed struct {
	iter
	made Iterator
}

func (d *delayed) Close() error {
	err := d.iter.Close()
	if d.made != nil {
		if e := d.made.Close(); err == nil {
			err = e
		}
	}
	return err
}

// each calls f with each document of in.
func each(in Iterator, f func(doc bson.Raw) error) error {
	for {
		doc, err := in.Next()
		if err != nil || doc == nil {
			return err
		}
		if err := f(doc); err != nil {
			return err
		}
	}
}

// budget bounds what a stage holds and cannot spill.
type budget struct {
	who         string
	limit, used int64
	code        code
}

func (p *parser) budget(who string) budget {
	b := budget{who: who, limit: p.opts.Memory, code: mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed}
	if p.opts.Disk != nil {
		b.code = mongoerr.ExceededMemoryLimit
	}
	return b
}

// take accounts for n more bytes.
func (b *budget) take(n int) error {
	if b.used += int64(n); b.used > b.limit {
		return b.code.Errorf("%s used too much memory and cannot spill to disk. Memory limit: %d bytes", b.who, b.limit)
	}
	return nil
}

// copyOf is a copy of a document.
func copyOf(doc bson.Raw) bson.Raw { return append(make(bson.Raw, 0, len(doc)), doc...) }

// clone is a copy of a value.
func clone(v bson.RawValue) bson.RawValue {
	v.Value = append(make([]byte, 0, len(v.Value)), v.Value...)
	return v
}
