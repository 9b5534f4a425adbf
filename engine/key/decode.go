package key

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// ErrMalformed says that bytes are no key, or that a trailer is not the key's.
var ErrMalformed = errors.New("key: malformed")

// Decode appends to values the value of each field of the pattern, as a document with all of them had it; of a hashed field its
// hash. What follows the fields in entry, a record's number, is left alone. A missing field gives Missing.
func (p Pattern) Decode(values []bson.RawValue, entry, trailer []byte) ([]bson.RawValue, error) {
	d := Decoder{Pattern: p}
	found, err := d.Decode(entry, trailer)
	return append(values, found...), err
}

// FieldEnds appends the offset at which each field of entry ends.
func (p Pattern) FieldEnds(ends []int, entry []byte) ([]int, error) {
	var d decoder
	at := 0
	for _, f := range p.Fields {
		d.in, d.at, d.blind = entry[at:], 0, true
		if f.Kind == Descending {
			d.in = bytes.Clone(d.in)
			invert(d.in)
		}
		d.value(nil, 0)
		if d.bad {
			return ends, ErrMalformed
		}
		at += d.at
		ends = append(ends, at)
	}
	return ends, nil
}

type decoder struct {
	in      []byte
	at      int
	trailer []byte
	blind   bool // there is no trailer; only lengths matter
	bad     bool
}

// take is the next n bytes of the key; nil, and bad, if there are fewer.
func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || len(d.in)-d.at < n {
		d.bad = true
		return nil
	}
	d.at += n
	return d.in[d.at-n : d.at]
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// low is the next n bytes as a number, inverted if negative.
func (d *decoder) low(n int, negative bool) uint64 {
	var u uint64
	for _, c := range d.take(n) {
		if negative {
			c = ^c
		}
		u = u<<8 | uint64(c)
	}
	return u
}

// cstring is the bytes up to the next 00, which is passed.
func (d *decoder) cstring() []byte {
	i := -1
	if !d.bad {
		i = bytes.IndexByte(d.in[d.at:], 0)
	}
	if i < 0 {
		d.bad = true
		return nil
	}
	return d.take(i + 1)[:i]
}

// note is the trailer's next byte.
func (d *decoder) note() byte {
	if len(d.trailer) == 0 {
		return guess
	}
	c := d.trailer[0]
	d.trailer = d.trailer[1:]
	return c
}

// text appends a string of BSON: length, bytes, NUL.
func (d *decoder) text(b []byte) []byte {
	s := d.cstring()
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == 1 {
			if i++; i == len(s) || s[i] != 1 && s[i] != 2 {
				d.bad = true
				return b
			}
			c = s[i] - 1
		}
		b = append(b, c)
	}
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// value appends a value's BSON bytes to b. Nesting is bounded as it is in documents.
func (d *decoder) value(b []byte, depth int) (bson.Type, []byte) {
	if depth > value.DepthMax {
		d.bad = true
		return 0, b
	}
	tag := d.byte()
	if tagNaN <= tag && tag <= tagInf {
		return d.number(b, tag)
	}
	switch tag {
	case tagMinKey:
		return bson.TypeMinKey, b
	case tagMaxKey:
		return bson.TypeMaxKey, b
	case tagUndefined:
		return bson.TypeUndefined, b
	case tagNull:
		if d.note() == isMissing {
			return 0, b
		}
		return bson.TypeNull, b
	case tagString:
		t := bson.TypeString
		if d.note() == isSymbol {
			t = bson.TypeSymbol
		}
		return t, d.text(b)
	case tagCode:
		return bson.TypeJavaScript, d.text(b)
	case tagObject:
		return bson.TypeEmbeddedDocument, d.document(b, depth)
	case tagArray:
		return bson.TypeArray, d.array(b, depth)
	case tagBinary:
		n := int(d.byte())
		if n == binaryLong {
			n = int(d.low(4, false))
		}
		content := d.take(n + 1)
		return bson.TypeBinary, append(binary.LittleEndian.AppendUint32(b, uint32(n)), content...)
	case tagObjectID:
		return bson.TypeObjectID, append(b, d.take(12)...)
	case tagFalse, tagTrue:
		return bson.TypeBoolean, append(b, tag-tagFalse)
	case tagDate:
		return bson.TypeDateTime, binary.LittleEndian.AppendUint64(b, d.low(8, false)^1<<63)
	case tagTimestamp:
		return bson.TypeTimestamp, binary.LittleEndian.AppendUint64(b, d.low(8, false))
	case tagRegex:
		b = append(append(b, d.cstring()...), 0)
		return bson.TypeRegex, append(append(b, d.cstring()...), 0)
	case tagDBPointer:
		n := int(d.low(4, false))
		return bson.TypeDBPointer, append(binary.LittleEndian.AppendUint32(b, uint32(n)), d.take(n+12)...)
	case tagCodeScope:
		at := len(b)
		b = d.document(d.text(append(b, 0, 0, 0, 0)), depth)
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at))
		return bson.TypeCodeWithScope, b
	}
	d.bad = true
	return 0, b
}

func (d *decoder) document(b []byte, depth int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	for !d.bad && d.byte() != tagEnd {
		element := len(b)
		b = append(append(append(b, 0), d.cstring()...), 0)
		var t bson.Type
		t, b = d.value(b, depth+1)
		b[element] = byte(t)
	}
	return finish(b, at)
}

func (d *decoder) array(b []byte, depth int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	for n := int64(0); !d.bad; n++ {
		if d.at < len(d.in) && d.in[d.at] == tagEnd {
			d.at++
			break
		}
		element := len(b)
		b = append(strconv.AppendInt(append(b, 0), n, 10), 0)
		var t bson.Type
		t, b = d.value(b, depth+1)
		b[element] = byte(t)
	}
	return finish(b, at)
}

func finish(b []byte, at int) []byte {
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at))
	return b
}

// number appends a number's bytes.
func (d *decoder) number(b []byte, tag byte) (bson.Type, []byte) {
	x := d.exact(tag)
	if d.blind {
		return bson.TypeDouble, b
	}
	le := binary.LittleEndian
	switch note := d.note(); note {
	case guess: // the type that has no note
		if x.Kind != value.ExactZero && (x.Kind != value.ExactWhole || x.Frac != 0) {
			return bson.TypeDouble, le.AppendUint64(b, math.Float64bits(float(x)))
		}
		i := whole(x)
		if i == int64(int32(i)) {
			return bson.TypeInt32, le.AppendUint32(b, uint32(i))
		}
		return bson.TypeInt64, le.AppendUint64(b, uint64(i))
	case isInt64:
		return bson.TypeInt64, le.AppendUint64(b, uint64(whole(x)))
	case isDouble:
		return bson.TypeDouble, le.AppendUint64(b, math.Float64bits(float(x)))
	case isMinusZero:
		return bson.TypeDouble, le.AppendUint64(b, 1<<63)
	case isDecimal, isMinusZeroD:
		if len(d.trailer) < 2 {
			break
		}
		exponent := int(binary.BigEndian.Uint16(d.trailer)) - decimalBias
		d.trailer = d.trailer[2:]
		if v, ok := decimal(x, exponent, note == isMinusZeroD); ok {
			return v.Type, append(b, v.Value...)
		}
	}
	d.bad = true
	return 0, b
}

const decimalBias = 6176

func (d *decoder) exact(tag byte) value.Exact {
	var x value.Exact
	if tag == tagNaN {
		x.Kind = value.ExactNaN
		return x
	}
	if tag < tagZero {
		x.Neg, tag = true, tagNegate-tag
	}
	last := uint64(0)
	switch tag {
	case tagZero:
		return x
	case tagInf:
		x.Kind = value.ExactInf
		return x
	case tagSmall, tagLarge:
		last = d.low(8, x.Neg)
		x.Kind, x.Bits = value.ExactSmall, last>>1
		if tag == tagLarge {
			x.Kind = value.ExactLarge
		}
	default:
		w := d.low(int(tag-tagWhole), x.Neg)
		x.Kind, x.Whole = value.ExactWhole, w>>1
		if w&1 != 0 {
			last = d.low(7, x.Neg)
			x.Frac = last >> 1
		}
	}
	if last&1 != 0 {
		x.Rest = true
		x.Adjust = int32(d.low(2, x.Neg)) - digitsBias
		x.High, x.Low = d.low(7, x.Neg), d.low(8, x.Neg)
	}
	return x
}

func whole(x value.Exact) int64 {
	switch {
	case x.Kind == value.ExactLarge:
		return math.MinInt64
	case x.Neg:
		return -int64(x.Whole)
	}
	return int64(x.Whole)
}

func float(x value.Exact) float64 {
	f := math.Float64frombits(x.Bits)
	switch x.Kind {
	case value.ExactNaN:
		return math.NaN()
	case value.ExactInf:
		f = math.Inf(1)
	case value.ExactWhole:
		f = float64(x.Whole) + float64(x.Frac)/(1<<55)
	}
	if x.Neg {
		f = -f
	}
	return f
}

// decimal is x as a Decimal128 of this exponent, if it is one.
func decimal(x value.Exact, exponent int, minusZero bool) (bson.RawValue, bool) {
	switch x.Kind {
	case value.ExactNaN:
		return value.MustParse(`NumberDecimal("NaN")`), true
	case value.ExactInf:
		if x.Neg {
			return value.MustParse(`NumberDecimal("-Infinity")`), true
		}
		return value.MustParse(`NumberDecimal("Infinity")`), true
	}
	// The magnitude as a fraction, then times 10^-exponent, must come out whole.
	m := new(big.Rat)
	scale := -exponent
	switch {
	case x.Rest:
		n := new(big.Int).SetUint64(x.High)
		m.SetInt(n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(x.Low)))
		scale += int(x.Adjust) - 34
	case x.Kind == value.ExactWhole:
		n := new(big.Int).SetUint64(x.Whole)
		m.SetFrac(n.Or(n.Lsh(n, 55), new(big.Int).SetUint64(x.Frac)), new(big.Int).Lsh(big.NewInt(1), 55))
	default:
		m.SetFloat64(math.Float64frombits(x.Bits))
	}
	if m.Sign() != 0 {
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
		if scale >= 0 {
			m.Mul(m, new(big.Rat).SetInt(power))
		} else {
			m.Quo(m, new(big.Rat).SetInt(power))
		}
	}
	coefficient := m.Num()
	if !m.IsInt() || coefficient.BitLen() > 113 || exponent > 6111 {
		return value.Missing, false
	}
	low := new(big.Int).And(coefficient, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	high := new(big.Int).Rsh(coefficient, 64).Uint64() | uint64(exponent+decimalBias)<<49
	if x.Neg || minusZero {
		high |= 1 << 63
	}
	return value.Decimal128(bson.NewDecimal128(high, low)), true
}

// Decoder decodes one entry after the other in memory that it keeps.
type Decoder struct {
	Pattern Pattern

	values []bson.RawValue
	buf    []byte
	flip   []byte
}

// Decode is Pattern.Decode. The values are good until the next call.
func (r *Decoder) Decode(entry, trailer []byte) ([]bson.RawValue, error) {
	d := decoder{trailer: trailer}
	r.values, r.buf = r.values[:0], r.buf[:0]
	at := 0
	for _, f := range r.Pattern.Fields {
		d.in, d.at = entry[at:], 0
		if f.Kind == Descending {
			r.flip = append(r.flip[:0], d.in...)
			invert(r.flip)
			d.in = r.flip
		}
		from := len(r.buf)
		var t bson.Type
		t, r.buf = d.value(r.buf, 0)
		if d.bad {
			return nil, ErrMalformed
		}
		r.values = append(r.values, bson.RawValue{Type: t, Value: r.buf[from:len(r.buf):len(r.buf)]})
		at += d.at
	}
	return r.values, nil
}
