package expr

import (
	"math"
	"slices"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Total sums numbers: integers exactly as far as 64 bits go, doubles with the rounding errors carried along (so that neither the
// order nor the grouping of ordinary sums shows), decimals as decimals. The result has the widest type that was added. The zero
// Total is 0.
type Total struct {
	whole    int64 // the integers, until they need more
	high, lo float64
	special  float64 // the sum of infinities and NaNs, which have no rounding error
	decimal  *apd.Decimal
	widest   uint8 // 0 int, 1 long, 2 double, 3 decimal
	N        int64 // how many numbers were added
}

// Add adds a number; everything else is passed over.
func (t *Total) Add(v bson.RawValue) {
	switch v.Type {
	case bson.TypeInt32:
		t.addInt(int64(v.Int32()))
	case bson.TypeInt64:
		t.widest = max(t.widest, 1)
		t.addInt(v.Int64())
	case bson.TypeDouble:
		t.widest = max(t.widest, 2)
		t.addDouble(v.Double())
	case bson.TypeDecimal128:
		t.widest = 3
		if t.decimal == nil {
			t.decimal = new(apd.Decimal)
		}
		value.DecimalContext.Add(t.decimal, t.decimal, value.AsDecimal(v))
	default:
		return
	}
	t.N++
}

func (t *Total) addInt(i int64) {
	sum := t.whole + i
	if (t.whole^sum)&(i^sum) < 0 {
		t.addDouble(float64(t.whole))
		t.whole = i
		return
	}
	t.whole = sum
}

// addDouble is Knuth's two-sum: high+lo is the sum to twice the precision.
func (t *Total) addDouble(f float64) {
	if math.IsInf(f, 0) || f != f {
		t.special += f
		return
	}
	s := t.high + f
	b := s - t.high
	t.lo += (t.high - (s - b)) + (f - b)
	t.high = s
}

// double is the sum of what is not decimal.
func (t *Total) double() float64 {
	if t.special != 0 {
		return t.special
	}
	c := *t
	c.addDouble(float64(t.whole))
	// A whole number beyond 2^53 leaves a rest.
	if t.whole > 1<<53 || t.whole < -1<<53 {
		whole := float64(t.whole)
		if whole < 1<<63 {
			c.lo += float64(t.whole - int64(whole))
		}
	}
	if sum := c.high + c.lo; sum == sum && !math.IsInf(c.high, 0) {
		return sum
	}
	return c.high
}

// Sum is the sum; of no numbers it is 0.
func (t *Total) Sum() bson.RawValue {
	switch {
	case t.widest == 3:
		return value.OfDecimal(t.asDecimal())
	case t.widest == 2 || t.high != 0 || t.lo != 0:
		f := t.double()
		if t.widest < 2 && math.Abs(f) < 1<<63 {
			return value.Int64(int64(f))
		}
		return value.Double(f)
	case t.widest == 0:
		return intOrLong(t.whole)
	}
	return value.Int64(t.whole)
}

func (t *Total) asDecimal() *apd.Decimal {
	var r apd.Decimal
	if t.decimal != nil {
		r.Set(t.decimal)
	}
	if t.high != 0 || t.lo != 0 || t.special != 0 {
		part := *t
		part.whole = 0
		value.DecimalContext.Add(&r, &r, value.AsDecimal(value.Double(part.double())))
	}
	value.DecimalContext.Add(&r, &r, apd.New(t.whole, 0))
	return &r
}

// Average is the mean; of no numbers it is null.
func (t *Total) Average() bson.RawValue {
	switch {
	case t.N == 0:
		return value.Null
	case t.widest == 3:
		return value.OfDecimal(quotient(t.asDecimal(), apd.New(t.N, 0)))
	}
	return value.Double(t.double() / float64(t.N))
}

// Spread is the standard deviation, by Welford's method, in doubles. The zero Spread has no numbers.
type Spread struct {
	n       int64
	mean, m float64
}

// Add adds a number; everything else is passed over.
func (s *Spread) Add(v bson.RawValue) {
	if !isNumber(v) {
		return
	}
	f := value.AsDouble(v)
	s.n++
	d := f - s.mean
	s.mean += d / float64(s.n)
	s.m += d * (f - s.mean)
}

// Deviation is the deviation of a population or of a sample; null for too few numbers.
func (s *Spread) Deviation(sample bool) bson.RawValue {
	n := s.n
	if sample {
		n--
	}
	if n <= 0 {
		return value.Null
	}
	return value.Double(math.Sqrt(s.m / float64(n)))
}

// Percentiles collects numbers for $percentile and $median.
type Percentiles struct{ list []float64 }

// Add adds a number; everything else is passed over.
func (p *Percentiles) Add(v bson.RawValue) {
	if isNumber(v) {
		p.list = append(p.list, value.AsDouble(v))
	}
}

// Size is how many bytes are held.
func (p *Percentiles) Size() int { return 8 * len(p.list) }

// At are the values below or at which the given parts of the numbers lie; each is one of the numbers. Null if there are none.
func (p *Percentiles) At(parts []float64) []bson.RawValue {
	slices.Sort(p.list)
	r := make([]bson.RawValue, len(parts))
	for i, part := range parts {
		if len(p.list) == 0 {
			r[i] = value.Null
			continue
		}
		at := int(math.Ceil(part*float64(len(p.list)))) - 1
		r[i] = value.Double(p.list[min(max(at, 0), len(p.list)-1)])
	}
	return r
}

// ReadPercentiles reads the operand p, constant numbers from 0 to 1.
func ReadPercentiles(e *Expr) ([]float64, error) {
	c, ok := e.Constant()
	if !ok || !isArray(c) || value.Count(c.Value) == 0 {
		return nil, code(7750300).Errorf("the $percentile 'p' field must be an array of constant values, but found value: %s",
			value.Brief(c, 100))
	}
	var parts []float64
	for _, e := range elements(c) {
		if !isNumber(e) {
			return nil, code(7750302).Errorf("the $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s",
				value.Brief(e, 100))
		}
		f := value.AsDouble(e)
		if !(f >= 0 && f <= 1) {
			return nil, code(7750303).Errorf("the $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s",
				value.Brief(e, 100))
		}
		parts = append(parts, f)
	}
	return parts, nil
}

// CheckMethod checks the operand method.
func CheckMethod(op string, v bson.RawValue) error {
	if !isString(v) || text(v) != "approximate" {
		return code(7750301).Errorf("currently only 'approximate' can be used as %s 'method'", op)
	}
	return nil
}
