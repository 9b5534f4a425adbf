package expr

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func callType(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return value.String(typeName(args[0])), nil
}

func callIsNumber(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(isNumber(args[0])), nil
}

// itoa writes an integer.
func itoa(i int64) string { return strconv.FormatInt(i, 10) }

// plainText is a number or a date as $toString writes it.
func plainText(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeDouble:
		return doubleText(value.AsDouble(v))
	case bson.TypeDecimal128:
		return v.Decimal128().String()
	case bson.TypeDateTime:
		return isoText(v.DateTime())
	}
	return itoa(value.TruncateInt64(v))
}

// doubleText writes a double so that it reads back, as MongoDB does: 1, 0.1, 1e+22, 1e-07.
func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a == 0 || a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	sign, digits := exponent[:1], strings.TrimLeft(exponent[1:], "0")
	return mantissa + "e" + sign + digits
}

// convert is $convert and its short forms.
type convert struct {
	op              string
	input           node
	to              node
	onError, onNull node // may be nil
	format          node // may be nil
}

func (n *convert) eval(c *Context) (bson.RawValue, error) {
	v, err := n.input.eval(c)
	if err != nil {
		return v, err
	}
	to, err := n.to.eval(c)
	if err != nil {
		return to, err
	}
	if nullish(v) {
		if n.onNull != nil {
			return n.onNull.eval(c)
		}
		return value.Null, nil
	}
	subtype := -1
	if isDocument(to) { // {type: ..., subtype: ...}
		if s := value.Lookup(to.Value, "subtype"); s.Type != 0 {
			subtype, _ = asInt32(s)
		}
		to = value.Lookup(to.Value, "type")
	}
	if nullish(to) {
		return value.Null, nil
	}
	t, err := targetType(to)
	if err != nil {
		return value.Missing, err
	}
	format := ""
	if n.format != nil {
		f, err := n.format.eval(c)
		if err != nil {
			return f, err
		}
		if nullish(f) {
			return value.Null, nil
		}
		if !isString(f) {
			return value.Missing, code(4341114).Errorf("$convert requires that 'format' be a string, found: %s", typeName(f))
		}
		format = text(f)
	}
	r, err := convertTo(v, t, format, subtype)
	if err != nil && n.onError != nil {
		return n.onError.eval(c)
	}
	return r, err
}

// targetType reads the operand "to": a type's name or number.
func targetType(to bson.RawValue) (bson.Type, error) {
	switch {
	case isString(to):
		if types := value.TypesNamed(text(to)); len(types) == 1 {
			return types[0], nil
		}
		return 0, mongoerr.BadValue.Errorf("unknown type name: %s", text(to))
	case isNumber(to):
		if n, ok := value.AsInt64(to); ok {
			if t, ok := value.TypeNumbered(n); ok {
				return t, nil
			}
		}
		return 0, mongoerr.FailedToParse.Errorf("in $convert, numeric value for 'to' does not correspond to a BSON type: %s",
			value.Brief(to, 100))
	}
	return 0, mongoerr.FailedToParse.Errorf("$convert's 'to' argument must be a string or number, but is %s", typeName(to))
}

func failed(format string, args ...any) (bson.RawValue, error) {
	return value.Missing, mongoerr.ConversionFailure.Errorf(format+" in $convert with no onError value", args...)
}

func convertTo(v bson.RawValue, t bson.Type, format string, subtype int) (bson.RawValue, error) {
	if v.Type == bson.TypeSymbol {
		v = value.String(text(v))
	}
	switch t {
	case bson.TypeBoolean:
		return boolean(value.Truth(v)), nil
	case bson.TypeDouble:
		return toDouble(v)
	case bson.TypeDecimal128:
		return toDecimal(v)
	case bson.TypeInt32:
		return toInteger(v, math.MinInt32, math.MaxInt32, "int", func(i int64) bson.RawValue { return value.Int32(int32(i)) })
	case bson.TypeInt64:
		return toInteger(v, math.MinInt64, math.MaxInt64, "long", value.Int64)
	case bson.TypeString:
		return toString(v, format)
	case bson.TypeDateTime:
		return toDate(v)
	case bson.TypeObjectID:
		return toObjectID(v)
	case bson.TypeBinary:
		return toBinary(v, format, subtype)
	}
	return failed("unsupported conversion from %s to %s", typeName(v), value.TypeName(t))
}

func toDouble(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64:
		return value.Double(value.AsDouble(v)), nil
	case bson.TypeDecimal128:
		f := value.AsDouble(v)
		if math.IsInf(f, 0) && value.AsDecimal(v).Form == apd.Finite {
			return failed("conversion would overflow target type: %s", value.Brief(v, 100))
		}
		return value.Double(f), nil
	case bson.TypeBoolean:
		if value.Truth(v) {
			return value.Double(1), nil
		}
		return value.Double(0), nil
	case bson.TypeDateTime:
		return value.Double(float64(millis(v))), nil
	case bson.TypeString:
		s := text(v)
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "_xXpP") {
			return failed("failed to parse number '%s'", value.Brief(v, 100))
		}
		return value.Double(f), nil
	}
	return failed("unsupported conversion from %s to double", typeName(v))
}

func toDecimal(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDecimal128:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return value.OfDecimal(value.AsDecimal(v)), nil
	case bson.TypeBoolean:
		return value.OfDecimal(apd.New(int64(v.Value[0]), 0)), nil
	case bson.TypeDateTime:
		return value.OfDecimal(apd.New(millis(v), 0)), nil
	case bson.TypeString:
		d, err := bson.ParseDecimal128(text(v))
		if err != nil {
			return failed("failed to parse number '%s'", value.Brief(v, 100))
		}
		return value.Decimal128(d), nil
	}
	return failed("unsupported conversion from %s to decimal", typeName(v))
}

func toInteger(v bson.RawValue, least, most int64, name string, make func(int64) bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		x := value.ExactOf(v)
		switch {
		case x.Kind == value.ExactNaN:
			return failed("attempt to convert NaN value to integer type")
		case x.Kind == value.ExactInf:
			return failed("attempt to convert infinity value to integer type")
		}
		n := value.TruncateInt64(v)
		if x.Kind == value.ExactLarge && !value.Equal(v, value.Int64(n)) || n < least || n > most {
			return failed("conversion would overflow target type: %s", value.Brief(v, 100))
		}
		return make(n), nil
	case bson.TypeBoolean:
		return make(int64(v.Value[0])), nil
	case bson.TypeDateTime:
		if name == "long" {
			return make(millis(v)), nil
		}
	case bson.TypeString:
		n, err := strconv.ParseInt(text(v), 10, 64)
		if err != nil || n < least || n > most || strings.HasPrefix(text(v), "+") {
			return failed("failed to parse number '%s'", value.Brief(v, 100))
		}
		return make(n), nil
	}
	return failed("unsupported conversion from %s to %s", typeName(v), name)
}

func toString(v bson.RawValue, format string) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeString:
		return v, nil
	case bson.TypeBoolean:
		return value.String(strconv.FormatBool(value.Truth(v))), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeDateTime:
		return value.String(plainText(v)), nil
	case bson.TypeObjectID:
		return value.String(v.ObjectID().Hex()), nil
	case bson.TypeBinary:
		return binaryText(v, format)
	}
	return failed("unsupported conversion from %s to string", typeName(v))
}

const subtypeUUID = 4

func binaryText(v bson.RawValue, format string) (bson.RawValue, error) {
	subtype, b := v.Value[4], v.Value[5:]
	switch format {
	case "", "auto":
		if subtype != subtypeUUID || len(b) != 16 {
			if format == "" {
				return value.Missing, code(4341115).Errorf("$convert requires 'format' to convert from BinData to string")
			}
			return value.String(base64.StdEncoding.EncodeToString(b)), nil
		}
		return value.String(uuidText(b)), nil
	case "base64":
		return value.String(base64.StdEncoding.EncodeToString(b)), nil
	case "base64url":
		return value.String(base64.RawURLEncoding.EncodeToString(b)), nil
	case "hex":
		return value.String(strings.ToUpper(hex.EncodeToString(b))), nil
	case "utf8":
		if !isUTF8(b) {
			return failed("invalid UTF-8 in BinData")
		}
		return value.String(string(b)), nil
	case "uuid":
		if subtype != subtypeUUID || len(b) != 16 {
			return failed("the BinData is no UUID")
		}
		return value.String(uuidText(b)), nil
	}
	return value.Missing, code(4341125).Errorf("invalid 'format' argument for $convert: %s", format)
}

func uuidText(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func isUTF8(b []byte) bool { return strings.ToValidUTF8(string(b), "") == string(b) }

func toObjectID(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeObjectID:
		return v, nil
	case bson.TypeString:
		id, err := bson.ObjectIDFromHex(text(v))
		if err != nil {
			return failed("failed to parse objectId '%s'", value.Brief(v, 100))
		}
		return value.ObjectID(id), nil
	}
	return failed("unsupported conversion from %s to objectId", typeName(v))
}

func toBinary(v bson.RawValue, format string, subtype int) (bson.RawValue, error) {
	var b []byte
	var err error
	switch v.Type {
	case bson.TypeBinary:
		return v, nil
	case bson.TypeString:
		switch format {
		case "base64":
			b, err = base64.StdEncoding.DecodeString(text(v))
		case "base64url":
			b, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(text(v), "="))
		case "hex":
			b, err = hex.DecodeString(text(v))
		case "utf8":
			b = value.StringBytes(v)
		case "uuid":
			b, err = hex.DecodeString(strings.ReplaceAll(text(v), "-", ""))
			if len(b) != 16 || len(text(v)) != 36 {
				return failed("'%s' is no UUID", value.Brief(v, 100))
			}
			subtype = subtypeUUID
		default:
			return value.Missing, code(4341115).Errorf("$convert requires 'format' to convert from string to BinData")
		}
		if err != nil {
			return failed("'%s' is not in the format %s", value.Brief(v, 100), format)
		}
	default:
		return failed("unsupported conversion from %s to binData", typeName(v))
	}
	return Binary(byte(max(subtype, 0)), b), nil
}

// Binary is binary data as a value.
func Binary(subtype byte, b []byte) bson.RawValue {
	n := len(b)
	d := append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), subtype}, b...)
	return bson.RawValue{Type: bson.TypeBinary, Value: d}
}

func parseConvert(p *parser, arg bson.RawValue) (node, error) {
	nodes, err := p.named("$convert", arg, mongoerr.FailedToParse, mongoerr.FailedToParse, mongoerr.FailedToParse,
		[]string{"input", "to"}, []string{"onError", "onNull", "format", "byteOrder"})
	if err != nil {
		return nil, err
	}
	if nodes[5] != nil {
		return nil, mongoerr.NotImplemented.Errorf("the byteOrder of $convert is not implemented")
	}
	return &convert{op: "$convert", input: nodes[0], to: nodes[1], onError: nodes[2], onNull: nodes[3], format: nodes[4]}, nil
}

// parseTo is a short form of $convert.
func parseTo(op, to string) func(*parser, bson.RawValue) (node, error) {
	return func(p *parser, arg bson.RawValue) (node, error) {
		args, err := p.arguments(op, arg, 1, 1)
		if err != nil {
			return nil, err
		}
		n := &convert{op: op, input: args[0], to: literal{value.String(to)}}
		if to == "string" || to == "binData" {
			n.format = literal{value.String("auto")}
		}
		if constants(args) {
			if v, err := n.eval(&Context{}); err == nil {
				return literal{v}, nil
			}
		}
		return n, nil
	}
}

func parseToUUID(p *parser, arg bson.RawValue) (node, error) {
	args, err := p.arguments("$toUUID", arg, 1, 1)
	if err != nil {
		return nil, err
	}
	return &convert{op: "$toUUID", input: args[0], to: literal{value.String("binData")}, format: literal{value.String("uuid")}}, nil
}
