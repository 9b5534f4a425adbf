package value

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// decimal is a Decimal128 taken apart: ±(hi·2^64 + lo)·10^exp. Encodings of coefficients that need more than 34 digits are
// zeros, as IEEE 754 says of them.
type decimal struct {
	hi, lo uint64
	exp    int32
	neg    bool
	kind   decimalKind
}

type decimalKind uint8

const (
	decimalFinite decimalKind = iota
	decimalInf
	decimalNaN
)

const (
	decimalDigits = 34
	decimalBias   = 6176
	decimalExpMax = 6111
	decimalExpMin = -decimalBias
)

// u128 is an unsigned number of 128 bits.
type u128 struct{ hi, lo uint64 }

func (a u128) less(b u128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a u128) sub(b u128) u128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return u128{hi, lo}
}

// mul is a·b, which the caller knows to fit.
func (a u128) mul(b u128) u128 {
	hi, lo := bits.Mul64(a.lo, b.lo)
	return u128{hi + a.lo*b.hi + a.hi*b.lo, lo}
}

// div64 is a/b.
func (a u128) div64(b uint64) u128 {
	hi, r := a.hi/b, a.hi%b
	lo, _ := bits.Div64(r, a.lo, b)
	return u128{hi, lo}
}

// pow10 are the powers of ten that fit 128 bits.
var pow10 = func() (p [39]u128) {
	p[0] = u128{0, 1}
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1].mul(u128{0, 10})
	}
	return p
}()

// digits is the number of decimal digits of a; 0 has none.
func (a u128) digits() int32 {
	n := bits.Len64(a.lo)
	if a.hi != 0 {
		n = 64 + bits.Len64(a.hi)
	}
	d := n * 1233 >> 12 // n·log10(2), rounded down; off by one at most
	if d < len(pow10) && !a.less(pow10[d]) {
		d++
	}
	return int32(d)
}

func decodeDecimal(b []byte) decimal {
	l, h := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	d := decimal{neg: h>>63 != 0}
	switch h >> 58 & 0x1f {
	case 0x1f:
		return decimal{kind: decimalNaN}
	case 0x1e:
		d.kind = decimalInf
		return d
	}
	if h>>61&3 == 3 {
		d.exp = int32(h>>47&0x3fff) - decimalBias
		return d
	}
	d.exp = int32(h>>49&0x3fff) - decimalBias
	if c := (u128{h & (1<<49 - 1), l}); c.less(pow10[decimalDigits]) {
		d.hi, d.lo = c.hi, c.lo
	}
	return d
}

func decimalOfInt(i int64) decimal {
	if i < 0 {
		return decimal{neg: true, lo: -uint64(i)}
	}
	return decimal{lo: uint64(i)}
}

func (d decimal) coef() u128 { return u128{d.hi, d.lo} }

func (d decimal) isZero() bool { return d.hi|d.lo == 0 }

// normal is the magnitude of a finite number that is not zero as 0.ddd…·10^adj, with the 34 digits as a whole number.
func (d decimal) normal() (adj int32, c u128) {
	n := d.coef().digits()
	return n + d.exp, d.coef().mul(pow10[decimalDigits-n])
}

// compareMagnitude orders finite numbers without their signs.
func (d decimal) compareMagnitude(e decimal) int {
	switch dz, ez := d.isZero(), e.isZero(); {
	case dz && ez:
		return 0
	case dz:
		return -1
	case ez:
		return 1
	}
	da, dc := d.normal()
	ea, ec := e.normal()
	switch {
	case da != ea:
		return cmp(da, ea)
	case dc.hi != ec.hi:
		return cmp(dc.hi, ec.hi)
	}
	return cmp(dc.lo, ec.lo)
}

// float is the magnitude of a finite number cut down to a double, the largest finite one if it is beyond, and whether nothing
// was cut. The work is bounded: magnitudes that no double comes near are answered by their exponent alone.
func (d decimal) float() (f float64, exact bool) {
	if d.isZero() {
		return 0, true
	}
	adj, _ := d.normal()
	switch {
	case adj > 310:
		return math.MaxFloat64, false
	case adj < -330:
		return 0, false
	case d.hi == 0 && d.lo < 1<<53 && d.exp == 0:
		return float64(d.lo), true
	}
	num := new(big.Int).SetUint64(d.hi)
	num.Or(num.Lsh(num, 64), new(big.Int).SetUint64(d.lo))
	den := big.NewInt(1)
	power := new(big.Int)
	if d.exp >= 0 {
		num.Mul(num, power.Exp(big.NewInt(10), big.NewInt(int64(d.exp)), nil))
	} else {
		den.Exp(big.NewInt(10), big.NewInt(int64(-d.exp)), nil)
	}
	// q·2^-s with at least 64 bits in q.
	s := max(0, 64+den.BitLen()-num.BitLen())
	q, r := new(big.Int).QuoRem(num.Lsh(num, uint(s)), den, new(big.Int))
	n := q.BitLen()
	top := n - s - 1 // the magnitude is in [2^top, 2^(top+1))
	if top > 1023 {
		return math.MaxFloat64, false
	}
	keep := 53
	if top < -1022 {
		keep -= -1022 - top
	}
	if keep <= 0 {
		return 0, false
	}
	drop := n - keep
	exact = r.Sign() == 0 && int(q.TrailingZeroBits()) >= drop
	return math.Ldexp(float64(q.Rsh(q, uint(drop)).Uint64()), drop-s), exact
}

// cut splits the magnitude of a finite number below 2^63 into its whole part and the first 55 bits of its fraction; exact says
// that there is no more. ok is false for a larger number.
func (d decimal) cut() (whole, frac uint64, exact, ok bool) {
	c := d.coef()
	n := c.digits() + d.exp
	switch {
	case n > 19:
		return 0, 0, false, false
	case d.exp >= 0:
		c = c.mul(pow10[d.exp])
		return c.lo, 0, true, c.hi == 0 && c.lo < 1<<63
	case n <= 0: // below one: the callers ask only for the rest
		return 0, 0, false, true
	}
	// n > 0 and at most 34 digits, so the divisor is below 10^34.
	k := -d.exp
	unit := pow10[k]
	var q u128
	if k <= 19 {
		q = c.div64(unit.lo)
	} else {
		q = c.div64(pow10[19].lo).div64(pow10[k-19].lo)
	}
	if q.hi != 0 || q.lo >= 1<<63 {
		return 0, 0, false, false
	}
	r := c.sub(q.mul(unit))
	for range 55 {
		r = u128{r.hi<<1 | r.lo>>63, r.lo << 1}
		frac <<= 1
		if !r.less(unit) {
			r = r.sub(unit)
			frac |= 1
		}
	}
	return q.lo, frac, r == u128{}, true
}

// encode is the BSON form of d. The coefficient has at most 34 digits, the exponent is in range.
func (d decimal) encode() bson.Decimal128 {
	var sign uint64
	if d.neg {
		sign = 1 << 63
	}
	switch d.kind {
	case decimalNaN:
		return bson.NewDecimal128(0x1f<<58, 0)
	case decimalInf:
		return bson.NewDecimal128(sign|0x1e<<58, 0)
	}
	return bson.NewDecimal128(sign|uint64(d.exp+decimalBias)<<49|d.hi, d.lo)
}
