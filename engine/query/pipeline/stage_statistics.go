package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// statisticsStage gives documents about the server instead of those of a collection.
type statisticsStage struct {
	name string
	ns   Namespace
	arg  bson.RawValue
	from Statistics
}

func parseStatistics(name string) func(*parser, bson.RawValue) (stage, error) {
	return func(p *parser, arg bson.RawValue) (stage, error) {
		if arg.Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.FailedToParse.Errorf("%s must take an object, but found: %s", name, value.TypeName(arg.Type))
		}
		if p.opts.Statistics == nil {
			return nil, mongoerr.NotImplemented.Errorf("the stage %s is not implemented here", name)
		}
		return &statisticsStage{name, p.ns, arg, p.opts.Statistics}, nil
	}
}

func (s *statisticsStage) makes() {}

func (s *statisticsStage) run(in Iterator) Iterator {
	return after(in, func() (Iterator, error) { return s.from.Statistics(s.name, s.ns, s.arg) })
}

// documentsStage is $documents: documents that stand in the pipeline itself.
type documentsStage struct{ docs computed }

func parseDocuments(p *parser, arg bson.RawValue) (stage, error) {
	if p.place == onTop && p.ns.Collection != "" {
		return nil, mongoerr.InvalidNamespace.Errorf("$documents must be run on a database with {aggregate: 1}, and not on a collection")
	}
	e, err := p.expression(arg)
	return &documentsStage{computed{e, p.opts.Context}}, err
}

func (s *documentsStage) makes() {}

func (s *documentsStage) run(in Iterator) Iterator {
	return after(in, func() (Iterator, error) {
		v, err := s.docs.Eval(bson.Raw{5, 0, 0, 0, 0})
		if err != nil {
			return nil, err
		}
		if v.Type != bson.TypeArray {
			return nil, code(5858203).Errorf("$documents must evaluate to an array, but found %s", value.TypeName(v.Type))
		}
		var docs []bson.Raw
		for it := value.Elements(v.Value); it.Next(); {
			if it.Value().Type != bson.TypeEmbeddedDocument {
				return nil, code(5858201).Errorf("the elements of $documents must be objects, but found %s",
					value.TypeName(it.Value().Type))
			}
			docs = append(docs, bson.Raw(it.Value().Value))
		}
		return Documents(docs), nil
	})
}
