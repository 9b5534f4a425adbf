package pipeline

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
)

// windowStage is $setWindowFields. It sorts all documents by partition and then as asked for, and gives them in that order.
type windowStage struct {
	part   *expr.Expr // nil: all are one partition
	by     *expr.By   // nil: in the order they came
	names  []string
	funcs  []windowFunction
	opts   *Options
	budget budget
}

func parseSetWindowFields(p *parser, arg bson.RawValue) (stage, error) {
	v, err := fields("$setWindowFields", arg, "partitionBy", "sortBy", "output")
	if err != nil {
		return nil, err
	}
	s := &windowStage{opts: p.opts, budget: p.budget("$setWindowFields")}
	if v[0].Type != 0 {
		if s.part, err = p.expression(v[0]); err != nil {
			return nil, err
		}
	}
	if v[1].Type != 0 {
		if v[1].Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.TypeMismatch.Errorf("BSON field '$setWindowFields.sortBy' is the wrong type '%s', expected type 'object'",
				value.TypeName(v[1].Type))
		}
		if value.Count(v[1].Value) > 0 {
			by, err := expr.ParseBy("$setWindowFields", v[1])
			if err != nil {
				return nil, err
			}
			s.by = &by
		}
	}
	if v[2].Type != bson.TypeEmbeddedDocument {
		return nil, missing("$setWindowFields", "output")
	}
	for it := value.Elements(v[2].Value); it.Next(); {
		name := string(it.Name())
		if _, err := fieldPath(name); err != nil {
			return nil, err
		}
		for _, other := range s.names {
			if overlap(other, name) {
				return nil, code(6307900).Errorf("specification contains two conflicting paths. Cannot specify both '%s' and '%s'",
					name, other)
			}
		}
		f, err := p.windowFunction(name, it.Value(), s.by)
		if err != nil {
			return nil, err
		}
		s.names, s.funcs = append(s.names, name), append(s.funcs, f)
	}
	return s, nil
}

func (s *windowStage) run(in Iterator) Iterator {
	var buf []byte
	c := s.opts.Context
	return sortedBy(in, s.opts, 0, func(doc bson.Raw, add func(key, doc []byte) error) error {
		part := value.Null
		if s.part != nil {
			v, err := s.part.Eval(c, doc)
			if err != nil {
				return err
			}
			if v.Type == bson.TypeArray {
				return mongoerr.TypeMismatch.Errorf("an expression used to partition cannot evaluate to value of type array")
			}
			if v.Type != 0 {
				part = v
			}
		}
		buf = key.AppendBy(s.opts.Collation, buf[:0], part)
		if s.by != nil {
			for i, v := range s.by.Key(c, value.Document(doc)) {
				from := len(buf)
				if buf = key.AppendBy(s.opts.Collation, buf, v); s.by.Falls(i) {
					for j := from; j < len(buf); j++ {
						buf[j] = ^buf[j]
					}
				}
			}
		}
		return add(buf, doc)
	}, func(items *sortkey.Sorter) Iterator {
		w := &windower{windowStage: s, items: items}
		w.iter.next = w.give
		return w
	})
}

// windower goes through the sorted documents partition by partition. It holds the one at hand.
type windower struct {
	*windowStage
	iter
	items       *sortkey.Sorter
	item        sortkey.Item // the next partition's first document if have
	have, begun bool

	p           *partition
	i           int             // the document of the partition that is next
	done        []bson.RawValue // the values of the partition, function by function
	buf, second []byte
}

func (w *windower) give() (bson.Raw, error) {
	if w.p == nil || w.i == len(w.p.rows) {
		if ok, err := w.read(); err != nil || !ok {
			return nil, err
		}
	}
	doc, err := w.p.doc(w.i)
	if err != nil {
		return nil, err
	}
	w.buf = append(w.buf[:0], doc...)
	for k, name := range w.names {
		v := w.done[k*len(w.p.rows)+w.i]
		if v.Type == 0 {
			v = value.Null
		}
		w.second = setPath(w.second[:0], w.buf, strings.Split(name, "."), v)
		w.buf, w.second = w.second, w.buf
	}
	w.i++
	return w.buf, checkSize("$setWindowFields", len(w.buf))
}

// read reads a partition and computes its values; false is the end.
func (w *windower) read() (ok bool, err error) {
	if err := w.drop(); err != nil {
		return false, err
	}
	if !w.begun {
		w.begun = true
		if w.item, w.have, err = w.items.Next(); err != nil {
			return false, err
		}
	}
	if !w.have {
		return false, nil
	}
	budget := w.budget
	w.p, w.i, w.done = &partition{c: w.opts.Context, budget: &budget}, 0, w.done[:0]
	if w.items.Spilled() > 0 {
		w.p.spilled = spill.NewBuffer(spill.BufferOptions{Who: budget.who, Memory: w.opts.Memory / 2, Disk: w.opts.Disk})
	}
	part := append([]byte(nil), w.item.Key[:key.FieldLen(w.item.Key, false)]...)
	for w.have && bytes.HasPrefix(w.item.Key, part) {
		if err := w.take(w.item.Doc); err != nil {
			return false, err
		}
		if w.item, w.have, err = w.items.Next(); err != nil {
			return false, err
		}
	}
	if w.p.spilled != nil {
		if w.p.reader, err = w.p.spilled.Reader(); err != nil {
			return false, err
		}
	}
	for _, f := range w.funcs {
		values, err := f.compute(w.p)
		if err != nil {
			return false, err
		}
		w.done = append(w.done, values...)
	}
	return true, nil
}

// take adds a document to the partition.
func (w *windower) take(doc bson.Raw) error {
	r := windowDoc{doc: doc} // as long as nothing has left the memory, it lives as long as the sorter
	size := 0
	if w.by != nil {
		r.key = w.by.Key(w.opts.Context, value.Document(doc))
	}
	if w.p.spilled != nil {
		for i := range r.key {
			r.key[i] = clone(r.key[i])
			size += len(r.key[i].Value)
		}
		r.doc = nil
		if err := w.p.spilled.Append(doc); err != nil {
			return err
		}
	}
	w.p.rows = append(w.p.rows, r)
	return w.p.budget.take(size + windowDocSize*(1+len(r.key)))
}

// windowDocSize is about what a document of a partition takes beside its bytes, and each of its keys.
const windowDocSize = 64

// drop lets go of the partition.
func (w *windower) drop() error {
	p := w.p
	if w.p = nil; p == nil || p.spilled == nil {
		return nil
	}
	return p.spilled.Close()
}

func (w *windower) Close() error { return w.drop() }
