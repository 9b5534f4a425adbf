package pipeline

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/value"
)

// densifyMax is how many documents $densify may make, MongoDB's default.
const densifyMax = 500_000

// densifyStage makes documents for the values of a field that are missing in a series. It gives those without the field first, then
// partition by partition, in the field's order.
type densifyStage struct {
	field      []string
	partitions []string
	step       bson.RawValue
	unit       *expr.Unit // nil: numbers
	full       bool       // all partitions reach from the least to the greatest value of all
	low, high  bson.RawValue
	opts       *Options
}

func parseDensify(p *parser, arg bson.RawValue) (stage, error) {
	v, err := fields("$densify", arg, "field", "partitionByFields", "range")
	if err != nil {
		return nil, err
	}
	s := &densifyStage{opts: p.opts}
	name, err := text("$densify", "field", v[0])
	if err != nil {
		return nil, err
	}
	if s.field, err = fieldPath(name); err != nil {
		return nil, err
	}
	for it := value.Elements(v[1].Value); v[1].Type == bson.TypeArray && it.Next(); {
		part := string(value.StringBytes(it.Value()))
		if _, err := fieldPath(part); err != nil {
			return nil, err
		}
		if overlap(part, name) {
			return nil, code(5733403).Errorf("the field to densify and the fields to partition by must be apart: '%s', '%s'",
				name, part)
		}
		s.partitions = append(s.partitions, part)
	}
	if v[2].Type == 0 {
		return nil, missing("$densify", "range")
	}
	r, err := fields("$densify.range", v[2], "step", "unit", "bounds")
	if err != nil {
		return nil, err
	}
	return s, s.parseRange(r[0], r[1], r[2])
}

func (s *densifyStage) parseRange(step, unit, bounds bson.RawValue) error {
	if !value.IsNumber(step.Type) || value.Compare(step, value.Int32(0)) <= 0 {
		return code(5733401).Errorf("the step parameter in a range statement must be a strictly positive numeric value")
	}
	s.step = step
	if unit.Type != 0 {
		u, err := expr.ParseUnit("$densify", unit)
		if err != nil {
			return err
		}
		if _, ok := value.AsInt64(step); !ok {
			return code(6586400).Errorf("the step parameter in a range statement must be a whole number when densifying a date range")
		}
		s.unit = &u
	}
	switch name := string(value.StringBytes(bounds)); {
	case name == "full":
		s.full = true
	case name == "partition":
		if s.partitions == nil {
			return code(5733408).Errorf("one may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields")
		}
	case bounds.Type != bson.TypeArray || value.Count(bounds.Value) != 2:
		return code(5733402).Errorf("the bounds must be 'full', 'partition' or an array of two values")
	default:
		s.low, s.high = value.At(bounds.Value, 0), value.At(bounds.Value, 1)
		if !s.fits(s.low) || !s.fits(s.high) {
			return code(5733402).Errorf("the bounds in a range statement must be numbers, or dates with a unit")
		}
		if value.Compare(s.low, s.high) > 0 {
			return code(5733402).Errorf("the first element of the bounds must not be greater than the second")
		}
	}
	return nil
}

func (s *densifyStage) fits(v bson.RawValue) bool {
	if s.unit != nil {
		return v.Type == bson.TypeDateTime
	}
	return value.IsNumber(v.Type)
}

// at is value number n of the series that begins at base.
func (s *densifyStage) at(base bson.RawValue, n int64) (bson.RawValue, error) {
	k, ok := value.Multiply(s.step, value.Int64(n))
	if ok && s.unit != nil {
		var ms int64
		if ms, ok = s.unit.Add(base.DateTime(), value.TruncateInt64(k)); ok {
			return value.Date(ms), nil
		}
	} else if ok {
		if s.step.Type == bson.TypeInt32 && k.Int64() == int64(int32(k.Int64())) && k.Type == bson.TypeInt64 {
			k = value.Int32(int32(k.Int64()))
		}
		if v, ok := value.Add(base, k); ok {
			return v, nil
		}
	}
	return value.Missing, code(5733304).Errorf("the values of $densify leave the range of their type")
}

func (s *densifyStage) run(in Iterator) Iterator {
	var buf []byte
	var least, greatest bson.RawValue
	return sortedBy(in, s.opts, 0, func(doc bson.Raw, add func(key, doc []byte) error) error {
		v := getPath(doc, s.field)
		switch {
		case value.IsNullish(v):
			return add(append(buf[:0], densifyNone), doc)
		case !s.fits(v):
			return code(5733201).Errorf("densify field type must be numeric, or a date with a unit, not %s",
				value.TypeName(v.Type))
		}
		if least.Type == 0 || value.Compare(v, least) < 0 {
			least = clone(v)
		}
		if greatest.Type == 0 || value.Compare(v, greatest) > 0 {
			greatest = clone(v)
		}
		buf = key.AppendBy(s.opts.Collation, append(buf[:0], densifySome), s.partitionOf(doc))
		return add(key.Append(buf, v), doc)
	}, func(items *sortkey.Sorter) Iterator {
		w := &densifier{densifyStage: s, items: items, from: s.low, to: s.high}
		if s.full {
			w.from, w.to = least, greatest
		}
		if least.Type == 0 && w.from.Type != 0 && s.partitions == nil {
			w.open, w.part, w.base = true, value.Document(bson.Raw{5, 0, 0, 0, 0}), w.from
		}
		return over(nil, w.next)
	})
}

// What the keys of documents without and with the field begin with.
const (
	densifyNone = 0
	densifySome = 1
)

// partitionOf is what the fields of the partition are in a document.
func (s *densifyStage) partitionOf(doc bson.Raw) bson.RawValue {
	part := newDocument()
	for _, name := range s.partitions {
		part.field(name, getPath(doc, strings.Split(name, ".")))
	}
	return value.Document(part.raw())
}

// densifier puts the values of each partition's series between its documents: up to a bound, which explicit bounds do not include,
// or to the partition's last document.
type densifier struct {
	*densifyStage
	items    *sortkey.Sorter
	from, to bson.RawValue // of all partitions; missing: of each its own

	item       sortkey.Item // the next document if have
	have, over bool
	v          bson.RawValue // of item

	open, ended bool // a partition is under way; its series has ended
	part, base  bson.RawValue
	n           int64 // the series' next value has this number
	made        int
}

func (w *densifier) next() (bson.Raw, error) {
	for {
		if !w.have && !w.over {
			var err error
			if w.item, w.have, err = w.items.Next(); err != nil {
				return nil, err
			}
			w.over = !w.have
			if w.have && w.item.Key[0] == densifyNone {
				w.have = false
				return w.item.Doc, nil
			}
			w.v = getPath(w.item.Doc, w.field)
		}
		if !w.open {
			if w.over {
				return nil, nil
			}
			w.open, w.ended, w.n, w.part, w.base = true, false, 0, w.partitionOf(w.item.Doc), w.from
			if w.base.Type == 0 {
				w.base = clone(w.v)
			}
		}
		mine := w.have && w.opts.compare(w.partitionOf(w.item.Doc), w.part) == 0
		var v bson.RawValue
		if !w.ended {
			var err error
			if v, w.ended, err = w.series(mine); err != nil {
				return nil, err
			}
		}
		switch {
		case w.ended && !mine:
			w.open = false
		case mine && (w.ended || value.Compare(w.v, v) < 0):
			w.have = false
			return w.item.Doc, nil
		case mine && value.Compare(w.v, v) == 0:
			w.n++ // the document itself comes before the next value
		default:
			w.n++
			return w.make(v)
		}
	}
}

// series is the next value of the partition; mine says whether documents of it are left.
func (w *densifier) series(mine bool) (v bson.RawValue, ended bool, err error) {
	if w.to.Type == 0 && !mine || w.n == math.MaxInt64 {
		return v, true, nil
	}
	if v, err = w.at(w.base, w.n); err != nil || w.to.Type == 0 {
		return v, false, err
	}
	d := value.Compare(v, w.to)
	return v, d > 0 || d == 0 && w.low.Type != 0, nil
}

// make makes a document.
func (w *densifier) make(v bson.RawValue) (bson.Raw, error) {
	if w.made++; w.made > densifyMax {
		return nil, code(5897900).Errorf("generated %d documents in $densify, which is over the limit of %d",
			w.made, densifyMax)
	}
	if w.made%tickEvery == 0 && w.opts.Context.Tick != nil {
		if err := w.opts.Context.Tick(); err != nil {
			return nil, err
		}
	}
	doc := []byte{5, 0, 0, 0, 0}
	for it := value.Elements(w.part.Value); it.Next(); {
		doc = setPath(nil, doc, strings.Split(string(it.Name()), "."), it.Value())
	}
	return setPath(nil, doc, w.field, v), nil
}
