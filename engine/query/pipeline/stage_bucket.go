package pipeline

import (
	"sort"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
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

func (s *bucketAutoStage) run(in Iterator) Iterator {
	var buf, record []byte
	return sortedBy(in, s.opts, 0, func(doc bson.Raw, add func(key, doc []byte) error) error {
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
		buf = key.AppendBy(s.opts.Collation, buf[:0], v)
		record = append(appendValue(record[:0], v), doc...)
		return add(buf, record)
	}, func(items *sortkey.Sorter) Iterator {
		c := &cutter{bucketAutoStage: s, items: items, size: max(1, int(float64(items.Count())/float64(s.buckets)+0.5))}
		return over(nil, c.next)
	})
}

// cutter makes the buckets of sorted documents: each has the value in front of the document.
type cutter struct {
	*bucketAutoStage
	items  *sortkey.Sorter
	size   int // of a bucket, about
	bucket int // the number of the one that is next

	begun, more bool // items was asked; v and doc are the next one
	v           bson.RawValue
	doc         bson.Raw
	low, last   bson.RawValue // the bucket's lower bound; the last value that was taken
	args        []bson.RawValue
}

func (c *cutter) advance() error {
	item, ok, err := c.items.Next()
	if c.more = ok && err == nil; c.more {
		var rest []byte
		c.v, rest = cutValue(item.Doc)
		c.doc = bson.Raw(rest)
	}
	return err
}

func (c *cutter) next() (bson.Raw, error) {
	if !c.begun {
		c.begun = true
		if err := c.advance(); err != nil {
			return nil, err
		}
	}
	if !c.more {
		return nil, nil
	}
	budget := c.budget
	states := make([]accumulator, len(c.accs))
	for i, a := range c.accs {
		var err error
		if states[i], err = a.start(c.opts.Context, value.Null); err != nil {
			return nil, err
		}
	}
	n := 0
	while := func(more func() bool) error {
		for ; c.more && more(); n++ {
			for i, a := range c.accs {
				if err := a.feed(c.opts.Context, states[i], c.doc, &c.args, &budget); err != nil {
					return err
				}
			}
			c.last.Type, c.last.Value = c.v.Type, append(c.last.Value[:0], c.v.Value...)
			if err := c.advance(); err != nil {
				return err
			}
		}
		return nil
	}
	final := c.bucket == c.buckets-1
	first := clone(c.v)
	if err := while(func() bool { return final || n < c.size }); err != nil {
		return nil, err
	}
	var high bson.RawValue
	if c.granularity != nil {
		if c.bucket == 0 {
			c.low = c.granularity.down(first)
		}
		high = c.granularity.up(c.last)
		if err := while(func() bool { return c.opts.compare(c.v, high) < 0 }); err != nil {
			return nil, err
		}
	} else {
		if err := while(func() bool { return c.opts.compare(c.v, c.last) == 0 }); err != nil {
			return nil, err
		}
		c.low, high = first, clone(c.last)
		if c.more {
			high = clone(c.v)
		}
	}
	id, d := newDocument(), newDocument()
	id.field("min", c.low)
	id.field("max", high)
	d.field("_id", value.Document(id.raw()))
	for i, a := range states {
		v, err := a.result(c.opts.Context)
		if err != nil {
			return nil, err
		}
		if v.Type == 0 {
			v = value.Null
		}
		d.field(c.names[i], v)
	}
	c.low = high
	c.bucket++
	doc := d.raw()
	return doc, checkSize("$bucketAuto", len(doc))
}
