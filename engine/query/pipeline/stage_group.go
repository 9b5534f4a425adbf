package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// groupStage is $group. The groups come out in the order of their first documents.
type groupStage struct {
	id     *expr.Expr
	names  []string
	accs   []*accumulation
	opts   *Options
	budget budget
}

func parseGroup(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(15947).Errorf("a group's fields must be specified in an object")
	}
	s := &groupStage{opts: p.opts, budget: p.budget("$group")}
	for it := value.Elements(arg.Value); it.Next(); {
		name, v := string(it.Name()), it.Value()
		var err error
		switch {
		case name == "$doingMerge":
			return nil, code(17030).Errorf("$doingMerge is not for users")
		case name == "_id":
			if s.id != nil {
				return nil, code(15948).Errorf("a group's _id may only be specified once")
			}
			if s.id, err = p.expression(v); err != nil {
				return nil, err
			}
			continue
		case strings.IndexByte(name, '.') >= 0:
			return nil, code(40235).Errorf("the field name '%s' cannot contain '.'", name)
		case strings.HasPrefix(name, "$"):
			return nil, code(40236).Errorf("the field name '%s' cannot be an operator name", name)
		}
		a, err := p.accumulation(name, v)
		if err != nil {
			return nil, err
		}
		s.names, s.accs = append(s.names, name), append(s.accs, a)
	}
	if s.id == nil {
		return nil, code(15955).Errorf("a group specification must include an _id")
	}
	return s, nil
}

func (s *groupStage) run(in Iterator) Iterator {
	return after(in, func() (Iterator, error) {
		t := newTable(s.opts, s.accs, s.budget)
		err := each(in, func(doc bson.Raw) error {
			id, err := s.id.Eval(s.opts.Context, doc)
			if err != nil {
				return err
			}
			if id.Type == 0 || id.Type == bson.TypeUndefined {
				id = value.Null
			}
			return t.add(id, doc)
		})
		if err != nil {
			return nil, err
		}
		return t.iterator(s.names), nil
	})
}

// table is groups with their accumulators: those of group g are states[g*len(accs):].
type table struct {
	groups *groups
	accs   []*accumulation
	states []accumulator
	args   []bson.RawValue
	budget budget
	opts   *Options
}

func newTable(o *Options, accs []*accumulation, b budget) *table {
	return &table{groups: newGroups(o), accs: accs, budget: b, opts: o}
}

// groupSize is about what a group takes beside its key and its accumulators' own bytes.
const groupSize = 120

// add lets the group with the key id count one more document.
func (t *table) add(id bson.RawValue, doc bson.Raw) error {
	g, born := t.groups.find(id)
	if born {
		for _, a := range t.accs {
			t.states = append(t.states, a.make())
		}
		if err := t.budget.take(len(id.Value) + groupSize*(1+len(t.accs))); err != nil {
			return err
		}
	}
	for i, a := range t.accs {
		if err := a.feed(t.opts.Context, t.states[g*len(t.accs)+i], doc, &t.args, &t.budget); err != nil {
			return err
		}
	}
	return nil
}

// iterator gives a document for each group.
func (t *table) iterator(names []string) Iterator {
	g := -1
	b := newDocument()
	return over(nil, func() (bson.Raw, error) {
		if g++; g == len(t.groups.keys) {
			return nil, nil
		}
		b.reset()
		b.field("_id", t.groups.keys[g])
		if err := t.results(b, g, names); err != nil {
			return nil, err
		}
		doc := b.raw()
		return doc, checkSize("$group", len(doc))
	})
}

// results adds the accumulators' results to a document.
func (t *table) results(b *builder, g int, names []string) error {
	for i, name := range names {
		v, err := t.states[g*len(t.accs)+i].result(t.opts.Context)
		if err != nil {
			return err
		}
		if v.Type == 0 {
			v = value.Null
		}
		b.field(name, v)
	}
	return nil
}
