package value

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Parse reads a value as Text writes it, with the liberties of the shell: names bare or quoted, strings in double or single
// quotes, trailing commas. A whole number is an int32 if it fits and else an int64; one with a point or an exponent is a double.
// It is for scripts and tools, not for what clients send.
func Parse(s string) (bson.RawValue, error) {
	p := parser{s: s}
	t, b, err := p.value(nil, 0)
	if err == nil && p.next() != 0 {
		err = p.errorf("text after the value")
	}
	if err != nil {
		return Missing, err
	}
	return bson.RawValue{Type: t, Value: b}, nil
}

// MustParse is Parse for texts that stand in the program.
func MustParse(s string) bson.RawValue {
	v, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return v
}

// MustParseDocument is MustParse for a document.
func MustParseDocument(s string) bson.Raw {
	v := MustParse(s)
	if v.Type != bson.TypeEmbeddedDocument {
		panic("value: not a document: " + s)
	}
	return v.Value
}

type parser struct {
	s string
	i int
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("value: %s at byte %d of %q", fmt.Sprintf(format, args...), p.i, p.s)
}

// next skips blanks and peeks at a byte, 0 at the end.
func (p *parser) next() byte {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

func (p *parser) take(c byte) bool {
	if p.next() != c {
		return false
	}
	p.i++
	return true
}

func (p *parser) word() string {
	p.next()
	i := p.i
	for p.i < len(p.s) && (isWord(p.s[p.i]) || p.s[p.i] == '-' || p.s[p.i] == '+') {
		p.i++
	}
	return p.s[i:p.i]
}

// value appends one value's bytes to b.
func (p *parser) value(b []byte, depth int) (bson.Type, []byte, error) {
	if depth > DepthMax {
		return 0, nil, p.errorf("nested too deep")
	}
	switch c := p.next(); c {
	case '{':
		b, err := p.elements(b, '}', true, depth)
		return bson.TypeEmbeddedDocument, b, err
	case '[':
		b, err := p.elements(b, ']', false, depth)
		return bson.TypeArray, b, err
	case '"', '\'':
		s, err := p.quoted()
		return bson.TypeString, append(b, String(s).Value...), err
	case '/':
		return p.regex(b)
	}
	return p.named(b, depth)
}

func (p *parser) elements(b []byte, end byte, names bool, depth int) ([]byte, error) {
	p.i++
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for n := 0; !p.take(end); n++ {
		if n > 0 && !p.take(',') {
			return nil, p.errorf("no comma")
		}
		if p.take(end) {
			break
		}
		at := len(b)
		b = append(b, 0)
		if !names {
			b = strconv.AppendInt(b, int64(n), 10)
		} else {
			name := ""
			if c := p.next(); c == '"' || c == '\'' {
				var err error
				if name, err = p.quoted(); err != nil {
					return nil, err
				}
			} else if name = p.word(); name == "" {
				return nil, p.errorf("no name")
			}
			if !p.take(':') {
				return nil, p.errorf("no colon after %q", name)
			}
			if strings.IndexByte(name, 0) >= 0 {
				return nil, p.errorf("NUL in a name")
			}
			b = append(b, name...)
		}
		t, more, err := p.value(append(b, 0), depth+1)
		if err != nil {
			return nil, err
		}
		b = more
		b[at] = byte(t)
	}
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b, nil
}

func (p *parser) quoted() (string, error) {
	quote := p.next()
	i := p.i
	for p.i++; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '\\':
			p.i++
		case quote:
			p.i++
			s := p.s[i:p.i]
			if quote == '\'' {
				s = `"` + strings.ReplaceAll(s[1:len(s)-1], `"`, `\"`) + `"`
			}
			r, err := strconv.Unquote(s)
			if err != nil {
				return "", p.errorf("string %s: %v", s, err)
			}
			return r, nil
		}
	}
	return "", p.errorf("string without an end")
}

func (p *parser) regex(b []byte) (bson.Type, []byte, error) {
	for p.i++; p.i < len(p.s) && p.s[p.i] != '/'; p.i++ {
		if p.s[p.i] == '\\' && p.i+1 < len(p.s) {
			p.i++
			if p.s[p.i] != '/' {
				b = append(b, '\\')
			}
		}
		b = append(b, p.s[p.i])
	}
	if p.i == len(p.s) {
		return 0, nil, p.errorf("regular expression without an end")
	}
	p.i++
	options := ""
	if p.i < len(p.s) && isWord(p.s[p.i]) {
		options = p.word()
	}
	return bson.TypeRegex, append(append(append(b, 0), options...), 0), nil
}

// named reads a number, a constant, or a constructor with its arguments.
func (p *parser) named(b []byte, depth int) (bson.Type, []byte, error) {
	word := p.word()
	if word == "new" {
		word = p.word()
	}
	if v, ok := constant(word); ok {
		if (word == "MinKey" || word == "MaxKey") && p.take('(') && !p.take(')') {
			return 0, nil, p.errorf("no closing parenthesis")
		}
		return v.Type, append(b, v.Value...), nil
	}
	if !p.take('(') {
		return 0, nil, p.errorf("no value: %q", word)
	}
	var args []string
	scope := []byte(nil)
	for n := 0; !p.take(')'); n++ {
		if n > 0 && !p.take(',') {
			return 0, nil, p.errorf("no comma in %s()", word)
		}
		var arg string
		var err error
		switch c := p.next(); {
		case c == '"' || c == '\'':
			arg, err = p.quoted()
		case c == '{' && word == "Code":
			scope, err = p.elements(nil, '}', true, depth+1)
		default:
			if arg = p.word(); arg == "" {
				err = p.errorf("no argument of %s()", word)
			}
		}
		if err != nil {
			return 0, nil, err
		}
		args = append(args, arg)
	}
	v, err := construct(word, args, scope)
	if err != nil {
		return 0, nil, p.errorf("%s(): %v", word, err)
	}
	return v.Type, append(b, v.Value...), nil
}

func constant(word string) (bson.RawValue, bool) {
	switch word {
	case "null":
		return Null, true
	case "true", "false":
		return Bool(word == "true"), true
	case "undefined":
		return bson.RawValue{Type: bson.TypeUndefined}, true
	case "MinKey":
		return bson.RawValue{Type: bson.TypeMinKey}, true
	case "MaxKey":
		return bson.RawValue{Type: bson.TypeMaxKey}, true
	case "NaN":
		return Double(math.NaN()), true
	case "Infinity", "+Infinity":
		return Double(math.Inf(1)), true
	case "-Infinity":
		return Double(math.Inf(-1)), true
	}
	if word == "" || strings.IndexByte("+-.0123456789", word[0]) < 0 {
		return Missing, false
	}
	if i, err := strconv.ParseInt(word, 10, 64); err == nil {
		if i == int64(int32(i)) {
			return Int32(int32(i)), true
		}
		return Int64(i), true
	}
	f, err := strconv.ParseFloat(word, 64)
	return Double(f), err == nil
}

func construct(name string, args []string, scope []byte) (bson.RawValue, error) {
	want := map[string]int{"Timestamp": 2, "BinData": 2, "DBPointer": 2, "Code": len(args)}
	if n, ok := want[name]; ok && len(args) != n || !ok && len(args) != 1 || len(args) == 0 {
		return Missing, fmt.Errorf("%d arguments", len(args))
	}
	arg := args[0]
	switch name {
	case "NumberInt":
		i, err := strconv.ParseInt(arg, 10, 32)
		return Int32(int32(i)), err
	case "NumberLong":
		i, err := strconv.ParseInt(arg, 10, 64)
		return Int64(i), err
	case "NumberDecimal":
		d, err := bson.ParseDecimal128(arg)
		return Decimal128(d), err
	case "Double":
		f, err := strconv.ParseFloat(arg, 64)
		return Double(f), err
	case "ObjectId":
		id, err := bson.ObjectIDFromHex(arg)
		return ObjectID(id), err
	case "ISODate":
		t, err := time.Parse("2006-01-02T15:04:05.999Z07:00", arg)
		if err != nil {
			t, err = time.Parse("2006-01-02", arg)
		}
		return Date(t.UnixMilli()), err
	case "Date":
		ms, err := strconv.ParseInt(arg, 10, 64)
		return Date(ms), err
	case "Timestamp":
		t, err := strconv.ParseUint(arg, 10, 32)
		if err != nil {
			return Missing, err
		}
		i, err := strconv.ParseUint(args[1], 10, 32)
		return Timestamp(uint32(t), uint32(i)), err
	case "Symbol":
		v := String(arg)
		v.Type = bson.TypeSymbol
		return v, nil
	case "Code":
		code := String(arg).Value
		if scope == nil {
			return bson.RawValue{Type: bson.TypeJavaScript, Value: code}, nil
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(4+len(code)+len(scope)))
		return bson.RawValue{Type: bson.TypeCodeWithScope, Value: append(append(b, code...), scope...)}, nil
	case "BinData", "UUID":
		subtype, data := uint64(4), []byte(nil)
		var err error
		if name == "UUID" {
			data, err = hex.DecodeString(strings.ReplaceAll(arg, "-", ""))
		} else if subtype, err = strconv.ParseUint(arg, 10, 8); err == nil {
			data, err = base64.StdEncoding.DecodeString(args[1])
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(data)))
		return bson.RawValue{Type: bson.TypeBinary, Value: append(append(b, byte(subtype)), data...)}, err
	case "DBPointer":
		id, err := bson.ObjectIDFromHex(args[1])
		return bson.RawValue{Type: bson.TypeDBPointer, Value: append(String(arg).Value, id[:]...)}, err
	}
	return Missing, fmt.Errorf("no such type")
}
