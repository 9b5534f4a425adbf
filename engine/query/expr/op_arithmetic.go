package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Results have the wider of the operands' types: int, long, double, decimal. What needs more than an int becomes a long, more than a
// long a double. A date and a number of milliseconds make a date.

func callAdd(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	sum := value.Int32(0)
	date := false
	for i, v := range args {
		switch {
		case nullish(v):
			return value.Null, nil
		case v.Type == bson.TypeDateTime:
			if date {
				return value.Missing, code(16612).Errorf("only one date allowed in an $add expression")
			}
			date = true
			v = value.Int64(millis(v))
		case !isNumber(v):
			return value.Missing, mongoerr.TypeMismatch.Errorf("$add only supports numeric or date types, not %s", typeName(v))
		}
		if i == 0 {
			sum = v
			continue
		}
		sum = add(sum, v)
	}
	if date {
		return dateOf("$add", sum)
	}
	return sum, nil
}

// add adds numbers.
func add(a, b bson.RawValue) bson.RawValue {
	if sum, ok := value.Add(a, b); ok {
		return sum
	}
	return value.Double(value.AsDouble(a) + value.AsDouble(b))
}

// dateOf is a number of milliseconds as a date.
func dateOf(op string, ms bson.RawValue) (bson.RawValue, error) {
	switch ms.Type {
	case bson.TypeDouble:
		f := value.AsDouble(ms)
		if f != f || f >= 1<<63 || f < -1<<63 {
			return value.Missing, mongoerr.Overflow.Errorf("date overflow in %s", op)
		}
		return value.Date(roundHalfAway(f)), nil
	case bson.TypeDecimal128:
		var r apd.Decimal
		value.DecimalContext.RoundToIntegralValue(&r, value.AsDecimal(ms))
		n, ok := value.AsInt64(value.OfDecimal(&r))
		if !ok {
			return value.Missing, mongoerr.Overflow.Errorf("date overflow in %s", op)
		}
		return value.Date(n), nil
	}
	n, _ := value.AsInt64(ms)
	return value.Date(n), nil
}

func roundHalfAway(f float64) int64 { return int64(math.Round(f)) }

// millis are the milliseconds of a date.
func millis(v bson.RawValue) int64 { return v.DateTime() }

func callSubtract(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	switch {
	case nullish(a, b):
		return value.Null, nil
	case isNumber(a) && isNumber(b):
		return subtract(a, b), nil
	case a.Type == bson.TypeDateTime && b.Type == bson.TypeDateTime:
		d, ok := value.AsInt64(subtract(value.Int64(millis(a)), value.Int64(millis(b))))
		if !ok {
			return value.Missing, mongoerr.Overflow.Errorf("date overflow in $subtract")
		}
		return value.Int64(d), nil
	case a.Type == bson.TypeDateTime && isNumber(b):
		return dateOf("$subtract", subtract(value.Int64(millis(a)), b))
	}
	return value.Missing, mongoerr.TypeMismatch.Errorf("can't $subtract %s from %s", typeName(b), typeName(a))
}

// subtract is a-b for numbers.
func subtract(a, b bson.RawValue) bson.RawValue {
	switch {
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		var r apd.Decimal
		value.DecimalContext.Sub(&r, value.AsDecimal(a), value.AsDecimal(b))
		return value.OfDecimal(&r)
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		return value.Double(value.AsDouble(a) - value.AsDouble(b))
	}
	x, y := value.TruncateInt64(a), value.TruncateInt64(b)
	d := x - y
	if (x^y)&(x^d) < 0 {
		return value.Double(float64(x) - float64(y))
	}
	if a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 {
		return intOrLong(d)
	}
	return value.Int64(d)
}

// intOrLong is i as an int if it fits.
func intOrLong(i int64) bson.RawValue {
	if i == int64(int32(i)) {
		return value.Int32(int32(i))
	}
	return value.Int64(i)
}

func callMultiply(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	product := value.Int32(1)
	for i, v := range args {
		switch {
		case nullish(v):
			return value.Null, nil
		case !isNumber(v):
			return value.Missing, mongoerr.TypeMismatch.Errorf("$multiply only supports numeric types, not %s", typeName(v))
		case i == 0:
			product = v
			continue
		}
		p, ok := value.Multiply(product, v)
		if !ok {
			p = value.Double(value.AsDouble(product) * value.AsDouble(v))
		}
		product = p
	}
	return product, nil
}

func callDivide(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	switch {
	case nullish(a, b):
		return value.Null, nil
	case !isNumber(a) || !isNumber(b):
		return value.Missing, mongoerr.TypeMismatch.Errorf("$divide only supports numeric types, not %s and %s",
			typeName(a), typeName(b))
	case value.ExactOf(b).Kind == value.ExactZero:
		return value.Missing, mongoerr.BadValue.Errorf("can't $divide by zero")
	}
	return divide(a, b), nil
}

// divide is a/b: a decimal or a double.
func divide(a, b bson.RawValue) bson.RawValue {
	if a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128 {
		return value.OfDecimal(quotient(value.AsDecimal(a), value.AsDecimal(b)))
	}
	return value.Double(value.AsDouble(a) / value.AsDouble(b))
}

// quotient is a/b, without zeros behind an exact result that the operands do not account for: 841.75/5 is 168.35.
func quotient(a, b *apd.Decimal) *apd.Decimal {
	var r apd.Decimal
	c, _ := value.DecimalContext.Quo(&r, a, b)
	return trimmed(&r, c, a.Exponent-b.Exponent)
}

// trimmed brings the exponent of an exact result as near to ideal as its digits allow; IEEE 754 says so.
func trimmed(d *apd.Decimal, c apd.Condition, ideal int32) *apd.Decimal {
	if c.Inexact() || d.Form != apd.Finite || d.IsZero() || d.Exponent >= ideal {
		return d
	}
	var r apd.Decimal
	r.Reduce(d)
	if r.Exponent > ideal {
		value.DecimalContext.Quantize(&r, &r, ideal)
	}
	return &r
}

// decimal2 applies an operation of decimal arithmetic.
func decimal2(f func(d, x, y *apd.Decimal) (apd.Condition, error), a, b bson.RawValue) bson.RawValue {
	var r apd.Decimal
	f(&r, value.AsDecimal(a), value.AsDecimal(b))
	return value.OfDecimal(&r)
}

// decimal1 is decimal2 for one operand.
func decimal1(f func(d, x *apd.Decimal) (apd.Condition, error), a bson.RawValue) bson.RawValue {
	var r apd.Decimal
	f(&r, value.AsDecimal(a))
	return value.OfDecimal(&r)
}

func callMod(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	switch {
	case nullish(a, b):
		return value.Null, nil
	case !isNumber(a) || !isNumber(b):
		return value.Missing, code(16611).Errorf("$mod only supports numeric types, not %s and %s", typeName(a), typeName(b))
	case value.ExactOf(b).Kind == value.ExactZero:
		return value.Missing, code(16610).Errorf("can't $mod by zero")
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		return decimalMod(value.AsDecimal(a), value.AsDecimal(b)), nil
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		return value.Double(math.Mod(value.AsDouble(a), value.AsDouble(b))), nil
	}
	x, y := value.TruncateInt64(a), value.TruncateInt64(b)
	r := int64(0)
	if y != -1 {
		r = x % y
	}
	if a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 {
		return value.Int32(int32(r)), nil
	}
	return value.Int64(r), nil
}

// decimalMod needs more digits than a result has when the operands are far apart.
func decimalMod(a, b *apd.Decimal) bson.RawValue {
	if a.Form != apd.Finite || b.Form == apd.NaN {
		return value.OfDecimal(&apd.Decimal{Form: apd.NaN})
	}
	if b.Form == apd.Infinite {
		return value.OfDecimal(a)
	}
	wide := value.DecimalContext
	wide.Precision = uint32(max(100, a.NumDigits()+int64(a.Exponent)-int64(b.Exponent)+10))
	var r apd.Decimal
	wide.Rem(&r, a, b)
	return value.OfDecimal(&r)
}

// number1 is the form of an operator of one number: nullish is null.
func number1(op string, f func(v bson.RawValue) (bson.RawValue, error)) function {
	return func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		v := args[0]
		switch {
		case nullish(v):
			return value.Null, nil
		case !isNumber(v):
			return value.Missing, code(28765).Errorf("%s only supports numeric types, not %s", op, typeName(v))
		}
		return f(v)
	}
}

var callAbs = number1("$abs", func(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return value.Double(math.Abs(value.AsDouble(v))), nil
	case bson.TypeDecimal128:
		return decimal1(value.DecimalContext.Abs, v), nil
	}
	n := value.TruncateInt64(v)
	switch {
	case n == math.MinInt64:
		return value.Missing, code(28680).Errorf("can't take $abs of long long min")
	case n < 0:
		n = -n
	}
	if v.Type == bson.TypeInt32 {
		return intOrLong(n), nil
	}
	return value.Int64(n), nil
})

var callCeil = number1("$ceil", func(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return value.Double(math.Ceil(value.AsDouble(v))), nil
	case bson.TypeDecimal128:
		return decimalIntegral(v, apd.RoundCeiling), nil
	}
	return v, nil
})

var callFloor = number1("$floor", func(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return value.Double(math.Floor(value.AsDouble(v))), nil
	case bson.TypeDecimal128:
		return decimalIntegral(v, apd.RoundFloor), nil
	}
	return v, nil
})

func decimalIntegral(v bson.RawValue, r apd.Rounder) bson.RawValue {
	return decimalQuantize(value.AsDecimal(v), 0, r)
}

// decimalQuantize rounds d to a number of places; one that has fewer already stays.
func decimalQuantize(d *apd.Decimal, places int, r apd.Rounder) bson.RawValue {
	if d.Form != apd.Finite || int64(d.Exponent) >= int64(-places) {
		return value.OfDecimal(d)
	}
	c := value.DecimalContext
	c.Rounding = r
	var q apd.Decimal
	c.Quantize(&q, d, int32(-places))
	return value.OfDecimal(&q)
}

func callRound(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return roundTo("$round", args, apd.RoundHalfEven, math.RoundToEven)
}

func callTrunc(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return roundTo("$trunc", args, apd.RoundDown, math.Trunc)
}

func roundTo(op string, args []bson.RawValue, r apd.Rounder, whole func(float64) float64) (bson.RawValue, error) {
	v, places := args[0], 0
	if nullish(args...) {
		return value.Null, nil
	}
	if !isNumber(v) {
		return value.Missing, code(51081).Errorf("%s only supports numeric types, not %s", op, typeName(v))
	}
	if len(args) == 2 {
		n, ok := asInt32(args[1])
		if !ok {
			return value.Missing, code(51082).Errorf("precision argument to %s must be a integral value", op)
		}
		if n < -20 || n > 100 {
			return value.Missing, code(51083).Errorf("cannot apply %s with precision value %d value must be in [-20, 100]", op, n)
		}
		places = n
	}
	switch v.Type {
	case bson.TypeDecimal128:
		return decimalQuantize(value.AsDecimal(v), places, r), nil
	case bson.TypeDouble:
		f := value.AsDouble(v)
		if places == 0 || math.IsInf(f, 0) || f != f {
			return value.Double(whole(f)), nil
		}
		return value.Double(value.AsDouble(decimalQuantize(exactDecimal(f), places, r))), nil
	}
	if places >= 0 {
		return v, nil
	}
	n, ok := value.AsInt64(decimalQuantize(value.AsDecimal(v), places, r))
	if !ok {
		return value.Missing, code(51080).Errorf("invalid conversion to long during %s", op)
	}
	if v.Type == bson.TypeInt32 {
		return intOrLong(n), nil
	}
	return value.Int64(n), nil
}

// exactDecimal is a double in decimal arithmetic with all the digits that 34 places hold.
func exactDecimal(f float64) *apd.Decimal {
	var d apd.Decimal
	if _, err := d.SetFloat64(f); err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	return &d
}

var callSqrt = number1("$sqrt", func(v bson.RawValue) (bson.RawValue, error) {
	if x := value.ExactOf(v); x.Neg {
		return value.Missing, code(28714).Errorf("$sqrt's argument must be greater than or equal to 0")
	}
	if v.Type == bson.TypeDecimal128 {
		d := value.AsDecimal(v)
		var r apd.Decimal
		c, _ := value.DecimalContext.Sqrt(&r, d)
		return value.OfDecimal(trimmed(&r, c, d.Exponent>>1)), nil
	}
	return value.Double(math.Sqrt(value.AsDouble(v))), nil
})

var callExp = number1("$exp", func(v bson.RawValue) (bson.RawValue, error) {
	if v.Type == bson.TypeDecimal128 {
		return decimalExp(value.AsDecimal(v)), nil
	}
	return value.Double(math.Exp(value.AsDouble(v))), nil
})

// decimalExp answers what is out of range before the series is tried.
func decimalExp(d *apd.Decimal) bson.RawValue {
	limit := apd.New(14200, 0)
	var magnitude apd.Decimal
	magnitude.Abs(d)
	switch {
	case d.Form == apd.NaN:
		return value.OfDecimal(d)
	case magnitude.Cmp(limit) <= 0:
		var r apd.Decimal
		value.DecimalContext.Exp(&r, d)
		return value.OfDecimal(&r)
	case d.Negative:
		return value.OfDecimal(apd.New(0, 0))
	}
	return value.OfDecimal(&apd.Decimal{Form: apd.Infinite})
}

var callLn = number1("$ln", func(v bson.RawValue) (bson.RawValue, error) {
	if notPositive(v) {
		return value.Missing, code(28766).Errorf("$ln's argument must be a positive number, but is %s", value.Brief(v, 100))
	}
	return naturalLog(v), nil
})

// notPositive says whether a number is zero or below; NaN is not.
func notPositive(v bson.RawValue) bool {
	x := value.ExactOf(v)
	return x.Kind == value.ExactZero || x.Neg
}

func naturalLog(v bson.RawValue) bson.RawValue {
	if v.Type == bson.TypeDecimal128 && value.AsDecimal(v).Form == apd.Finite {
		return decimal1(value.DecimalContext.Ln, v)
	} else if v.Type == bson.TypeDecimal128 {
		return v
	}
	return value.Double(math.Log(value.AsDouble(v)))
}

var callLog10 = number1("$log10", func(v bson.RawValue) (bson.RawValue, error) {
	if notPositive(v) {
		return value.Missing, code(28761).Errorf("$log10's argument must be a positive number, but is %s", value.Brief(v, 100))
	}
	if v.Type == bson.TypeDecimal128 {
		if value.AsDecimal(v).Form != apd.Finite {
			return v, nil
		}
		return decimal1(value.DecimalContext.Log10, v), nil
	}
	return value.Double(math.Log10(value.AsDouble(v))), nil
})

func callLog(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	v, base := args[0], args[1]
	switch {
	case nullish(v, base):
		return value.Null, nil
	case !isNumber(v):
		return value.Missing, code(28756).Errorf("$log's argument must be numeric, not %s", typeName(v))
	case !isNumber(base):
		return value.Missing, code(28757).Errorf("$log's base must be numeric, not %s", typeName(base))
	case notPositive(v):
		return value.Missing, code(28758).Errorf("$log's argument must be a positive number, but is %s", value.Brief(v, 100))
	case notPositive(base) || value.Equal(base, value.Int32(1)):
		return value.Missing, code(28759).Errorf("$log's base must be a positive number not equal to 1, but is %s",
			value.Brief(base, 100))
	}
	if base.Type == bson.TypeDecimal128 && v.Type != bson.TypeDecimal128 {
		v = value.OfDecimal(value.AsDecimal(v))
	} else if v.Type == bson.TypeDecimal128 {
		base = value.OfDecimal(value.AsDecimal(base))
	}
	return divide(naturalLog(v), naturalLog(base)), nil
}

func callPow(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	base, exponent := args[0], args[1]
	switch {
	case nullish(base, exponent):
		return value.Null, nil
	case !isNumber(base):
		return value.Missing, code(28762).Errorf("$pow's base must be numeric, not %s", typeName(base))
	case !isNumber(exponent):
		return value.Missing, code(28763).Errorf("$pow's exponent must be numeric, not %s", typeName(exponent))
	case value.ExactOf(base).Kind == value.ExactZero && value.ExactOf(exponent).Neg:
		return value.Missing, code(28764).Errorf("$pow cannot take a base of 0 and a negative exponent")
	case base.Type == bson.TypeDecimal128 || exponent.Type == bson.TypeDecimal128:
		return decimalPow(base, exponent), nil
	case base.Type == bson.TypeDouble || exponent.Type == bson.TypeDouble:
		return value.Double(math.Pow(value.AsDouble(base), value.AsDouble(exponent))), nil
	}
	b, e := value.TruncateInt64(base), value.TruncateInt64(exponent)
	long := base.Type == bson.TypeInt64 || exponent.Type == bson.TypeInt64
	n, ok := intPow(b, e)
	switch {
	case !ok:
		return value.Double(math.Pow(float64(b), float64(e))), nil
	case long:
		return value.Int64(n), nil
	}
	return intOrLong(n), nil
}

// intPow is b to the power of e, if that is a whole number that fits.
func intPow(b, e int64) (int64, bool) {
	switch {
	case b == 1 || e == 0:
		return 1, true
	case b == -1:
		return 1 - 2*(e&1), true
	case e < 0:
		return 0, false
	case b == 0:
		return 0, true
	case e > 63:
		return 0, false
	}
	r := value.Int64(1)
	for range e {
		var ok bool
		if r, ok = value.Multiply(r, value.Int64(b)); !ok {
			return 0, false
		}
	}
	return value.AsInt64(r)
}

func decimalPow(base, exponent bson.RawValue) bson.RawValue {
	x, y := value.AsDecimal(base), value.AsDecimal(exponent)
	// The exponent of the result decides whether the library is worth asking: its work grows with it.
	size := float64(x.NumDigits()+int64(x.Exponent)) * value.AsDouble(exponent)
	if x.Form != apd.Finite || y.Form != apd.Finite || math.Abs(size) > 20000 || math.Abs(value.AsDouble(exponent)) > 1e6 {
		f := math.Pow(value.AsDouble(base), value.AsDouble(exponent))
		return value.OfDecimal(value.AsDecimal(value.Double(f)))
	}
	return decimal2(value.DecimalContext.Pow, base, exponent)
}

func callSigmoid(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch v := args[0]; {
	case nullish(v):
		return value.Null, nil
	case !isNumber(v):
		return value.Missing, code(28765).Errorf("$sigmoid only supports numeric types, not %s", typeName(v))
	default:
		return value.Double(1 / (1 + math.Exp(-value.AsDouble(v)))), nil
	}
}
