// Package generate makes BSON values for properties and fuzz targets: few names and few values, close to each other and to every
// edge, so that equal, nearly equal and nested values are common. All choices come from one function, which may draw from rapid,
// from a seeded source, or from a fuzzer's bytes. Only tests import it.
package generate

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Source chooses a number in [0, n).
type Source func(n int) int

// Bytes is a source that reads data; beyond its end every choice is 0.
func Bytes(data []byte) Source {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		c := int(data[0])
		data = data[1:]
		if n > 256 && len(data) > 0 {
			c |= int(data[0]) << 8
			data = data[1:]
		}
		return c % n
	}
}

func pick[T any](s Source, from ...T) T { return from[s(len(from))] }

// Value is a value of any type, with at most depth levels of documents and arrays in it.
func (s Source) Value(depth int) bson.RawValue {
	n := 24
	if depth <= 0 {
		n = 18
	}
	switch s(n) {
	default: // 0 to 5
		return s.Number()
	case 6:
		return bson.RawValue{Type: bson.TypeMinKey}
	case 7:
		return bson.RawValue{Type: bson.TypeMaxKey}
	case 8:
		return value.Null
	case 9:
		return bson.RawValue{Type: bson.TypeUndefined}
	case 10:
		v := value.String(s.Text())
		v.Type = pick(s, bson.TypeString, bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript)
		return v
	case 11:
		return value.Bool(s(2) == 1)
	case 12:
		return value.ObjectID(bson.ObjectID{0: byte(s(2)) * 0xff, 11: byte(s(3))})
	case 13:
		return value.Date(pick(s, 0, 1, -1, math.MinInt64, math.MaxInt64, int64(s(256))))
	case 14:
		return value.Timestamp(pick[uint32](s, 0, 1, math.MaxUint32), pick[uint32](s, 0, 1, math.MaxUint32))
	case 15:
		data := make([]byte, pick(s, 0, 1, 2, 254, 255, 256, 300))
		for i := range min(len(data), 2) {
			data[i] = byte(pick(s, 0, 1, 0xff))
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(data)))
		return bson.RawValue{Type: bson.TypeBinary, Value: append(append(b, byte(pick(s, 0, 2, 4, 0x80))), data...)}
	case 16:
		return bson.RawValue{Type: bson.TypeRegex, Value: []byte(pick(s, "\x00\x00", "a\x00\x00", "a\x00i\x00", "a\x01\x00m\x00", "ab\x00\x00"))}
	case 17:
		id := [12]byte{11: byte(s(2))}
		return bson.RawValue{Type: bson.TypeDBPointer, Value: append(value.String(s.Text()).Value, id[:]...)}
	case 18, 19:
		return value.Document(s.Document(depth - 1))
	case 20, 21, 22:
		return s.Array(depth - 1)
	case 23:
		code, scope := value.String(s.Text()).Value, s.Document(depth-1)
		b := binary.LittleEndian.AppendUint32(nil, uint32(4+len(code)+len(scope)))
		return bson.RawValue{Type: bson.TypeCodeWithScope, Value: append(append(b, code...), scope...)}
	}
}

// Text is a short string; NULs occur.
func (s Source) Text() string {
	b := make([]byte, 0, 4)
	for range s(4) {
		b = append(b, pick(s, "a", "b", "\x00", "\x01", "\x02", "\x7f", "é", "\U0010ffff")...)
	}
	return string(b)
}

// Name is a field name. Digits are among them.
func (s Source) Name() string { return pick(s, "a", "b", "c", "ab", "0", "1", "", "\x01") }

// Document has up to three fields; names may repeat.
func (s Source) Document(depth int) bson.Raw {
	b := []byte{0, 0, 0, 0}
	for range s(4) {
		v := s.Value(depth)
		b = append(append(append(append(b, byte(v.Type)), s.Name()...), 0), v.Value...)
	}
	return finish(b)
}

// Array has up to three elements.
func (s Source) Array(depth int) bson.RawValue {
	b := []byte{0, 0, 0, 0}
	for i := range s(4) {
		v := s.Value(depth)
		b = append(append(append(append(b, byte(v.Type)), strconv.Itoa(i)...), 0), v.Value...)
	}
	return value.Array(finish(b))
}

func finish(b []byte) []byte {
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// Number is a number of any type at or beside an edge, or small, or anything.
func (s Source) Number() bson.RawValue {
	switch s(4) {
	case 0:
		return s.Cast(float64(s(7)-3) + pick(s, 0, 0, 0.5, 0.1, 0.25))
	case 1:
		i := pick[int64](s, 1<<53, 1<<62, math.MaxInt64, math.MinInt64, 1<<31, 1e15, 1e18) + int64(s(5)-2)
		return pick(s, value.Int64(i), value.Int64(-i), value.Double(float64(i)), decimalOf(strconv.FormatInt(i, 10)))
	case 2:
		f := pick(s, 0, math.Copysign(0, -1), 0.1, 1.0/3, 1e23, 5e-324, math.MaxFloat64, 1<<63, 1<<64, 1e300, 2.2250738585072014e-308,
			math.Inf(1), math.NaN(), 9007199254740993, math.Float64frombits(uint64(s(1<<16))<<48|uint64(s(1<<16))))
		if s(2) == 0 {
			f = -f
		}
		return s.Cast(f)
	}
	digits := pick(s, "0", "1", "10", "1000", "9999999999999999999999999999999999", "1000000000000000000000000000000001", "12345678901234567890",
		"9223372036854775807", "9223372036854775808", "1000000000000000055511151231257827", "99999999999999991611392", strconv.Itoa(s(1<<16)))
	exponent := pick(s, 0, 0, -1, 1, -2, -17, -18, -19, -33, -34, 3, 19, 20, 275, 308, 309, -324, -357, 6111, 6000, -6176, s(1<<10)-512)
	return decimalOf(pick(s, "", "-") + digits + "E" + strconv.Itoa(exponent))
}

// Cast is f in a type that holds it or nearly does: its double, the double beside it, the integer, a decimal with all or with few
// of its digits.
func (s Source) Cast(f float64) bson.RawValue {
	whole := f == math.Trunc(f) && math.Abs(f) < 1<<62
	switch s(6) {
	case 0:
		if whole && math.Abs(f) < 1<<31 {
			return value.Int32(int32(f))
		}
	case 1:
		if whole {
			return value.Int64(int64(f) + int64(s(3)-1))
		}
	case 2:
		return value.Double(math.Nextafter(f, pick(s, math.Inf(1), math.Inf(-1))))
	case 3:
		return decimalOf(strconv.FormatFloat(f, 'e', pick(s, 0, 1, 14, 16), 64))
	case 4:
		if f == f && !math.IsInf(f, 0) {
			return decimalOf(new(big.Float).SetFloat64(f).Text('e', 33))
		}
		return decimalOf(strconv.FormatFloat(f, 'e', -1, 64))
	}
	return value.Double(f)
}

func decimalOf(text string) bson.RawValue {
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		d, _ = bson.ParseDecimal128("Infinity") // beyond all exponents
	}
	return value.Decimal128(d)
}
