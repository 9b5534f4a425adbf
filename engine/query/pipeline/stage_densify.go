package pipeline

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
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
	budget     budget
}

func parseDensify(p *parser, arg bson.RawValue) (stage, error) {
	v, err := fields("$densify", arg, "field", "partitionByFields", "range")
	if err != nil {
		return nil, err
	}
	s := &densifyStage{opts: p.opts, budget: p.budget("$densify")}
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
	return after(in, func() (Iterator, error) {
		var rows []windowDoc
		var out []bson.Raw
		budget := s.budget
		err := each(in, func(doc bson.Raw) error {
			doc = copyOf(doc)
			v := getPath(doc, s.field)
			switch {
			case value.IsNullish(v):
				out = append(out, doc)
			case !s.fits(v):
				return code(5733201).Errorf("densify field type must be numeric, or a date with a unit, not %s",
					value.TypeName(v.Type))
			default:
				part := newDocument()
				for _, name := range s.partitions {
					part.field(name, getPath(doc, strings.Split(name, ".")))
				}
				rows = append(rows, windowDoc{value.Document(part.raw()), []bson.RawValue{v}, doc})
			}
			return budget.take(len(doc) + groupSize)
		})
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(rows, func(a, b windowDoc) int {
			if d := s.opts.compare(a.part, b.part); d != 0 {
				return d
			}
			return value.Compare(a.key[0], b.key[0])
		})
		w := densifier{densifyStage: s, budget: &budget, out: out}
		return w.all(rows)
	})
}

// densifier is one run of the stage.
type densifier struct {
	*densifyStage
	budget *budget
	out    []bson.Raw
	made   int
}

func (w *densifier) all(rows []windowDoc) (Iterator, error) {
	low, high := w.low, w.high
	if w.full && len(rows) > 0 {
		low, high = rows[0].key[0], rows[0].key[0]
		for _, r := range rows {
			if value.Compare(r.key[0], low) < 0 {
				low = r.key[0]
			}
			if value.Compare(r.key[0], high) > 0 {
				high = r.key[0]
			}
		}
	}
	if len(rows) == 0 && low.Type != 0 && w.partitions == nil {
		err := w.partition(nil, low, high, value.Document(bson.Raw{5, 0, 0, 0, 0}))
		return Documents(w.out), err
	}
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && w.opts.compare(rows[end].part, rows[i].part) == 0 {
			end++
		}
		from, to := low, high
		if from.Type == 0 {
			from, to = rows[i].key[0], rows[end-1].key[0]
		}
		if err := w.partition(rows[i:end], from, to, rows[i].part); err != nil {
			return nil, err
		}
		i = end
	}
	return Documents(w.out), nil
}

// partition puts the values of the series from low to high (which explicit bounds do not include) between rows.
func (w *densifier) partition(rows []windowDoc, low, high, part bson.RawValue) error {
	inclusive := w.low.Type == 0
	i := 0
	for n := int64(0); n < math.MaxInt64; n++ {
		v, err := w.at(low, n)
		if err != nil {
			return err
		}
		if d := value.Compare(v, high); d > 0 || d == 0 && !inclusive {
			break
		}
		for i < len(rows) && value.Compare(rows[i].key[0], v) < 0 {
			w.out = append(w.out, rows[i].doc)
			i++
		}
		if i < len(rows) && value.Compare(rows[i].key[0], v) == 0 {
			continue
		}
		if w.made++; w.made > densifyMax {
			return code(5897900).Errorf("generated %d documents in $densify, which is over the limit of %d", w.made, densifyMax)
		}
		if w.made%tickEvery == 0 && w.opts.Context.Tick != nil {
			if err := w.opts.Context.Tick(); err != nil {
				return err
			}
		}
		doc := []byte{5, 0, 0, 0, 0}
		for it := value.Elements(part.Value); it.Next(); {
			doc = setPath(nil, doc, strings.Split(string(it.Name()), "."), it.Value())
		}
		doc = setPath(nil, doc, w.field, v)
		if err := w.budget.take(len(doc) + groupSize); err != nil {
			return err
		}
		w.out = append(w.out, doc)
	}
	for ; i < len(rows); i++ {
		w.out = append(w.out, rows[i].doc)
	}
	return nil
}
