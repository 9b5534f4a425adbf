package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// matchStage lets documents pass.
type matchStage struct {
	filter *match.Filter
	rate   float64 // of $sampleRate, 1 without
	c      *expr.Context
}

func parseMatch(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(15959).Errorf("the match filter must be an expression in an object")
	}
	s := &matchStage{rate: 1, c: p.opts.Context}
	raw := bson.Raw(arg.Value)
	if v := value.Lookup(raw, "$sampleRate"); v.Type != 0 {
		d := newDocument()
		d.field("$sampleRate", v)
		// The operator checks its own operand.
		if _, err := p.expression(value.Document(d.raw())); err != nil {
			return nil, err
		}
		s.rate = value.AsDouble(v)
		rest := newDocument()
		for it := value.Elements(raw); it.Next(); {
			if string(it.Name()) != "$sampleRate" {
				rest.field(string(it.Name()), it.Value())
			}
		}
		raw = rest.raw()
	}
	var err error
	s.filter, err = p.filter(raw)
	return s, err
}

func (s *matchStage) run(in Iterator) Iterator {
	return over(in, func() (bson.Raw, error) {
		for {
			doc, err := in.Next()
			if err != nil || doc == nil {
				return nil, err
			}
			if s.rate < 1 && !s.sampled() {
				continue
			}
			ok, err := s.filter.Match(doc)
			if err != nil {
				return nil, err
			}
			if ok {
				return doc, nil
			}
		}
	})
}

func (s *matchStage) sampled() bool {
	return s.c.Rand != nil && float64(s.c.Rand()>>11)/(1<<53) < s.rate
}
