package pipeline

import (
	"slices"
	"sort"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// bucketStage is $bucket: groups by the boundaries that a value lies between. They come out in the order of the boundaries, the
// default bucket where its name sorts.
type bucketStage struct {
	grouping
	boundaries []bson.RawValue
	other      bson.RawValue // the default bucket's _id; missing: there is none
}

func parseBucket(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(40201).Errorf("argument to $bucket stage must be an object, but found type: %s", value.TypeName(arg.Type))
	}
	s := &bucketStage{grouping: grouping{who: "$bucket", opts: p.opts}}
	s.key = s.bucket
	for it := value.Elements(arg.Value); it.Next(); {
		v := it.Value()
		var err error
		switch name := string(it.Name()); name {
		case "groupBy":
			if !isExpression(v) {
				return nil, code(40202).Errorf("the $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s",
					value.Brief(v, 100))
			}
			s.id, err = p.expression(v)
		case "boundaries":
			s.boundaries, err = p.boundaries(v)
		case "default":
			e, err := p.expression(v)
			if err != nil {
				return nil, err
			}
			c, ok := e.Constant()
			if !ok {
				return nil, code(40195).Errorf("the $bucket 'default' field must be a constant expression, but found: %s",
					value.Brief(v, 100))
			}
			s.other = c
		case "output":
			s.names, s.accs, err = p.output("$bucket", v, 40196)
		default:
			return nil, code(40197).Errorf("unrecognized option to $bucket: %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.id == nil || s.boundaries == nil {
		return nil, code(40198).Errorf("$bucket requires 'groupBy' and 'boundaries' to be specified")
	}
	if n := len(s.boundaries); s.other.Type != 0 && p.opts.compare(s.other, s.boundaries[0]) >= 0 && p.opts.compare(s.other, s.boundaries[n-1]) < 0 {
		return nil, code(40199).Errorf("the $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary")
	}
	if s.accs == nil {
		var err error
		if s.names, s.accs, err = p.output("$bucket", value.MustParse("{count: {$sum: 1}}"), 40196); err != nil {
			return nil, err
		}
	}
	order, err := parseSort(p, value.MustParse("{_id: 1}"))
	return chain{s, order}, err
}

// isExpression says whether v is a path or an operator.
func isExpression(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString:
		s := value.StringBytes(v)
		return len(s) > 0 && s[0] == '$'
	case bson.TypeEmbeddedDocument:
		it := value.Elements(v.Value)
		return it.Next() && len(it.Name()) > 0 && it.Name()[0] == '$'
	}
	return false
}

func (p *parser) boundaries(v bson.RawValue) ([]bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return nil, code(40200).Errorf("the $bucket 'boundaries' field must be an array, but found type: %s",
			value.TypeName(v.Type))
	}
	var list []bson.RawValue
	for it := value.Elements(v.Value); it.Next(); {
		e, err := p.expression(it.Value())
		if err != nil {
			return nil, err
		}
		c, ok := e.Constant()
		if !ok {
			return nil, code(40191).Errorf("the $bucket 'boundaries' field must be an array of constant values, but found value: %s",
				value.Brief(it.Value(), 100))
		}
		list = append(list, c)
	}
	if len(list) < 2 {
		return nil, code(40192).Errorf("the $bucket 'boundaries' field must have at least 2 values, but found %d value(s)",
			len(list))
	}
	for i := 1; i < len(list); i++ {
		if value.RankOf(list[i].Type) != value.RankOf(list[0].Type) {
			return nil, code(40193).Errorf("all values in the 'boundaries' option to $bucket must have the same type")
		}
		if p.opts.compare(list[i-1], list[i]) >= 0 {
			return nil, code(40194).Errorf("the 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order",
				i-1, i)
		}
	}
	return list, nil
}

// output reads a document of accumulators.
func (p *parser) output(stage string, v bson.RawValue, wrong code) (names []string, accs []*accumulation, err error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, nil, wrong.Errorf("the %s 'output' field must be an object, but found type: %s", stage, value.TypeName(v.Type))
	}
	for it := value.Elements(v.Value); it.Next(); {
		a, err := p.accumulation(string(it.Name()), it.Value())
		if err != nil {
			return nil, nil, err
		}
		names, accs = append(names, string(it.Name())), append(accs, a)
	}
	return names, accs, nil
}

// bucket is the _id of the bucket that a value falls into.
func (s *bucketStage) bucket(v bson.RawValue) (bson.RawValue, error) {
	n := len(s.boundaries)
	i := sort.Search(n, func(i int) bool { return s.opts.compare(s.boundaries[i], v) > 0 })
	switch {
	case i > 0 && i < n:
		return s.boundaries[i-1], nil
	case s.other.Type != 0:
		return s.other, nil
	}
	return v, code(40066).Errorf("$switch could not find a matching branch for an input, and no default was specified: the value %s is in no bucket",
		value.Brief(v, 100))
}

// bucketAutoStage is $bucketAuto: so many groups of about equal size.
type bucketAutoStage struct {
	by          computed
	buckets     int
	granularity *granularity
	names       []string
	accs        []*accumulation
	opts        *Options
	budget      budget
}

func parseBucketAuto(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(40240).Errorf("the argument to $bucketAuto must be an object, but found type: %s",
			value.TypeName(arg.Type))
	}
	s := &bucketAutoStage{opts: p.opts, budget: p.budget("$bucketAuto")}
	for it := value.Elements(arg.Value); it.Next(); {
		v := it.Value()
		var err error
		switch name := string(it.Name()); name {
		case "groupBy":
			if !isExpression(v) {
				return nil, code(40239).Errorf("the $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: %s",
					value.Brief(v, 100))
			}
			s.by.c = p.opts.Context
			s.by.Expr, err = p.expression(v)
		case "buckets":
			n, ok := whole(v)
			if !value.IsNumber(v.Type) {
				return nil, code(40241).Errorf("the $bucketAuto 'buckets' field must be a numeric value, but found type: %s",
					value.TypeName(v.Type))
			}
			if !ok || n != int64(int32(n)) {
				return nil, code(40242).Errorf("the $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s",
					value.Brief(v, 100))
			}
			if n <= 0 {
				return nil, code(40243).Errorf("the $bucketAuto 'buckets' field must be greater than 0, but found: %d", n)
			}
			s.buckets = int(n)
		case "granularity":
			s.granularity, err = findGranularity(v)
		case "output":
			s.names, s.accs, err = p.output("$bucketAuto", v, 40244)
		default:
			return nil, code(40245).Errorf("unrecognized option to $bucketAuto: %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.by.Expr == nil || s.buckets == 0 {
		return nil, code(40246).Errorf("$bucketAuto requires 'groupBy' and 'buckets' to be specified")
	}
	if s.accs == nil {
		var err error
		if s.names, s.accs, err = p.output("$bucketAuto", value.MustParse("{count: {$sum: 1}}"), 40244); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// keyed is a document with a value.
type keyed struct {
	key bson.RawValue
	doc bson.Raw
}

func (s *bucketAutoStage) run(in Iterator) Iterator {
	return after(in, func() (Iterator, error) {
		var rows []keyed
		budget := s.budget
		err := each(in, func(doc bson.Raw) error {
			v, err := s.by.Eval(doc)
			if err != nil {
				return err
			}
			if v.Type == 0 {
				v = value.Null
			}
			if s.granularity != nil {
				if !value.IsNumber(v.Type) || value.ExactOf(v).Kind == value.ExactNaN {
					return code(40258).Errorf("$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: %s",
						value.TypeName(v.Type))
				}
				if value.ExactOf(v).Neg {
					return code(40260).Errorf("$bucketAuto can specify a 'granularity' with non-negative numbers only, but found %s",
						value.Brief(v, 100))
				}
			}
			rows = append(rows, keyed{clone(v), copyOf(doc)})
			return budget.take(len(v.Value) + len(doc) + groupSize)
		})
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(rows, func(a, b keyed) int { return s.opts.compare(a.key, b.key) })
		return s.cut(rows, budget)
	})
}

// cut makes the buckets of sorted rows.
func (s *bucketAutoStage) cut(rows []keyed, budget budget) (Iterator, error) {
	var out []bson.Raw
	size := max(1, int(float64(len(rows))/float64(s.buckets)+0.5))
	var args []bson.RawValue
	start := 0
	var low bson.RawValue
	for b := 0; start < len(rows); b++ {
		end := min(start+size, len(rows))
		if b == s.buckets-1 {
			end = len(rows)
		}
		var high bson.RawValue
		if s.granularity != nil {
			if b == 0 {
				low = s.granularity.down(rows[0].key)
			}
			high = s.granularity.up(rows[end-1].key)
			for end < len(rows) && (s.opts.compare(rows[end].key, high) < 0 || b == s.buckets-1) {
				end++
			}
			if b == s.buckets-1 {
				high = s.granularity.up(rows[end-1].key)
			}
		} else {
			for end < len(rows) && s.opts.compare(rows[end].key, rows[end-1].key) == 0 {
				end++
			}
			low = rows[start].key
			if high = rows[end-1].key; end < len(rows) {
				high = rows[end].key
			}
		}
		states := make([]accumulator, len(s.accs))
		d := newDocument()
		id := newDocument()
		id.field("min", low)
		id.field("max", high)
		d.field("_id", value.Document(id.raw()))
		for i, a := range s.accs {
			var err error
			if states[i], err = a.start(s.opts.Context, value.Null); err != nil {
				return nil, err
			}
			for _, r := range rows[start:end] {
				if err := a.feed(s.opts.Context, states[i], r.doc, &args, &budget); err != nil {
					return nil, err
				}
			}
			v, err := states[i].result(s.opts.Context)
			if err != nil {
				return nil, err
			}
			if v.Type == 0 {
				v = value.Null
			}
			d.field(s.names[i], v)
		}
		out = append(out, d.raw())
		start, low = end, high
	}
	return Documents(out), nil
}
