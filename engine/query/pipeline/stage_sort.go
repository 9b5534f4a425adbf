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
	var key []byte
	x := s.spec.Extractor()
	return sortedBy(in, s.opts, s.keep,
		func(doc bson.Raw, add func(key, doc []byte) error) (err error) {
			if key, err = x.Append(key[:0], doc); err != nil {
				return err
			}
			return add(key, doc)
		}, documentsOf)
}

// documentsOf are the documents of a sorter as they come.
func documentsOf(items *sortkey.Sorter) Iterator {
	return over(nil, func() (bson.Raw, error) {
		item, _, err := items.Next()
		return item.Doc, err
	})
}

// sortedBy reads all documents of in into a sorter, with the key that key makes of each, and gives what out makes of the sorted ones: the
// first keep of them, with 0 all. Equal keys stay in the order they came.
func sortedBy(in Iterator, opts *Options, keep int64, key func(doc bson.Raw, add func(key, doc []byte) error) error, out func(items *sortkey.Sorter) Iterator) Iterator {
	s := &sorted{iter: iter{in: in}}
	s.next = func() (bson.Raw, error) {
		if s.out == nil {
			s.items = sortkey.NewSorter(sortkey.SorterOptions{Keep: keep, Memory: opts.Memory, Disk: opts.Disk, Tick: opts.Context.Tick})
			n := uint64(0)
			add := func(key, doc []byte) error {
				n++
				return s.items.AddKey(key, n, doc)
			}
			err := each(in, func(doc bson.Raw) error { return key(doc, add) })
			if err == nil {
				err = s.items.Sort()
			}
			if err != nil {
				return nil, err
			}
			s.out = out(s.items)
		}
		return s.out.Next()
	}
	return s
}

// sorted closes its sorter.
type sorted struct {
	iter
	items *sortkey.Sorter
	out   Iterator
}

func (s *sorted) Close() error {
	err := s.iter.Close()
	if s.out != nil {
		if e := s.out.Close(); err == nil {
			err = e
		}
	}
	if s.items != nil {
		if e := s.items.Close(); err == nil {
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
