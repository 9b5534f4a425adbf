package pipeline

import (
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// sampleStage gives n documents by chance: those that drew the least numbers, in the order of these.
type sampleStage struct {
	n      int64
	opts   *Options
	budget budget
}

func parseSample(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(28745).Errorf("the $sample stage specification must be an object")
	}
	s := &sampleStage{opts: p.opts, budget: p.budget("$sample")}
	for it := value.Elements(arg.Value); it.Next(); {
		if string(it.Name()) != "size" {
			return nil, code(28748).Errorf("unrecognized option to $sample: %s", it.Name())
		}
		if !value.IsNumber(it.Value().Type) {
			return nil, code(28746).Errorf("size argument to $sample must be a number")
		}
		if s.n = value.TruncateInt64(it.Value()); s.n <= 0 {
			return nil, code(28747).Errorf("size argument to $sample must be a positive integer")
		}
	}
	if s.n == 0 {
		return nil, code(28749).Errorf("$sample stage must specify a size")
	}
	return s, nil
}

type drawn struct {
	lot uint64
	doc bson.Raw
}

func (s *sampleStage) run(in Iterator) Iterator {
	return after(in, func() (Iterator, error) {
		if s.opts.Context.Rand == nil {
			return nil, mongoerr.IllegalOperation.Errorf("$sample needs random numbers, which are not allowed here")
		}
		var list []drawn // sorted by lot once it is full
		budget := s.budget
		byLot := func(a, b drawn) int { return cmp.Compare(a.lot, b.lot) }
		err := each(in, func(doc bson.Raw) error {
			d := drawn{lot: s.opts.Context.Rand()}
			if int64(len(list)) < s.n {
				d.doc = copyOf(doc)
				if list = append(list, d); int64(len(list)) == s.n {
					slices.SortFunc(list, byLot)
				}
				return budget.take(len(doc) + groupSize)
			}
			last := len(list) - 1
			if d.lot >= list[last].lot {
				return nil
			}
			d.doc = copyOf(doc)
			budget.used += int64(len(doc) - len(list[last].doc))
			i, _ := slices.BinarySearchFunc(list, d, byLot)
			list = slices.Insert(list[:last], i, d)
			return budget.take(0)
		})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(list, byLot)
		docs := make([]bson.Raw, len(list))
		for i, d := range list {
			docs[i] = d.doc
		}
		return Documents(docs), nil
	})
}
