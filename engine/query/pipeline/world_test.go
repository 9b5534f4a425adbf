package pipeline_test

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/value"
)

// world is collections in memory. A document dies when the next one is asked for: its bytes are overwritten.
type world struct {
	collections map[string][]bson.Raw
	views       map[string]view
	indexed     bool
	finds       int
	filter      bson.Raw // of the last find
	closed      int
}

type view struct {
	on     string
	stages []bson.Raw
}

func (w *world) View(ns pipeline.Namespace) (pipeline.Namespace, []bson.Raw, error) {
	if v, ok := w.views[ns.Collection]; ok {
		return pipeline.Namespace{DB: ns.DB, Collection: v.on}, v.stages, nil
	}
	return ns, nil, nil
}

func (w *world) Indexed(pipeline.Namespace, string) bool { return w.indexed }

func (w *world) Find(ns pipeline.Namespace, f pipeline.Find) (pipeline.Iterator, error) {
	w.finds++
	w.filter = nil
	if f.Filter != nil {
		w.filter = f.Filter.Raw()
	}
	var docs []bson.Raw
	for _, d := range w.collections[ns.Collection] {
		if f.Filter != nil {
			ok, err := f.Filter.Match(d)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		docs = append(docs, d)
	}
	if f.Sort != nil {
		s := f.Sort.Sorter(sortkey.SorterOptions{})
		for i, d := range docs {
			if err := s.Add(uint64(i), d); err != nil {
				return nil, err
			}
		}
		if err := s.Sort(); err != nil {
			return nil, err
		}
		docs = docs[:0:0]
		for {
			item, ok, err := s.Next()
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			docs = append(docs, slices.Clone(item.Doc))
		}
	}
	docs = docs[min(int(f.Skip), len(docs)):]
	if f.Limit > 0 {
		docs = docs[:min(int(f.Limit), len(docs))]
	}
	return &mortal{w: w, docs: docs}, nil
}

type mortal struct {
	w    *world
	docs []bson.Raw
	buf  bson.Raw
}

func (m *mortal) Next() (bson.Raw, error) {
	for i := range m.buf {
		m.buf[i] = 0xff
	}
	if len(m.docs) == 0 {
		return nil, nil
	}
	m.buf = slices.Clone(m.docs[0])
	m.docs = m.docs[1:]
	return m.buf, nil
}

func (m *mortal) Close() error {
	m.w.closed++
	return nil
}

func (w *world) Out(ns pipeline.Namespace, docs pipeline.Iterator) error {
	list, err := drain(docs)
	if err == nil {
		w.collections[ns.Collection] = list
	}
	return err
}

func (w *world) CheckMerge(_ pipeline.Namespace, on []string) error {
	if slices.Contains(on, "noindex") {
		return mongoerr.Code(51183).Errorf("cannot find index to verify that join fields will be unique")
	}
	return nil
}

func (w *world) Merge(ns pipeline.Namespace, on []string, doc bson.Raw, f func(bson.Raw) (bson.Raw, error)) error {
	docs := w.collections[ns.Collection]
	at := slices.IndexFunc(docs, func(d bson.Raw) bool {
		for _, name := range on {
			if !value.Equal(value.Get(d, value.ParsePath(name)), value.Get(doc, value.ParsePath(name))) {
				return false
			}
		}
		return true
	})
	var old bson.Raw
	if at >= 0 {
		old = docs[at]
	}
	made, err := f(old)
	switch {
	case err != nil || made == nil:
		return err
	case at >= 0:
		docs[at] = slices.Clone(made)
	default:
		w.collections[ns.Collection] = append(docs, slices.Clone(made))
	}
	return nil
}

func (w *world) Statistics(stage string, ns pipeline.Namespace, arg bson.RawValue) (pipeline.Iterator, error) {
	return pipeline.Documents([]bson.Raw{value.MustParseDocument(fmt.Sprintf("{stage: %q, ns: %q}", strings.TrimPrefix(stage, "$"), ns.String()))}), nil
}

// drain takes all documents out of an iterator.
func drain(it pipeline.Iterator) ([]bson.Raw, error) {
	var list []bson.Raw
	for {
		doc, err := it.Next()
		if err != nil || doc == nil {
			return list, err
		}
		list = append(list, slices.Clone(doc))
	}
}

// options are those of the tests: random numbers repeat.
func (w *world) options() pipeline.Options {
	state := uint64(88172645463325252)
	c := &expr.Context{Now: 1700000000123, Rand: func() uint64 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return state
	}}
	return pipeline.Options{Namespace: pipeline.Namespace{DB: "db", Collection: "c"}, Context: c, World: w, Sink: w, Statistics: w}
}

// run runs a pipeline on the collection c, as it is written or with the prefix in a find.
func (w *world) run(stages []bson.Raw, o pipeline.Options) ([]bson.Raw, error) {
	p, err := pipeline.Parse(stages, o)
	if err != nil {
		return nil, fmt.Errorf("parse %w", err)
	}
	src, err := w.Find(o.Namespace, p.Prefix().Find)
	if err != nil {
		return nil, err
	}
	it := p.Run(src)
	docs, err := drain(it)
	if e := it.Close(); err == nil {
		err = e
	}
	return docs, err
}
