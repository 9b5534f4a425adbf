package value

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// DecimalContext is the arithmetic of Decimal128: 34 digits, half-even, its range of exponents; no condition is an error.
var DecimalContext = apd.Context{
	Precision:   decimalDigits,
	MaxExponent: decimalExpMax + decimalDigits - 1,
	MinExponent: decimalExpMin + decimalDigits - 1,
	Rounding:    apd.RoundHalfEven,
}

// Add is a+b in the wider of their types: int32, then int64 (also when a sum of int32 needs it), then double, then Decimal128.
// It is false if the sum of two integers needs more than 64 bits. Both must be numbers.
func Add(a, b bson.RawValue) (bson.RawValue, bool) {
	switch wider(a.Type, b.Type) {
	case bson.TypeDecimal128:
		var sum apd.Decimal
		DecimalContext.Add(&sum, AsDecimal(a), AsDecimal(b))
		return OfDecimal(&sum), true
	case bson.TypeDouble:
		return Double(AsDouble(a) + AsDouble(b)), true
	}
	x, y := readInt(a.Type, a.Value), readInt(b.Type, b.Value)
	sum := x + y
	if (x^sum)&(y^sum) < 0 {
		return Missing, false
	}
	return integer(sum, a.Type, b.Type), true
}

// Multiply is a·b, with types and overflow as Add has them.
func Multiply(a, b bson.RawValue) (bson.RawValue, bool) {
	switch wider(a.Type, b.Type) {
	case bson.TypeDecimal128:
		var product apd.Decimal
		DecimalContext.Mul(&product, AsDecimal(a), AsDecimal(b))
		return OfDecimal(&product), true
	case bson.TypeDouble:
		return Double(AsDouble(a) * AsDouble(b)), true
	}
	x, y := readInt(a.Type, a.Value), readInt(b.Type, b.Value)
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	negative := (x < 0) != (y < 0)
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && !negative {
		return Missing, false
	}
	product := int64(lo)
	if negative {
		product = -product
	}
	return integer(product, a.Type, b.Type), true
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

// integer is i as int32 if both operands were and it fits, else as int64.
func integer(i int64, a, b bson.Type) bson.RawValue {
	if a == bson.TypeInt32 && b == bson.TypeInt32 && i == int64(int32(i)) {
		return Int32(int32(i))
	}
	return Int64(i)
}

func wider(a, b bson.Type) bson.Type {
	for _, t := range [...]bson.Type{bson.TypeDecimal128, bson.TypeDouble, bson.TypeInt64} {
		if a == t || b == t {
			return t
		}
	}
	return bson.TypeInt32
}

// AsDouble is the double nearest to a number; a Decimal128 beyond all doubles is infinite.
func AsDouble(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeDouble:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.Value))
	case bson.TypeDecimal128:
		d := decodeDecimal(v.Value)
		if d.kind == decimalNaN {
			return math.NaN()
		}
		f, _ := strconv.ParseFloat(d.encode().String(), 64) // out of range: ±Inf, as wanted
		return f
	}
	return float64(readInt(v.Type, v.Value))
}

// AsInt64 is a number as an int64 if it is whole and fits.
func AsInt64(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return readInt(v.Type, v.Value), true
	}
	x := ExactOf(v)
	switch {
	case x.Kind == ExactZero:
		return 0, true
	case x.Kind == ExactLarge && x.Neg && !x.Rest && x.Bits == math.Float64bits(1<<63):
		return math.MinInt64, true
	case x.Kind != ExactWhole || x.Frac != 0 || x.Rest:
		return 0, false
	case x.Neg:
		return -int64(x.Whole), true
	}
	return int64(x.Whole), true
}

// TruncateInt64 is a number as an int64 towards zero, held at the ends of the range; NaN is 0.
func TruncateInt64(v bson.RawValue) int64 {
	if v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64 {
		return readInt(v.Type, v.Value)
	}
	x := ExactOf(v)
	switch {
	case x.Kind == ExactWhole && x.Neg:
		return -int64(x.Whole)
	case x.Kind == ExactWhole:
		return int64(x.Whole)
	case x.Kind != ExactLarge && x.Kind != ExactInf:
		return 0
	case x.Neg:
		return math.MinInt64
	}
	return math.MaxInt64
}

// AsDecimal is a number in decimal arithmetic. Integers are exact; a double keeps 15 digits, as MongoDB converts it.
func AsDecimal(v bson.RawValue) *apd.Decimal {
	switch v.Type {
	case bson.TypeDecimal128:
		d := decodeDecimal(v.Value)
		switch d.kind {
		case decimalNaN:
			return &apd.Decimal{Form: apd.NaN}
		case decimalInf:
			return &apd.Decimal{Form: apd.Infinite, Negative: d.neg}
		}
		r := &apd.Decimal{Negative: d.neg, Exponent: d.exp}
		r.Coeff.SetUint64(d.hi)
		r.Coeff.Lsh(&r.Coeff, 64)
		r.Coeff.Or(&r.Coeff, new(apd.BigInt).SetUint64(d.lo))
		return r
	case bson.TypeDouble:
		f := AsDouble(v)
		switch {
		case f != f:
			return &apd.Decimal{Form: apd.NaN}
		case math.IsInf(f, 0):
			return &apd.Decimal{Form: apd.Infinite, Negative: f < 0}
		case f == 0:
			return &apd.Decimal{Negative: math.Signbit(f)}
		}
		r, _, err := apd.NewFromString(strconv.FormatFloat(f, 'e', 14, 64))
		if err != nil {
			panic("value: a formatted double does not parse: " + err.Error())
		}
		return r
	}
	return apd.New(readInt(v.Type, v.Value), 0)
}

// OfDecimal is d as a Decimal128: rounded half-even to 34 digits, infinite or zero where its exponent is out of range.
func OfDecimal(d *apd.Decimal) bson.RawValue {
	switch d.Form {
	case apd.NaN, apd.NaNSignaling:
		return Decimal128(decimal{kind: decimalNaN}.encode())
	case apd.Infinite:
		return Decimal128(decimal{kind: decimalInf, neg: d.Negative}.encode())
	}
	var r apd.Decimal
	if d.Coeff.Sign() == 0 {
		r.Set(d) // rounding a zero has nothing to round and would only judge its exponent
		r.Exponent = min(max(r.Exponent, decimalExpMin), decimalExpMax)
	} else if DecimalContext.Round(&r, d); r.Form != apd.Finite {
		return Decimal128(decimal{kind: decimalInf, neg: r.Negative}.encode())
	}
	if over := r.Exponent - decimalExpMax; over > 0 {
		// In range, but written with fewer digits than its exponent has room for.
		r.Coeff.Mul(&r.Coeff, new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(over)), nil))
		r.Exponent = decimalExpMax
	}
	lo := new(apd.BigInt).And(&r.Coeff, new(apd.BigInt).SetUint64(math.MaxUint64)).Uint64()
	hi := new(apd.BigInt).Rsh(&r.Coeff, 64).Uint64()
	return Decimal128(decimal{hi: hi, lo: lo, exp: r.Exponent, neg: r.Negative}.encode())
}
