package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/value"
)

// sortStage is $sort. The optimiser sets keep when a limit follows.
type sortStage struct {
	spec *sortkey.Spec
	keep int64
	opts *Options
}

func parseSort(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(15973).Errorf("the $sort key specification must be an object")
	}
	spec, err := p.sort(bson.Raw(arg.Value))
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, code(15976).Errorf("$sort stage must have at least one sort key")
	}
	if spec.Natural() != 0 {
		return nil, mongoerr.BadValue.Errorf("$natural sort cannot be set to a value in a $sort stage")
	}
	return &sortStage{spec: spec, opts: p.opts}, nil
}

func (s *sortStage) run(in Iterator) Iterator {
	var sorter *sortkey.Sorter
	n := uint64(0)
	return &sorted{iter{in: in, next: func() (bson.Raw, error) {
		if sorter == nil {
			sorter = s.spec.Sorter(sortkey.SorterOptions{Keep: s.keep, Memory: s.opts.Memory, Disk: s.opts.Disk})
			err := each(in, func(doc bson.Raw) error {
				n++
				return sorter.Add(n, doc)
			})
			if err == nil {
				err = sorter.Sort()
			}
			if err != nil {
				return nil, err
			}
		}
		item, ok, err := sorter.Next()
		if err != nil || !ok {
			return nil, err
		}
		return item.Doc, nil
	}}, &sorter}
}

// sorted closes its sorter.
type sorted struct {
	iter
	sorter **sortkey.Sorter
}

func (s *sorted) Close() error {
	err := s.iter.Close()
	if *s.sorter != nil {
		if e := (*s.sorter).Close(); err == nil {
			err = e
		}
	}
	return err
}

// parseSortByCount reads {$sortByCount: expression}: groups and how many documents are in each, the largest first.
func parseSortByCount(p *parser, arg bson.RawValue) (stage, error) {
	s := string(value.StringBytes(arg))
	switch {
	case arg.Type == bson.TypeEmbeddedDocument:
		it := value.Elements(arg.Value)
		if !it.Next() || len(it.Name()) == 0 || it.Name()[0] != '$' {
			return nil, code(40147).Errorf("the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	case arg.Type != bson.TypeString:
		return nil, code(40149).Errorf("the sortByCount field must be specified as a string or as an object")
	case len(s) < 2 || s[0] != '$':
		return nil, code(40148).Errorf("the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	}
	d := newDocument()
	d.field("_id", arg)
	d.field("count", value.MustParse("{$sum: 1}"))
	group, err := parseGroup(p, value.Document(d.raw()))
	if err != nil {
		return nil, err
	}
	order, err := parseSort(p, value.MustParse("{count: -1}"))
	return chain{group, order}, err
}

// chain is several stages that are written as one.
type chain []stage

func (c chain) run(in Iterator) Iterator {
	for _, s := range c {
		in = s.run(in)
	}
	return in
}
