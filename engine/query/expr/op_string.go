package expr

import (
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

func callConcat(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	size := 0
	for _, v := range args {
		switch {
		case nullish(v):
			return value.Null, nil
		case !isString(v):
			return value.Missing, code(16702).Errorf("$concat only supports strings, not %s", typeName(v))
		}
		size += len(v.Value)
	}
	if size > sizeMax {
		return value.Missing, errTooLarge()
	}
	b := make([]byte, 0, size)
	for _, v := range args {
		b = append(b, value.StringBytes(v)...)
	}
	return value.String(string(b)), nil
}

// coerce is a value as the string operators of old take it: numbers and dates are written out, nullish is empty.
func coerce(op string, v bson.RawValue) (string, error) {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return "", nil
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return text(v), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeDateTime:
		return plainText(v), nil
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		return "Timestamp(" + itoa(int64(t)) + ", " + itoa(int64(i)) + ")", nil
	}
	return "", code(16007).Errorf("can't convert from BSON type %s to String in %s", typeName(v), op)
}

// ascii maps the letters of ASCII only, as MongoDB does.
func ascii(op string, low, high, shift byte) function {
	return func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		s, err := coerce(op, args[0])
		if err != nil {
			return value.Missing, err
		}
		b := []byte(s)
		for i, c := range b {
			if c >= low && c <= high {
				b[i] = c ^ shift
			}
		}
		return value.String(string(b)), nil
	}
}

var (
	callToLower = ascii("$toLower", 'A', 'Z', 0x20)
	callToUpper = ascii("$toUpper", 'a', 'z', 0x20)
)

func callStrcasecmp(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	a, err := callToUpper(c, args[:1])
	if err != nil {
		return a, err
	}
	b, err := callToUpper(c, args[1:])
	if err != nil {
		return b, err
	}
	return value.Int32(int32(strings.Compare(text(a), text(b)))), nil
}

func callStrLenBytes(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	if !isString(args[0]) {
		return value.Missing, code(34473).Errorf("$strLenBytes requires a string argument, found: %s", typeName(args[0]))
	}
	return value.Int32(int32(len(value.StringBytes(args[0])))), nil
}

func callStrLenCP(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	if !isString(args[0]) {
		return value.Missing, code(34471).Errorf("$strLenCP requires a string argument, found: %s", typeName(args[0]))
	}
	return value.Int32(int32(utf8.RuneCount(value.StringBytes(args[0])))), nil
}

func continuation(b byte) bool { return b&0xc0 == 0x80 }

func callSubstrBytes(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	s, err := coerce("$substrBytes", args[0])
	if err != nil {
		return value.Missing, err
	}
	if !isNumber(args[1]) {
		return value.Missing, code(16034).Errorf("$substrBytes: starting index must be a numeric type (is BSON type %s)",
			typeName(args[1]))
	}
	if !isNumber(args[2]) {
		return value.Missing, code(16035).Errorf("$substrBytes: length must be a numeric type (is BSON type %s)", typeName(args[2]))
	}
	start, length := value.TruncateInt64(args[1]), value.TruncateInt64(args[2])
	if start < 0 {
		return value.Missing, code(50752).Errorf("$substrBytes: starting index must be non-negative (got: %d)", start)
	}
	if start >= int64(len(s)) {
		return value.String(""), nil
	}
	end := int64(len(s))
	if length >= 0 && length < end-start {
		end = start + length
	}
	if continuation(s[start]) {
		return value.Missing, code(28656).Errorf("$substrBytes: invalid range, starting index is a UTF-8 continuation byte.")
	}
	if end < int64(len(s)) && continuation(s[end]) {
		return value.Missing, code(28657).Errorf("$substrBytes: invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return value.String(s[start:end]), nil
}

func callSubstrCP(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	s, err := coerce("$substrCP", args[0])
	if err != nil {
		return value.Missing, err
	}
	var n [2]int
	for i, name := range [2]string{"starting index", "length"} {
		v := args[1+i]
		if !isNumber(v) {
			return value.Missing, code(34450+2*i).Errorf("$substrCP: %s must be a numeric type (is BSON type %s)",
				name, typeName(v))
		}
		var ok bool
		if n[i], ok = asInt32(v); !ok {
			return value.Missing, code(34451+2*i).Errorf("$substrCP: %s must be a 32-bit integral value: %s",
				name, value.Brief(v, 100))
		}
	}
	if n[1] < 0 {
		return value.Missing, code(34454).Errorf("$substrCP: length must be a nonnegative integer.")
	}
	if n[0] < 0 {
		return value.Missing, code(34455).Errorf("$substrCP: the starting index must be nonnegative integer.")
	}
	return value.String(cutRunes(s, n[0], n[1])), nil
}

// cutRunes is n code points of s, beginning with number start.
func cutRunes(s string, start, n int) string {
	from, to, i := len(s), len(s), 0
	for at := range s {
		if i == start {
			from = at
		}
		if i == start+n {
			to = at
			break
		}
		i++
	}
	if n == 0 || from > to {
		return ""
	}
	return s[from:to]
}

func callIndexOfBytes(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	s, sub := args[0], args[1]
	switch {
	case nullish(s):
		return value.Null, nil
	case !isString(s):
		return value.Missing, code(40091).Errorf("$indexOfBytes requires a string as the first argument, found: %s", typeName(s))
	case !isString(sub):
		return value.Missing, code(40092).Errorf("$indexOfBytes requires a string as the second argument, found: %s", typeName(sub))
	}
	str := text(s)
	start, end, err := span("$indexOfBytes", args, len(str), 40096, 40097)
	if err != nil {
		return value.Missing, err
	}
	return value.Int32(int32(indexWithin(str, text(sub), start, end))), nil
}

func indexWithin(s, sub string, start, end int) int {
	if start > end || start > len(s) {
		return -1
	}
	if i := strings.Index(s[start:end], sub); i >= 0 {
		return start + i
	}
	return -1
}

func callIndexOfCP(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	s, sub := args[0], args[1]
	switch {
	case nullish(s):
		return value.Null, nil
	case !isString(s):
		return value.Missing, code(40093).Errorf("$indexOfCP requires a string as the first argument, found: %s", typeName(s))
	case !isString(sub):
		return value.Missing, code(40094).Errorf("$indexOfCP requires a string as the second argument, found: %s", typeName(sub))
	}
	str := text(s)
	n := utf8.RuneCountInString(str)
	start, end, err := span("$indexOfCP", args, n, 40096, 40097)
	if err != nil {
		return value.Missing, err
	}
	if start > end {
		return value.Int32(-1), nil
	}
	before := len(cutRunes(str, 0, start))
	i := strings.Index(cutRunes(str, start, end-start), text(sub))
	if i < 0 {
		return value.Int32(-1), nil
	}
	return value.Int32(int32(start + utf8.RuneCountInString(str[before:before+i]))), nil
}

func callSplit(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	s, separator := args[0], args[1]
	switch {
	case nullish(s, separator):
		return value.Null, nil
	case !isString(s):
		return value.Missing, code(40085).Errorf("$split requires an expression that evaluates to a string as a first argument, found: %s",
			typeName(s))
	case !isString(separator):
		return value.Missing, code(40086).Errorf("$split requires an expression that evaluates to a string as a second argument, found: %s",
			typeName(separator))
	case text(separator) == "":
		return value.Missing, code(40087).Errorf("$split requires a non-empty separator")
	}
	b := newArray()
	for part := range strings.SplitSeq(text(s), text(separator)) {
		b.add(value.String(part))
	}
	return b.done()
}

// whitespace is what $trim cuts off by default.
const whitespace = "\x00\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func parseTrim(p *parser, arg bson.RawValue) (node, error) { return p.trim("$trim", arg, strings.Trim) }

func parseLtrim(p *parser, arg bson.RawValue) (node, error) {
	return p.trim("$ltrim", arg, strings.TrimLeft)
}

func parseRtrim(p *parser, arg bson.RawValue) (node, error) {
	return p.trim("$rtrim", arg, strings.TrimRight)
}

func (p *parser) trim(op string, arg bson.RawValue, cut func(s, chars string) string) (node, error) {
	nodes, err := p.named(op, arg, 50696, 50694, 50695, []string{"input"}, []string{"chars"})
	if err != nil {
		return nil, err
	}
	if nodes[1] == nil {
		nodes[1] = literal{value.String(whitespace)}
	}
	return p.call(op, func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		s, chars := args[0], args[1]
		switch {
		case nullish(s):
			return value.Null, nil
		case !isString(s):
			return value.Missing, code(50699).Errorf("%s requires its input to be a string, got %s instead.", op, typeName(s))
		case nullish(chars):
			return value.Null, nil
		case !isString(chars):
			return value.Missing, code(50700).Errorf("%s requires 'chars' to be a string, got %s instead.", op, typeName(chars))
		}
		return value.String(cut(text(s), text(chars))), nil
	}, nodes...), nil
}

func parseReplaceOne(p *parser, arg bson.RawValue) (node, error) {
	return p.replace("$replaceOne", arg, 1)
}

func parseReplaceAll(p *parser, arg bson.RawValue) (node, error) {
	return p.replace("$replaceAll", arg, -1)
}

func (p *parser) replace(op string, arg bson.RawValue, n int) (node, error) {
	nodes, err := p.named(op, arg, 51751, 51750, 51749, []string{"input", "find", "replacement"}, nil)
	if err != nil {
		return nil, err
	}
	return p.call(op, func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		for i, name := range [...]string{"input", "find", "replacement"} {
			if v := args[i]; !nullish(v) && !isString(v) {
				return value.Missing, [...]code{51746, 51745, 51744}[i].Errorf("%s requires that '%s' be a string, found: %s",
					op, name, value.Brief(v, 100))
			}
		}
		if nullish(args...) {
			return value.Null, nil
		}
		s, find, replacement := text(args[0]), text(args[1]), text(args[2])
		if n < 0 && (strings.Count(s, find)+1)*len(replacement) > sizeMax {
			return value.Missing, errTooLarge()
		}
		return value.String(strings.Replace(s, find, replacement, n)), nil
	}, nodes...), nil
}

func callBinarySize(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch v := args[0]; v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return value.Null, nil
	case bson.TypeString:
		return value.Int32(int32(len(value.StringBytes(v)))), nil
	case bson.TypeBinary:
		return value.Int32(int32(len(v.Value) - 5)), nil
	default:
		return value.Missing, code(51276).Errorf("$binarySize requires a string or BinData argument, found: %s", typeName(v))
	}
}

func callBsonSize(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch v := args[0]; {
	case nullish(v):
		return value.Null, nil
	case !isDocument(v):
		return value.Missing, code(31393).Errorf("$bsonSize requires a document input, found: %s", typeName(v))
	default:
		return value.Int32(int32(len(v.Value))), nil
	}
}

func callToHashedIndexKey(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	v := args[0]
	if v.Type == 0 {
		v = value.Null
	}
	return value.Int64(value.IndexHash(v)), nil
}
