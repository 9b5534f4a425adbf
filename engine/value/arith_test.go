package value_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func TestArithmetic(t *testing.T) {
	for _, c := range [][5]string{
		{"1", "+", "2", "3"},
		{"2147483647", "+", "1", "NumberLong(2147483648)"},
		{"-2147483648", "+", "-1", "NumberLong(-2147483649)"},
		{"NumberLong(1)", "+", "1", "NumberLong(2)"},
		{"NumberLong(9223372036854775807)", "+", "1", "overflow"},
		{"NumberLong(-9223372036854775808)", "+", "-1", "overflow"},
		{"NumberLong(9223372036854775807)", "+", "NumberLong(-9223372036854775808)", "NumberLong(-1)"},
		{"NumberLong(9223372036854775807)", "+", "1.0", "9.223372036854775807e18"},
		{"1", "+", "0.5", "1.5"},
		{`NumberDecimal("1.10")`, "+", "1", `NumberDecimal("2.10")`},
		{`NumberDecimal("1")`, "+", "0.1", `NumberDecimal("1.100000000000000")`},
		{`NumberDecimal("9.999999999999999999999999999999999E+6144")`, "+", `NumberDecimal("1E+6144")`, `NumberDecimal("Infinity")`},
		{`NumberDecimal("1E+6144")`, "+", `NumberDecimal("1E-6176")`, `NumberDecimal("1.000000000000000000000000000000000E+6144")`},
		{`NumberDecimal("Infinity")`, "+", `NumberDecimal("-Infinity")`, `NumberDecimal("NaN")`},
		{`NumberDecimal("NaN")`, "+", "1", `NumberDecimal("NaN")`},
		{"3", "*", "-4", "-12"},
		{"65536", "*", "65536", "NumberLong(4294967296)"},
		{"NumberLong(4294967296)", "*", "NumberLong(2147483648)", "overflow"},
		{"NumberLong(-4294967296)", "*", "NumberLong(2147483648)", "NumberLong(-9223372036854775808)"},
		{"NumberLong(-9223372036854775808)", "*", "-1", "overflow"},
		{"0", "*", "-1", "0"},
		{"2", "*", "0.25", "0.5"},
		{`NumberDecimal("1.50")`, "*", "2", `NumberDecimal("3.00")`},
		{`NumberDecimal("1E-6176")`, "*", `NumberDecimal("0.1")`, `NumberDecimal("0E-6176")`},
		{`NumberDecimal("1E+6111")`, "*", `NumberDecimal("1E+30")`, `NumberDecimal("1.000000000000000000000000000000E+6141")`},
		{`NumberDecimal("1E+6111")`, "*", `NumberDecimal("1E+34")`, `NumberDecimal("Infinity")`},
		{`NumberDecimal("3333333333333333333333333333333333")`, "*", "3.0", `NumberDecimal("9.999999999999999999999999999999999E+33")`},
	} {
		f := value.Add
		if c[1] == "*" {
			f = value.Multiply
		}
		a, b := value.MustParse(c[0]), value.MustParse(c[2])
		for range 2 {
			got := "overflow"
			if r, ok := f(a, b); ok {
				got = value.Text(r)
			}
			if want := value.MustParse; c[3] != got && (c[3] == "overflow" || got == "overflow" || value.Text(want(c[3])) != got) {
				t.Errorf("%s %s %s = %s, want %s", value.Text(a), c[1], value.Text(b), got, c[3])
			}
			a, b = b, a
		}
	}
}

func TestDecimalsConvertBothWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := source(t).Number()
		if back := value.OfDecimal(value.AsDecimal(v)); v.Type != bson.TypeDouble && value.Compare(v, back) != 0 {
			t.Fatalf("%s became %s", value.Text(v), value.Text(back))
		} else if v.Type == bson.TypeDecimal128 && value.Text(v) != value.Text(back) {
			t.Fatalf("%s became %s", value.Text(v), value.Text(back))
		}
		i, ok := value.AsInt64(v)
		if ok != value.Equal(v, value.Int64(value.TruncateInt64(v))) || ok && i != value.TruncateInt64(v) {
			t.Fatalf("%s as int64: %d, %v", value.Text(v), i, ok)
		}
	})
}

func nested(levels int) bson.Raw {
	doc := []byte{5, 0, 0, 0, 0}
	for range levels - 1 {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(doc)+8))
		doc = append(append(append(b, 3, 'a', 0), doc...), 0)
	}
	return doc
}

func TestValidate(t *testing.T) {
	if err := value.Validate(nested(value.DepthMax)); err != nil {
		t.Error(err)
	}
	if err := value.Validate(nested(value.DepthMax + 1)); !mongoerr.Is(err, mongoerr.Overflow) {
		t.Errorf("too deep: %v", err)
	}
	if err := value.Validate(make([]byte, value.SizeMax+1)); !mongoerr.Is(err, mongoerr.BSONObjectTooLarge) {
		t.Errorf("too large: %v", err)
	}
	good := value.MustParseDocument(`{a: "x", b: true, c: Code("y", {z: 1}), d: DBPointer("n", "000000000000000000000000"), e: /a/i, a: [1]}`)
	if err := value.Validate(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []bson.Raw{
		nil, {}, {5, 0, 0, 0}, {5, 0, 0, 0, 1}, {6, 0, 0, 0, 0}, {4, 0, 0, 0, 0}, {255, 255, 255, 255, 0},
		bytes.Replace(good, []byte{8, 'b', 0, 1}, []byte{8, 'b', 0, 2}, 1),
		bytes.Replace(good, []byte("x\x00"), []byte("xx"), 1),
		bytes.Replace(good, []byte("x"), []byte("\xff"), 1),
		bytes.Replace(good, []byte("\x08b"), []byte("\x08\xff"), 1),
		bytes.Replace(good, []byte("\x08b"), []byte("\x20b"), 1),
	} {
		if err := value.Validate(bad); !mongoerr.Is(err, mongoerr.InvalidBSON) {
			t.Errorf("% x: %v", []byte(bad), err)
		}
	}
	// Whatever one byte of damage does, nothing panics, neither here nor in what walks over it.
	for i := range good {
		for _, x := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			doc := bytes.Clone(good)
			doc[i] = x
			if value.Validate(doc) == nil {
				if v := value.Document(doc); value.Compare(v, v) != 0 || value.Text(v) == "" {
					t.Fatalf("% x", doc)
				}
			}
		}
	}
}
