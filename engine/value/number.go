package value

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ExactKind classifies a number by what its Exact holds.
type ExactKind uint8

const (
	ExactZero  ExactKind = iota
	ExactSmall           // magnitude in (0, 1)
	ExactWhole           // magnitude in [1, 2^63)
	ExactLarge           // magnitude of 2^63 and more
	ExactInf
	ExactNaN
)

// Exact is a number freed of its type: two numbers of any types are equal if and only if their Exacts are. It is laid out so
// that comparing field by field, in the order Kind, Whole, Frac, Bits, Rest, Adjust, High, Low, orders magnitudes.
//
// A whole part below 2^63 and 55 bits of fraction hold every int64 but -2^63 (which is Large, and a double) and every double in
// [1, 2^63), since such a double has at most 52 bits of fraction. Other magnitudes are held as a double, cut off. Only a
// Decimal128 can have more to say than that: then Rest is true, and the whole magnitude is 0.ddd…·10^Adjust with the 34 digits
// in High and Low.
type Exact struct {
	Kind  ExactKind
	Neg   bool // never for zero and NaN
	Rest  bool
	Whole uint64 // ExactWhole: the whole part
	Frac  uint64 // ExactWhole: the first 55 bits of the fraction
	Bits  uint64 // ExactSmall, ExactLarge: the bits of the magnitude cut down to a double

	Adjust    int32
	High, Low uint64
}

// ExactOf is the number v without its type. v must be a number.
func ExactOf(v bson.RawValue) Exact {
	switch v.Type {
	case bson.TypeInt32:
		return exactOfInt(int64(int32(binary.LittleEndian.Uint32(v.Value))))
	case bson.TypeInt64:
		return exactOfInt(int64(binary.LittleEndian.Uint64(v.Value)))
	case bson.TypeDouble:
		return exactOfFloat(math.Float64frombits(binary.LittleEndian.Uint64(v.Value)))
	}
	return exactOfDecimal(decodeDecimal(v.Value))
}

func exactOfInt(i int64) Exact {
	switch {
	case i == 0:
		return Exact{}
	case i > 0:
		return Exact{Kind: ExactWhole, Whole: uint64(i)}
	case i == math.MinInt64:
		return exactOfFloat(math.MinInt64)
	}
	return Exact{Kind: ExactWhole, Neg: true, Whole: uint64(-i)}
}

func exactOfFloat(f float64) Exact {
	x := Exact{Neg: f < 0}
	m := math.Abs(f)
	switch {
	case f != f:
		x.Kind = ExactNaN
	case m == 0:
	case m > math.MaxFloat64:
		x.Kind = ExactInf
	case m < 1:
		x.Kind, x.Bits = ExactSmall, math.Float64bits(m)
	case m < 1<<63:
		x.Kind, x.Whole = ExactWhole, uint64(m)
		x.Frac = uint64((m - float64(x.Whole)) * (1 << 55))
	default:
		x.Kind, x.Bits = ExactLarge, math.Float64bits(m)
	}
	return x
}

func exactOfDecimal(d decimal) Exact {
	switch {
	case d.kind == decimalNaN:
		return Exact{Kind: ExactNaN}
	case d.kind == decimalInf:
		return Exact{Kind: ExactInf, Neg: d.neg}
	case d.isZero():
		return Exact{}
	}
	x := Exact{Neg: d.neg}
	whole, frac, exact, ok := d.cut()
	if ok && whole > 0 {
		x.Kind, x.Whole, x.Frac, x.Rest = ExactWhole, whole, frac, !exact
	} else {
		f, exact := d.float()
		x.Kind, x.Bits, x.Rest = ExactSmall, math.Float64bits(f), !exact
		if !ok {
			x.Kind = ExactLarge
		}
	}
	if x.Rest {
		adj, c := d.normal()
		x.Adjust, x.High, x.Low = adj, c.hi, c.lo
	}
	return x
}

// compareNumbers orders two numbers by their exact values.
func compareNumbers(ta bson.Type, a []byte, tb bson.Type, b []byte) int {
	switch ta {
	case bson.TypeDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(a))
		switch tb {
		case bson.TypeDouble:
			return compareFloats(f, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case bson.TypeDecimal128:
			return -compareDecimalFloat(decodeDecimal(b), f)
		}
		return -compareIntFloat(readInt(tb, b), f)
	case bson.TypeDecimal128:
		d := decodeDecimal(a)
		switch tb {
		case bson.TypeDouble:
			return compareDecimalFloat(d, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case bson.TypeDecimal128:
			return compareDecimals(d, decodeDecimal(b))
		}
		return compareDecimals(d, decimalOfInt(readInt(tb, b)))
	}
	i := readInt(ta, a)
	switch tb {
	case bson.TypeDouble:
		return compareIntFloat(i, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case bson.TypeDecimal128:
		return compareDecimals(decimalOfInt(i), decodeDecimal(b))
	}
	return cmp(i, readInt(tb, b))
}

func readInt(t bson.Type, b []byte) int64 {
	if t == bson.TypeInt32 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func cmp[T int32 | uint32 | int64 | uint64 | Rank | int | byte](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	// At least one is NaN, which is below all else.
	switch an, bn := a != a, b != b; {
	case an && bn:
		return 0
	case an:
		return -1
	}
	return 1
}

func compareIntFloat(i int64, f float64) int {
	switch {
	case f != f:
		return 1
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := int64(f)
	if i != whole {
		return cmp(i, whole)
	}
	// The fraction decides. A double with one is below 2^53, so the conversion back is exact.
	return compareFloats(0, f-float64(whole))
}

func compareDecimals(a, b decimal) int {
	switch {
	case a.kind == decimalNaN || b.kind == decimalNaN:
		return -cmp(int(a.kind/decimalNaN), int(b.kind/decimalNaN))
	}
	as, bs := a.sign(), b.sign()
	switch {
	case as != bs:
		return cmp(as, bs)
	case as == 0:
		return 0
	case a.kind == decimalInf || b.kind == decimalInf:
		return as * cmp(int(a.kind), int(b.kind))
	}
	return as * a.compareMagnitude(b)
}

func (d decimal) sign() int {
	switch {
	case d.kind == decimalFinite && d.isZero():
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func compareDecimalFloat(d decimal, f float64) int {
	switch {
	case d.kind == decimalNaN || f != f:
		dn, fn := 0, 0
		if d.kind == decimalNaN {
			dn = 1
		}
		if f != f {
			fn = 1
		}
		return cmp(fn, dn)
	case f > math.MaxFloat64:
		if d.kind == decimalInf && !d.neg {
			return 0
		}
		return -1
	case f < -math.MaxFloat64:
		if d.kind == decimalInf && d.neg {
			return 0
		}
		return 1
	}
	ds, fs := d.sign(), compareFloats(f, 0)
	switch {
	case ds != fs:
		return cmp(ds, fs)
	case ds == 0:
		return 0
	case d.kind == decimalInf:
		return ds
	}
	m, exact := d.float()
	c := compareFloats(m, math.Abs(f))
	if c == 0 && !exact {
		c = 1
	}
	return ds * c
}
