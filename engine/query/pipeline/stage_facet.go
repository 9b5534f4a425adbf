package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
)

// facetStage gives one document, with an array of what each of several pipelines makes of the documents before.
type facetStage struct {
	names  []string
	pipes  []*Pipeline
	opts   *Options
	budget budget // of what the pipelines give
}

func parseFacet(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(40169).Errorf("the $facet specification must be a non-empty object, but found: %s",
			value.TypeName(arg.Type))
	}
	s := &facetStage{opts: p.opts, budget: p.budget("$facet")}
	for it := value.Elements(arg.Value); it.Next(); {
		name, v := string(it.Name()), it.Value()
		if strings.HasPrefix(name, "$") || strings.ContainsAny(name, ".\x00") || name == "" {
			return nil, code(40169).Errorf("the name of a $facet must be a plain field name, not '%s'", name)
		}
		if v.Type != bson.TypeArray {
			return nil, code(40170).Errorf("arguments to $facet must be arrays, %s is type %s", name, value.TypeName(v.Type))
		}
		stages, err := Split(v)
		if err != nil {
			return nil, err
		}
		q, err := p.sub(inFacet, p.ns, p.scope).pipeline(stages)
		if err != nil {
			return nil, err
		}
		s.names, s.pipes = append(s.names, name), append(s.pipes, q)
	}
	if s.names == nil {
		return nil, code(40169).Errorf("the $facet specification must be a non-empty object")
	}
	return s, nil
}

func (s *facetStage) run(in Iterator) Iterator {
	done := false
	return over(in, func() (bson.Raw, error) {
		if done {
			return nil, nil
		}
		done = true
		docs := spill.NewBuffer(spill.BufferOptions{Who: "$facet", Memory: s.opts.Memory, Disk: s.opts.Disk})
		doc, err := s.facets(in, docs)
		if e := docs.Close(); err == nil {
			err = e
		}
		return doc, err
	})
}

// facets runs the pipelines one after the other over the documents of in, which it keeps in docs.
func (s *facetStage) facets(in Iterator, docs *spill.Buffer) (bson.Raw, error) {
	if err := each(in, func(doc bson.Raw) error { return docs.Append(doc) }); err != nil {
		return nil, err
	}
	budget := s.budget
	d := newDocument()
	for i, q := range s.pipes {
		r, err := docs.Reader()
		if err != nil {
			return nil, err
		}
		it := q.RunAll(over(nil, func() (bson.Raw, error) { return r.Next() }))
		list := newDocument()
		err = each(it, func(doc bson.Raw) error {
			list.add(value.Document(doc))
			return budget.take(len(doc))
		})
		if e := it.Close(); err == nil {
			err = e
		}
		if err != nil {
			return nil, err
		}
		d.field(s.names[i], value.Array(list.raw()))
	}
	doc := d.raw()
	return doc, checkSize("$facet", len(doc))
}
