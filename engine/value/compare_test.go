package value_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/engine/value/generate"
)

func source(t *rapid.T) generate.Source {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

func TestOrderOfTypes(t *testing.T) {
	var list []bson.RawValue
	for _, s := range []string{
		"MinKey", "undefined", "null", "NaN", "-Infinity", `NumberDecimal("-1E+6144")`, "-1.7976931348623157e308", "NumberLong(-9223372036854775808)",
		"NumberLong(-9007199254740993)", "-9007199254740992.0", "-1.5", "-1", `NumberDecimal("-1E-6176")`, "0", `NumberDecimal("1E-6176")`, "5e-324",
		`NumberDecimal("0.1")`, "0.1", "1", "1.5", "9007199254740992.0", "NumberLong(9007199254740993)", "NumberLong(9223372036854775807)",
		"9223372036854775808.0", `NumberDecimal("9223372036854775809")`, "1.7976931348623157e308", `NumberDecimal("9E+6144")`, "Infinity",
		`""`, `"a"`, `"a\x00"`, `"ab"`, `Symbol("b")`, "{}", "{a: 1}", "{b: 1}", "{b: 1, a: 1}", `{a: "x"}`, "[]", "[null]", "[1]", "[1, 1]", "[2]", "[[]]",
		`BinData(0, "")`, `BinData(0, "AA==")`, `BinData(0, "AQ==")`, `BinData(4, "AA==")`, `BinData(0, "AAA=")`,
		`ObjectId("000000000000000000000000")`, `ObjectId("000000000000000000000001")`, "false", "true", "Date(-1)", "Date(0)", "Date(1)",
		"Timestamp(0, 1)", "Timestamp(1, 0)", "Timestamp(4294967295, 0)", "/a/", "/a/i", "/b/", `DBPointer("b", "000000000000000000000000")`,
		`DBPointer("aa", "000000000000000000000000")`, `Code("a")`, `Code("b")`, `Code("a", {})`, `Code("a", {a: 1})`, `Code("b", {})`, "MaxKey",
	} {
		list = append(list, value.MustParse(s))
	}
	for i, a := range list {
		for j, b := range list {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := value.Compare(a, b); got != want {
				t.Errorf("Compare(%s, %s) = %d, want %d", value.Text(a), value.Text(b), got, want)
			}
		}
	}
}

func TestEqualAcrossTypes(t *testing.T) {
	for _, pair := range [][2]string{
		{"1", "1.0"}, {"1", "NumberLong(1)"}, {"1", `NumberDecimal("1")`}, {"1", `NumberDecimal("1.000")`}, {"0",
			"-0.0"}, {"0", `NumberDecimal("-0E+10")`},
		{"NaN", `NumberDecimal("NaN")`}, {"Infinity", `NumberDecimal("Infinity")`}, {"-Infinity",
			`NumberDecimal("-Infinity")`}, {`"a"`, `Symbol("a")`},
		{"0.5", `NumberDecimal("0.5")`}, {"-9223372036854775808.0", "NumberLong(-9223372036854775808)"}, {"1e22", `NumberDecimal("1E+22")`},
		{"{a: 1, b: [2]}", "{a: 1.0, b: [NumberLong(2)]}"},
	} {
		a, b := value.MustParse(pair[0]), value.MustParse(pair[1])
		if !value.Equal(a, b) || value.Identical(a, b) || value.Hash(7, a) != value.Hash(7, b) {
			t.Errorf("%s and %s: Equal %v, Identical %v, hashes %x %x", pair[0], pair[1], value.Equal(a, b), value.Identical(a,
				b), value.Hash(7, a), value.Hash(7, b))
		}
	}
	if !value.Equal(value.Missing, value.MustParse("undefined")) || value.Compare(value.Missing, value.Null) >= 0 {
		t.Error("missing equals undefined and is below null")
	}
}

// exact is a number in unbounded arithmetic: its rank among NaN, -Inf, finite, +Inf, and its value.
func exact(t *testing.T, v bson.RawValue) (int, *big.Rat) {
	r := new(big.Rat)
	switch v.Type {
	case bson.TypeInt32:
		return 1, r.SetInt64(int64(v.Int32()))
	case bson.TypeInt64:
		return 1, r.SetInt64(v.Int64())
	case bson.TypeDouble:
		switch f := v.Double(); {
		case f != f:
			return -1, r
		case math.IsInf(f, 0):
			return 1 + int(math.Copysign(1, f)), r
		default:
			return 1, r.SetFloat64(f)
		}
	}
	d := v.Decimal128()
	if d.IsNaN() {
		return -1, r
	}
	if s := d.IsInf(); s != 0 {
		return 1 + s, r
	}
	i, exp, err := d.BigInt()
	if err != nil {
		t.Fatal(err)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
	if exp < 0 {
		return 1, r.SetFrac(i, power)
	}
	return 1, r.SetInt(i.Mul(i, power))
}

func TestNumbersCompareExactly(t *testing.T) {
	const rounds = 40000
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	s := generate.Source(r.IntN)
	for range rounds {
		a, b := s.Number(), s.Number()
		ra, xa := exact(t, a)
		rb, xb := exact(t, b)
		want := ra - rb
		if want == 0 {
			want = xa.Cmp(xb)
		}
		got := value.Compare(a, b)
		if sign(got) != sign(want) || value.Compare(b, a) != -got {
			t.Fatalf("seed %d: Compare(%s, %s) = %d, want %d", seed, value.Text(a), value.Text(b), got, want)
		}
		if ea, eb := value.ExactOf(a), value.ExactOf(b); (ea == eb) != (want == 0) {
			t.Fatalf("seed %d: Exact of %s and %s: %+v %+v", seed, value.Text(a), value.Text(b), ea, eb)
		}
	}
}

func sign(i int) int { return min(max(i, -1), 1) }

func TestOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := source(t)
		a, b, c := s.Value(3), s.Value(3), s.Value(3)
		ab, bc, ac := value.Compare(a, b), value.Compare(b, c), value.Compare(a, c)
		if value.Compare(b, a) != -ab {
			t.Fatalf("not antisymmetric: %s %s", value.Text(a), value.Text(b))
		}
		if ab <= 0 && bc <= 0 && ac > 0 || ab == 0 && bc == 0 && ac != 0 {
			t.Fatalf("not transitive: %s %s %s", value.Text(a), value.Text(b), value.Text(c))
		}
		if ab == 0 && value.Hash(1, a) != value.Hash(1, b) {
			t.Fatalf("equal but hashed apart: %s %s", value.Text(a), value.Text(b))
		}
	})
}

func TestTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value.Document(source(t).Document(3))
		w, err := value.Parse(value.Text(v))
		if err != nil {
			t.Fatal(err)
		}
		if value.Compare(v, w) != 0 || value.Text(w) != value.Text(v) {
			t.Fatalf("%s became %s", value.Text(v), value.Text(w))
		}
	})
}

func TestIndexHashIsMongoDBs(t *testing.T) {
	// The first is in MongoDB's manual of convertShardKeyToHashed.
	for s, want := range map[string]int64{"1": 5902408780260971510, "1.9": 5902408780260971510,
		`NumberDecimal("1.5")`: 5902408780260971510, "NumberLong(4)": 2433984061343616404} {
		if got := value.IndexHash(value.MustParse(s)); got != want {
			t.Errorf("IndexHash(%s) = %d, want %d", s, got, want)
		}
	}
}

var compared int

func BenchmarkCompare(b *testing.B) {
	for _, c := range [][3]string{
		{"int32", "1", "2"}, {"int64 double", "NumberLong(5)", "5.0"}, {"decimals", `NumberDecimal("1.50")`, `NumberDecimal("1.5")`},
		{"decimal double", `NumberDecimal("0.1")`, "0.1"}, {"strings", `"abcdefghijkl"`, `"abcdefghijkm"`},
		{"documents", `{a: 1, b: "x", c: [1, 2, 3]}`, `{a: 1, b: "x", c: [1, 2, 4]}`},
	} {
		x, y := value.MustParse(c[1]), value.MustParse(c[2])
		b.Run(c[0], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compared += value.Compare(x, y)
			}
		})
	}
}
