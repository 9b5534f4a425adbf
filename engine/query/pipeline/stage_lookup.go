package pipeline

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// lookupStage adds an array of the documents of another collection that belong to a document: those whose foreign field equals the
// local one, those that a pipeline with variables makes, or both at once.
//
// Equality asks the other collection once per document where an index helps. Where none does, the collection is read once into a
// table (as long as it fits the stage's memory) instead of once per document.
//
// A $unwind of the array that comes next is taken in: the foreign documents are then given as they are found, and never stand in one
// document together.
type lookupStage struct {
	*parser
	from    Namespace // of the collection, views resolved
	as      []string
	local   value.Path
	foreign string   // "" without equality
	pipe    *subPipe // nil: the documents as they are
	vars    []computed
	slots   []int
	// constant says that every document gets the same: nothing of it goes into the pipeline, and no chance.
	constant bool
	// unwind is the $unwind behind that the optimiser has taken in; nil: there is none.
	unwind *unwindStage
}

// subPipe is a pipeline on another collection.
type subPipe struct {
	*Pipeline
	ns    Namespace
	p     *parser
	equal []equality // of the filter that it begins with
}

// from reads the operand "from": a name, or {db, coll}.
func (p *parser) from(stage string, v bson.RawValue) (Namespace, error) {
	switch v.Type {
	case bson.TypeString:
		if len(value.StringBytes(v)) == 0 {
			return Namespace{}, mongoerr.InvalidNamespace.Errorf("the collection of %s has no name", stage)
		}
		return Namespace{p.opts.Namespace.DB, string(value.StringBytes(v))}, nil
	case bson.TypeEmbeddedDocument:
		db, coll := value.Lookup(v.Value, "db"), value.Lookup(v.Value, "coll")
		if db.Type == bson.TypeString && coll.Type == bson.TypeString {
			return Namespace{string(value.StringBytes(db)), string(value.StringBytes(coll))}, nil
		}
	}
	return Namespace{}, mongoerr.FailedToParse.Errorf("%s argument 'from' must be a string, is type %s",
		stage, value.TypeName(v.Type))
}

// other reads a pipeline on another collection: that of a view, if it is one, with stages behind it.
func (p *parser) other(ns Namespace, scope expr.Scope, stages []bson.Raw) (*subPipe, error) {
	if ns.Collection != "" {
		if p.opts.World == nil {
			return nil, mongoerr.NotImplemented.Errorf("other collections cannot be read here")
		}
		base, view, err := p.opts.World.View(ns)
		if err != nil {
			return nil, err
		}
		ns, stages = base, append(append([]bson.Raw(nil), view...), stages...)
	}
	inner := p.sub(inLookup, ns, scope)
	q, err := inner.pipeline(stages)
	if err != nil {
		return nil, err
	}
	s := &subPipe{Pipeline: q, ns: ns, p: inner}
	if q.prefix.Filter != nil {
		s.equal = inner.equalities(q.prefix.Filter.Raw())
	}
	return s, nil
}

// start runs the pipeline; extra is one more condition on what the pipeline begins with, nil for none.
func (s *subPipe) start(extra bson.Raw) (Iterator, error) {
	if !s.NeedsSource() {
		return s.RunAll(Documents(nil)), nil
	}
	if s.ns.Collection == "" {
		return nil, mongoerr.FailedToParse.Errorf("a pipeline without a collection must begin with $documents")
	}
	find := s.prefix.Find
	for _, q := range s.equal {
		test, err := q.test(s.opts.Context)
		if err != nil {
			return nil, err
		}
		if test != nil {
			if find.Filter, err = s.p.both(test, find.Filter.Raw()); err != nil {
				return nil, err
			}
		}
	}
	if extra != nil {
		var own bson.Raw
		if find.Filter != nil {
			own = find.Filter.Raw()
		}
		var err error
		if find.Filter, err = s.p.both(extra, own); err != nil {
			return nil, err
		}
	}
	src, err := s.opts.World.Find(s.ns, find)
	if err != nil {
		return nil, err
	}
	return s.Run(src), nil
}

func parseLookup(p *parser, arg bson.RawValue) (stage, error) {
	v, err := fields("$lookup", arg, "from", "as", "localField", "foreignField", "let", "pipeline")
	if err != nil {
		return nil, err
	}
	s := &lookupStage{parser: p}
	as, err := text("$lookup", "as", v[1])
	if err != nil {
		return nil, err
	}
	if s.as, err = fieldPath(as); err != nil {
		return nil, err
	}
	if v[0].Type == 0 && v[5].Type == 0 {
		return nil, mongoerr.FailedToParse.Errorf("must specify 'pipeline' when 'from' is empty")
	}
	if v[0].Type != 0 {
		if s.from, err = p.from("$lookup", v[0]); err != nil {
			return nil, err
		}
	}
	if (v[2].Type == 0) != (v[3].Type == 0) || v[2].Type == 0 && v[5].Type == 0 {
		return nil, mongoerr.FailedToParse.Errorf("$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	}
	if v[2].Type != 0 {
		local, err := text("$lookup", "localField", v[2])
		if err != nil {
			return nil, err
		}
		if s.foreign, err = text("$lookup", "foreignField", v[3]); err != nil {
			return nil, err
		}
		for _, path := range []string{local, s.foreign} {
			if _, err := fieldPath(path); err != nil {
				return nil, err
			}
		}
		s.local = value.ParsePath(local)
	}
	scope := p.scope
	if v[4].Type != 0 {
		if v[4].Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.FailedToParse.Errorf("$lookup argument 'let' must be an object, is type %s",
				value.TypeName(v[4].Type))
		}
		if v[5].Type == 0 {
			return nil, mongoerr.FailedToParse.Errorf("$lookup with 'let' requires 'pipeline'")
		}
		if scope, err = s.bind(v[4]); err != nil {
			return nil, err
		}
	}
	var stages []bson.Raw
	if v[5].Type != 0 {
		if stages, err = Split(v[5]); err != nil {
			return nil, err
		}
	}
	if s.pipe, err = p.other(s.from, scope, stages); err != nil {
		return nil, err
	}
	s.from = s.pipe.ns
	s.constant = s.foreign == "" && s.vars == nil && !bytes.Contains(arg.Value, []byte("$rand\x00")) && !bytes.Contains(arg.Value, []byte("$sample"))
	return s, nil
}

// bind reads let.
func (s *lookupStage) bind(vars bson.RawValue) (expr.Scope, error) {
	scope := s.scope
	for it := value.Elements(vars.Value); it.Next(); {
		name := string(it.Name())
		if name == "" || (name[0] < 'a' || name[0] > 'z') && name[0] < 0x80 {
			return scope, mongoerr.FailedToParse.Errorf("'%s' starts with an invalid character for a user variable name", name)
		}
		e, err := s.expression(it.Value())
		if err != nil {
			return scope, err
		}
		var slot int
		scope, slot = scope.Bind(name)
		s.vars, s.slots = append(s.vars, computed{e, s.opts.Context}), append(s.slots, slot)
	}
	return scope, nil
}

func (s *lookupStage) run(in Iterator) Iterator {
	r := &looker{lookupStage: s, in: in}
	r.tried = s.foreign == "" || s.opts.World == nil || s.opts.World.Indexed(s.from, s.foreign) || len(s.pipe.steps) > 0
	if s.unwind == nil {
		return over(in, r.arrays)
	}
	r.iter = iter{in: in, next: r.unwound}
	return r
}

// looker is one run of the stage.
type looker struct {
	*lookupStage
	iter
	in    Iterator
	table *foreignTable
	tried bool   // to load the table
	same  []byte // the constant array
	list  builder
	buf   []byte
	index []byte

	// Of the document whose foreign documents are given one by one:
	doc   bson.Raw
	found Iterator // nil: none is
	n     int64
}

// arrays gives the next document with the array of those that belong to it.
func (r *looker) arrays() (bson.Raw, error) {
	doc, err := r.in.Next()
	if err != nil || doc == nil {
		return nil, err
	}
	list := &r.list
	list.reset()
	if r.same != nil {
		list.b = append(list.b[:0], r.same...)
	} else {
		found, err := r.find(doc)
		if err != nil {
			return nil, err
		}
		err = each(found, func(doc bson.Raw) error {
			list.add(value.Document(doc))
			return checkSize("$lookup", len(list.b))
		})
		if e := found.Close(); err == nil {
			err = e
		}
		if err != nil {
			return nil, err
		}
		if r.constant {
			r.same = append([]byte(nil), list.b...)
		}
	}
	r.buf = setPath(r.buf[:0], doc, r.as, value.Array(list.raw()))
	return r.buf, checkSize("$lookup", len(r.buf))
}

// unwound gives the documents that a $unwind would make of that array, without the array.
func (r *looker) unwound() (bson.Raw, error) {
	for {
		if r.found == nil {
			var err error
			if r.doc, err = r.in.Next(); err != nil || r.doc == nil {
				return nil, err
			}
			if r.found, err = r.find(r.doc); err != nil {
				return nil, err
			}
			r.n = 0
		}
		foreign, err := r.found.Next()
		if err != nil {
			return nil, err
		}
		if foreign != nil {
			r.n++
			return r.with(value.Document(foreign), value.Int64(r.n-1))
		}
		err = r.found.Close()
		if r.found = nil; err != nil {
			return nil, err
		}
		if r.n == 0 && r.unwind.keep {
			// The documents on the way to the array are there, the array is not.
			r.doc = setPath(nil, r.doc, r.as, value.Array(bson.Raw{5, 0, 0, 0, 0}))
			return r.with(value.Missing, value.Null)
		}
	}
}

// with is the document with one foreign document and its number.
func (r *looker) with(foreign, n bson.RawValue) (bson.Raw, error) {
	r.buf = setPath(r.buf[:0], r.doc, r.as, foreign)
	doc := r.buf
	if r.unwind.index != nil {
		r.index = setPath(r.index[:0], r.buf, r.unwind.index, n)
		doc = r.index
	}
	return doc, checkSize("$lookup", len(doc))
}

func (r *looker) Close() error {
	err := r.iter.Close()
	if r.found != nil {
		if e := r.found.Close(); err == nil {
			err = e
		}
		r.found = nil
	}
	return err
}

// find gives the documents of the other collection that belong to doc.
func (r *looker) find(doc bson.Raw) (Iterator, error) {
	if !r.tried {
		r.tried = true
		var err error
		if r.table, err = r.load(); err != nil {
			return nil, err
		}
	}
	if r.table != nil {
		return Documents(r.table.find(r.localValues(doc))), nil
	}
	if err := setVariables(r.opts.Context, r.slots, r.vars, doc); err != nil {
		return nil, err
	}
	var extra bson.Raw
	if r.foreign != "" {
		values := r.localValues(doc)
		if len(values) == 0 {
			return Documents(nil), nil
		}
		extra = equalsOneOf(r.foreign, values)
	}
	return r.pipe.start(extra)
}

// setVariables evaluates the expressions of let for doc.
func setVariables(c *expr.Context, slots []int, vars []computed, doc bson.Raw) error {
	values := make([]bson.RawValue, len(vars))
	for i, e := range vars {
		var err error
		if values[i], err = e.Eval(doc); err != nil {
			return err
		}
	}
	c.SetAll(slots, values)
	return nil
}

// localValues are the values that the local field has; what is missing counts as null.
func (s *lookupStage) localValues(doc bson.Raw) []bson.RawValue {
	var values []bson.RawValue
	value.Walk(doc, s.local, value.LeafArray, func(v bson.RawValue, _ int) bool {
		switch {
		case v.Type == bson.TypeArray:
			for it := value.Elements(v.Value); it.Next(); {
				values = append(values, it.Value())
			}
		case value.IsNullish(v):
			values = append(values, value.Null)
		default:
			values = append(values, v)
		}
		return false
	})
	return values
}

// equalsOneOf is a filter for a path that equals one of values. Regular expressions are values here, not patterns.
func equalsOneOf(path string, values []bson.RawValue) bson.Raw {
	test := newDocument()
	d := newDocument()
	if len(values) == 1 {
		test.field("$eq", values[0])
		d.field(path, value.Document(test.raw()))
		return d.raw()
	}
	var plain, rest []bson.RawValue
	for _, v := range values {
		if v.Type != bson.TypeRegex {
			plain = append(plain, v)
			continue
		}
		one := newDocument()
		one.field("$eq", v)
		clause := newDocument()
		clause.field(path, value.Document(one.raw()))
		rest = append(rest, value.Document(clause.raw()))
	}
	test.field("$in", arrayOf(plain))
	d.field(path, value.Document(test.raw()))
	if rest == nil {
		return d.raw()
	}
	or := newDocument()
	or.field("$or", arrayOf(append(rest, value.Document(d.raw()))))
	return or.raw()
}

// foreignTable is a collection in memory, by the values of its foreign field.
type foreignTable struct {
	groups *groups
	docs   []bson.Raw
	in     [][]int32 // by group: the documents
}

// load reads the other collection; nil without an error means that it does not fit.
func (s *lookupStage) load() (*foreignTable, error) {
	t := &foreignTable{groups: newGroups(s.opts)}
	it, err := s.opts.World.Find(s.from, Find{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	path := value.ParsePath(s.foreign)
	used := int64(0)
	for {
		doc, err := it.Next()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			return t, nil
		}
		if used += int64(len(doc)) + 2*groupSize; used > s.opts.Memory {
			return nil, nil
		}
		n := int32(len(t.docs))
		t.docs = append(t.docs, copyOf(doc))
		value.Walk(doc, path, value.LeafBoth, func(v bson.RawValue, _ int) bool {
			if value.IsNullish(v) {
				v = value.Null
			}
			g, born := t.groups.find(v)
			if born {
				t.in = append(t.in, nil)
				used += int64(len(v.Value)) + groupSize
			}
			if l := t.in[g]; len(l) == 0 || l[len(l)-1] != n {
				t.in[g] = append(l, n)
			}
			return false
		})
	}
}

// find are the documents that have one of values, each once, in the order of the collection.
func (t *foreignTable) find(values []bson.RawValue) (docs []bson.Raw) {
	if len(values) == 1 {
		if g, ok := t.groups.lookup(values[0]); ok {
			for _, n := range t.in[g] {
				docs = append(docs, t.docs[n])
			}
		}
		return docs
	}
	found := make([]bool, len(t.docs))
	for _, v := range values {
		if g, ok := t.groups.lookup(v); ok {
			for _, n := range t.in[g] {
				found[n] = true
			}
		}
	}
	for n, ok := range found {
		if ok {
			docs = append(docs, t.docs[n])
		}
	}
	return docs
}
