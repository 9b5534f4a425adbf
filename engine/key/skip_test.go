package key

import (
	"testing"

	"github.com/multiforadb/multiforadb/engine/value"
)

func TestFieldLenFindsTheEndOfEveryType(t *testing.T) {
	for _, text := range []string{
		`MinKey`, `undefined`, `null`, `NaN`, `-Infinity`, `Infinity`, `0`, `1`, `-1`, `255`, `-256`, `65536`, `NumberLong("9223372036854775807")`,
		`NumberLong("-9223372036854775808")`, `0.1`, `-0.1`, `1.5`, `-1.5`, `1e300`, `-1e300`, `1e-300`, `NumberDecimal("0.1")`, `NumberDecimal("-0.1")`,
		`NumberDecimal("1.1")`, `NumberDecimal("-123456789012345678.123")`, `NumberDecimal("1E+6000")`, `NumberDecimal("-1E-6000")`,
		`"" `, `"abc"`, `"a\u0000b\u0001c"`, `{}`, `{a: 1}`, `{a: {b: [1, {c: "x"}]}, d: null}`, `[]`, `[1, [2, ["x"]], {}]`,
		`ObjectId("0123456789abcdef01234567")`, `true`, `false`, `/ab/i`, `MaxKey`, `Timestamp(1, 2)`,
	} {
		v, err := value.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, kind := range []Kind{Ascending, Descending} {
			k := Pattern{Fields: []Field{{Kind: kind}}}.AppendField(nil, 0, v)
			if n := FieldLen(append(k[:len(k):len(k)], 0x18, 0, 0xff, 1, 0x40), kind == Descending); n != len(k) {
				t.Errorf("%s, kind %d: %d of %d bytes", text, kind, n, len(k))
			}
			for n := range k {
				if FieldLen(k[:n], kind == Descending) == n && n > 0 {
					t.Errorf("%s, kind %d: cut to %d bytes it is whole", text, kind, n)
				}
			}
		}
	}
}
