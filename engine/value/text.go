package value

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Text writes v as the MongoDB shell would, for messages and scripts: 1 is an int32, 1.0 a double, NumberLong(1) an int64;
// names that are words stand bare. Parse reads it back.
func Text(v bson.RawValue) string { return string(appendText(nil, v)) }

// Brief is Text cut to at most n bytes, for messages that quote what a client sent.
func Brief(v bson.RawValue, n int) string {
	s := Text(v)
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "..."
}

func appendText(b []byte, v bson.RawValue) []byte {
	switch v.Type {
	case 0:
		return append(b, "missing"...)
	case bson.TypeMinKey:
		return append(b, "MinKey"...)
	case bson.TypeMaxKey:
		return append(b, "MaxKey"...)
	case bson.TypeUndefined:
		return append(b, "undefined"...)
	case bson.TypeNull:
		return append(b, "null"...)
	case bson.TypeBoolean:
		return strconv.AppendBool(b, v.Value[0] != 0)
	case bson.TypeInt32:
		return strconv.AppendInt(b, readInt(v.Type, v.Value), 10)
	case bson.TypeInt64:
		b = append(b, "NumberLong("...)
		return append(strconv.AppendInt(b, readInt(v.Type, v.Value), 10), ')')
	case bson.TypeDouble:
		return appendDouble(b, AsDouble(v))
	case bson.TypeDecimal128:
		b = append(b, "NumberDecimal("...)
		return append(strconv.AppendQuote(b, decodeDecimal(v.Value).encode().String()), ')')
	case bson.TypeString:
		return strconv.AppendQuote(b, string(text(v.Value)))
	case bson.TypeSymbol:
		return append(strconv.AppendQuote(append(b, "Symbol("...), string(text(v.Value))), ')')
	case bson.TypeJavaScript:
		return append(strconv.AppendQuote(append(b, "Code("...), string(text(v.Value))), ')')
	case bson.TypeCodeWithScope:
		code, scope := codeWithScope(v.Value)
		b = strconv.AppendQuote(append(b, "Code("...), string(code))
		return append(appendElements(append(b, ", "...), scope, true), ')')
	case bson.TypeEmbeddedDocument:
		return appendElements(b, v.Value, true)
	case bson.TypeArray:
		return appendElements(b, v.Value, false)
	case bson.TypeObjectID:
		return append(hex.AppendEncode(append(b, `ObjectId("`...), v.Value), `")`...)
	case bson.TypeDateTime:
		ms := readInt(bson.TypeInt64, v.Value)
		t := time.UnixMilli(ms).UTC()
		if y := t.Year(); y < 0 || y > 9999 {
			return append(strconv.AppendInt(append(b, "Date("...), ms, 10), ')')
		}
		return append(t.AppendFormat(append(b, `ISODate("`...), "2006-01-02T15:04:05.999Z07:00"), `")`...)
	case bson.TypeTimestamp:
		u := binary.LittleEndian.Uint64(v.Value)
		b = strconv.AppendUint(append(b, "Timestamp("...), u>>32, 10)
		return append(strconv.AppendUint(append(b, ", "...), u&math.MaxUint32, 10), ')')
	case bson.TypeBinary:
		b = strconv.AppendUint(append(b, "BinData("...), uint64(v.Value[4]), 10)
		return append(base64.StdEncoding.AppendEncode(append(b, `, "`...), v.Value[5:]), `")`...)
	case bson.TypeRegex:
		pattern, options := regex(v.Value)
		b = append(b, '/')
		for i, c := range pattern {
			if c == '/' && (i == 0 || pattern[i-1] != '\\') {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
		return append(append(b, '/'), options...)
	case bson.TypeDBPointer:
		b = strconv.AppendQuote(append(b, "DBPointer("...), string(text(v.Value[:len(v.Value)-12])))
		return append(hex.AppendEncode(append(b, `, "`...), v.Value[len(v.Value)-12:]), `")`...)
	}
	return append(strconv.AppendUint(append(b, "type("...), uint64(v.Type), 10), ')')
}

func appendDouble(b []byte, f float64) []byte {
	switch {
	case f != f:
		return append(b, "NaN"...)
	case math.IsInf(f, 0):
		if f < 0 {
			b = append(b, '-')
		}
		return append(b, "Infinity"...)
	}
	n := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	for _, c := range b[n:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}

func appendElements(b, doc []byte, names bool) []byte {
	open, end := byte('['), byte(']')
	if names {
		open, end = '{', '}'
	}
	b = append(b, open)
	for it, n := Elements(doc), 0; it.Next(); n++ {
		if n > 0 {
			b = append(b, ", "...)
		}
		if names {
			b = append(appendName(b, it.name), ": "...)
		}
		b = appendText(b, it.val)
	}
	return append(b, end)
}

func appendName(b, name []byte) []byte {
	if len(name) == 0 {
		return append(b, `""`...)
	}
	for _, c := range name {
		if !isWord(c) {
			return strconv.AppendQuote(b, string(name))
		}
	}
	return append(b, name...)
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
