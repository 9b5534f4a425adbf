package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// windowStage is $setWindowFields. It holds all documents, sorted by partition and then as asked for, and gives them in that order.
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
	return after(in, func() (Iterator, error) {
		budget := s.budget
		rows, err := s.read(in, &budget)
		if err != nil {
			return nil, err
		}
		var done []bson.RawValue // the values of the partition at hand, function by function
		first, end, i := 0, 0, 0
		var buf, second []byte
		return over(nil, func() (bson.Raw, error) {
			if i == len(rows) {
				return nil, nil
			}
			if i == end {
				first = i
				for end = i + 1; end < len(rows) && s.opts.compare(rows[end].part, rows[i].part) == 0; {
					end++
				}
				p := &partition{s.opts.Context, rows[first:end], &budget}
				done = done[:0]
				for _, f := range s.funcs {
					values, err := f.compute(p)
					if err != nil {
						return nil, err
					}
					done = append(done, values...)
				}
			}
			buf = append(buf[:0], rows[i].doc...)
			for k, name := range s.names {
				v := done[k*(end-first)+i-first]
				if v.Type == 0 {
					v = value.Null
				}
				second = setPath(second[:0], buf, strings.Split(name, "."), v)
				buf, second = second, buf
			}
			i++
			return buf, checkSize("$setWindowFields", len(buf))
		}), nil
	})
}

// read takes in all documents and sorts them.
func (s *windowStage) read(in Iterator, budget *budget) ([]windowDoc, error) {
	var rows []windowDoc
	c := s.opts.Context
	err := each(in, func(doc bson.Raw) error {
		r := windowDoc{part: value.Null, doc: copyOf(doc)}
		if s.part != nil {
			v, err := s.part.Eval(c, r.doc)
			if err != nil {
				return err
			}
			if v.Type == bson.TypeArray {
				return mongoerr.TypeMismatch.Errorf("an expression used to partition cannot evaluate to value of type array")
			}
			if v.Type != 0 {
				r.part = v
			}
		}
		if s.by != nil {
			r.key = s.by.Key(c, value.Document(r.doc))
		}
		rows = append(rows, r)
		return budget.take(len(doc) + groupSize)
	})
	slices.SortStableFunc(rows, func(a, b windowDoc) int {
		if d := s.opts.compare(a.part, b.part); d != 0 || s.by == nil {
			return d
		}
		return s.by.Compare(c, a.key, b.key)
	})
	return rows, err
}
