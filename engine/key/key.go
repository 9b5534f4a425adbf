// Package key turns BSON values into bytes whose order is the order of the values: for all values a and b,
//
//	sign(bytes.Compare(Append(nil, a), Append(nil, b))) == sign(value.Compare(a, b))
//
// so an index is a tree of bytes and storage never needs to know what a document is. Equal values give equal bytes whatever
// their types. Each encoding ends by itself and none is a prefix of another; so fields can be laid end to end, inverting all
// bytes of a field makes it descending, and a record number can follow.
//
// # Bytes
//
// A value is a tag and what the tag says:
//
//	08 MinKey    10 undefined    18 null    20-37 numbers    40 string, symbol    48 object    50 array    58 binary
//	60 ObjectID  68 false  69 true  70 date  78 timestamp  80 regex  88 DBPointer  90 code  98 code with scope  f0 MaxKey
//
//	string, code      the bytes with 00 written 01 01 and 01 written 01 02; 00
//	object            for each field: the first tag of its value's rank, name, 00, value; then 00
//	array             the values; then 00
//	binary            length (one byte, or ff and four), subtype, bytes
//	date              eight bytes with the sign bit flipped;  timestamp: eight bytes
//	regex             pattern, 00, options, 00
//	DBPointer         length of the namespace in four bytes, namespace, id
//	code with scope   as string, then as object, without the object's tag
//
// All numbers are big endian. A number x is by its value.Exact:
//
//	20 NaN   21 -Infinity   2c zero   37 Infinity
//	2d       0 < x < 1:       eight bytes: bits of the double, shifted left, low bit set if x has a rest
//	2e-35    1 <= x < 2^63:   1 to 8 bytes: the whole part, shifted left, low bit set if there is a fraction
//	                          fraction, if any: seven bytes: its first 55 bits, shifted left, low bit set if x has a rest
//	36       2^63 <= x:       as below 1
//	rest                      the whole magnitude, 0.ddd…·10^n: n + 8000 (hex) in two bytes, the 34 digits as a number in fifteen
//	22-2b    -x:              tag 58 (hex) minus the tag of x, then the bytes of x inverted
//
// Only a Decimal128 that no double holds has a rest.
//
// # What a key forgets
//
// The type of a number, the exponent of a Decimal128, the sign of zero, the payload of NaN; symbol against string; missing against
// null (a missing field has the key of null). A query that is answered from an index alone needs them back: beside each key
// there is a trailer that says what is not as one would guess. It is empty for int32, for int64 beyond int32, for doubles that
// are not whole, for strings and for null; otherwise it holds a byte per number, string and null in the key, in their
// order, up to the last that is not 0, and is stored beside the key, not in it. Payloads of NaN stay forgotten.
// Decode puts key and trailer together. Of arrays an index holds elements, and hashes are one-way: those are not covered.
//
// # Collations
//
// Under a collation a string or symbol is written as its collation's key instead of its own bytes, at any depth, and the order is
// match.Compare's. Such a key does not tell what the string was, so an index with a collation covers no query.
package key

import (
	"encoding/binary"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

const (
	tagEnd       = 0x00
	tagMinKey    = 0x08
	tagUndefined = 0x10
	tagNull      = 0x18
	tagNaN       = 0x20
	tagZero      = 0x2c
	tagSmall     = 0x2d
	tagWhole     = 0x2d // plus 1 to 8 bytes
	tagLarge     = 0x36
	tagInf       = 0x37
	tagNegate    = 2 * tagZero // minus a positive number's tag is the negative one's
	tagString    = 0x40
	tagObject    = 0x48
	tagArray     = 0x50
	tagBinary    = 0x58
	tagObjectID  = 0x60
	tagFalse     = 0x68
	tagTrue      = 0x69
	tagDate      = 0x70
	tagTimestamp = 0x78
	tagRegex     = 0x80
	tagDBPointer = 0x88
	tagCode      = 0x90
	tagCodeScope = 0x98
	tagMaxKey    = 0xf0

	digitsBias = 0x8000
	binaryLong = 0xff
)

// firstTag is the lowest tag of a rank's values.
var firstTag = map[value.Rank]byte{
	value.RankMinKey: tagMinKey, value.RankUndefined: tagUndefined, value.RankNull: tagNull, value.RankNumber: tagNaN, value.RankString: tagString,
	value.RankObject: tagObject, value.RankArray: tagArray, value.RankBinary: tagBinary, value.RankObjectID: tagObjectID, value.RankBool: tagFalse,
	value.RankDate: tagDate, value.RankTimestamp: tagTimestamp, value.RankRegex: tagRegex, value.RankDBPointer: tagDBPointer, value.RankCode: tagCode,
	value.RankCodeWithScope: tagCodeScope, value.RankMaxKey: tagMaxKey,
}

// tags is firstTag by type.
var tags = func() (t [256]byte) {
	for i := range t {
		t[i] = firstTag[value.RankOf(bson.Type(i))]
	}
	return t
}()

// lastTag is the highest tag of a type's rank.
func lastTag(t bson.Type) byte {
	switch tag := tags[t]; tag {
	case tagNaN:
		return tagInf
	case tagFalse:
		return tagTrue
	default:
		return tag
	}
}

// Append appends the ascending key of v. Missing is undefined here, as in value.Compare; Pattern.Keys makes it null.
func Append(dst []byte, v bson.RawValue) []byte { return AppendBy(nil, dst, v) }

// AppendBy is Append under a collation, which may be nil.
func AppendBy(c Collation, dst []byte, v bson.RawValue) []byte {
	e := encoder{dst: dst, coll: c}
	e.value(v)
	return e.dst
}

// AppendRecordID appends a record's number, by which entries of equal keys differ.
func AppendRecordID(key []byte, id uint64) []byte { return binary.BigEndian.AppendUint64(key, id) }

// CutRecordID splits an entry into its key and its record's number; it is false for an entry that is too short to have one.
func CutRecordID(entry []byte) (key []byte, id uint64, ok bool) {
	n := len(entry) - 8
	if n < 0 {
		return nil, 0, false
	}
	return entry[:n:n], binary.BigEndian.Uint64(entry[n:]), true
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// What a trailer says of a number, a string or a null; 0 is what one would guess.
const (
	guess        = 0
	isInt64      = 1 // though it would fit an int32, or is -2^63
	isDouble     = 2 // though it is whole
	isMinusZero  = 3 // a double
	isDecimal    = 4 // its exponent follows in two bytes
	isMinusZeroD = 5 // a Decimal128; its exponent follows
	isSymbol     = 1
	isMissing    = 1
)

// Collation turns text into bytes that order as the text shall.
type Collation interface {
	AppendKey(dst, text []byte) []byte
}

// encoder appends keys to dst and their trailers to trailer.
type encoder struct {
	dst     []byte
	coll    Collation // nil: text is its own key
	collBuf []byte
	trailer []byte
	guesses int // zeros that the trailer still lacks, written only before something else
	exists  bool
}

func (e *encoder) note(what byte) {
	if what == guess {
		e.guesses++
		return
	}
	for ; e.guesses > 0; e.guesses-- {
		e.trailer = append(e.trailer, guess)
	}
	e.trailer = append(e.trailer, what)
}

func (e *encoder) value(v bson.RawValue) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		x := value.ExactOf(v)
		e.number(x)
		e.noteNumber(v, x)
		return
	case bson.TypeBoolean:
		e.dst = append(e.dst, tagFalse+v.Value[0]&1)
		return
	}
	e.dst = append(e.dst, tags[v.Type])
	switch v.Type {
	case bson.TypeNull:
		e.note(guess)
	case bson.TypeString:
		e.note(guess)
		e.collated(v.Value[4 : len(v.Value)-1])
	case bson.TypeSymbol:
		e.note(isSymbol)
		e.collated(v.Value[4 : len(v.Value)-1])
	case bson.TypeJavaScript:
		e.text(v.Value[4 : len(v.Value)-1])
	case bson.TypeEmbeddedDocument:
		e.document(v.Value)
	case bson.TypeArray:
		for it := value.Elements(v.Value); it.Next(); {
			e.value(it.Value())
		}
		e.dst = append(e.dst, tagEnd)
	case bson.TypeBinary:
		e.binary(v.Value)
	case bson.TypeObjectID, bson.TypeRegex:
		e.dst = append(e.dst, v.Value...)
	case bson.TypeDateTime:
		e.dst = binary.BigEndian.AppendUint64(e.dst, binary.LittleEndian.Uint64(v.Value)^1<<63)
	case bson.TypeTimestamp:
		e.dst = binary.BigEndian.AppendUint64(e.dst, binary.LittleEndian.Uint64(v.Value))
	case bson.TypeDBPointer:
		e.dst = binary.BigEndian.AppendUint32(e.dst, binary.LittleEndian.Uint32(v.Value))
		e.dst = append(e.dst, v.Value[4:]...)
	case bson.TypeCodeWithScope:
		n := binary.LittleEndian.Uint32(v.Value[4:])
		e.text(v.Value[8 : 8+n-1])
		e.document(v.Value[8+n:])
	}
}

func (e *encoder) document(doc []byte) {
	for it := value.Elements(doc); it.Next(); {
		v := it.Value()
		e.dst = append(append(append(e.dst, tags[v.Type]), it.Name()...), 0)
		e.value(v)
	}
	e.dst = append(e.dst, tagEnd)
}

func (e *encoder) collated(s []byte) {
	if e.coll != nil {
		e.collBuf = e.coll.AppendKey(e.collBuf[:0], s)
		s = e.collBuf
	}
	e.text(s)
}

func (e *encoder) text(s []byte) {
	from := 0
	for i, c := range s {
		if c < 2 {
			e.dst = append(append(e.dst, s[from:i]...), 1, c+1)
			from = i + 1
		}
	}
	e.dst = append(append(e.dst, s[from:]...), 0)
}

func (e *encoder) binary(b []byte) {
	n := len(b) - 5
	if n < binaryLong {
		e.dst = append(e.dst, byte(n))
	} else {
		e.dst = binary.BigEndian.AppendUint32(append(e.dst, binaryLong), uint32(n))
	}
	e.dst = append(e.dst, b[4:]...)
}

func (e *encoder) number(x value.Exact) {
	at := len(e.dst)
	var rest uint64
	if x.Rest {
		rest = 1
	}
	switch x.Kind {
	case value.ExactNaN:
		e.dst = append(e.dst, tagNaN)
		return
	case value.ExactZero:
		e.dst = append(e.dst, tagZero)
		return
	case value.ExactInf:
		e.dst = append(e.dst, tagInf)
	case value.ExactSmall:
		e.dst = binary.BigEndian.AppendUint64(append(e.dst, tagSmall), x.Bits<<1|rest)
	case value.ExactLarge:
		e.dst = binary.BigEndian.AppendUint64(append(e.dst, tagLarge), x.Bits<<1|rest)
	case value.ExactWhole:
		fraction := x.Frac<<1 | rest
		w := x.Whole << 1
		if fraction != 0 {
			w |= 1
		}
		n := (bits.Len64(w) + 7) / 8
		e.dst = appendLow(append(e.dst, tagWhole+byte(n)), w, n)
		if fraction != 0 {
			e.dst = appendLow(e.dst, fraction, 7)
		}
	}
	if x.Rest {
		e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(x.Adjust+digitsBias))
		e.dst = binary.BigEndian.AppendUint64(appendLow(e.dst, x.High, 7), x.Low)
	}
	if x.Neg {
		e.dst[at] = tagNegate - e.dst[at]
		invert(e.dst[at+1:])
	}
}

// appendLow appends the n low bytes of u.
func appendLow(b []byte, u uint64, n int) []byte {
	for n--; n >= 0; n-- {
		b = append(b, byte(u>>(8*n)))
	}
	return b
}

func (e *encoder) noteNumber(v bson.RawValue, x value.Exact) {
	switch v.Type {
	case bson.TypeInt32:
		e.note(guess)
	case bson.TypeInt64:
		if i := int64(binary.LittleEndian.Uint64(v.Value)); i == int64(int32(i)) || x.Kind == value.ExactLarge {
			e.note(isInt64)
			return
		}
		e.note(guess)
	case bson.TypeDouble:
		switch {
		case x.Kind == value.ExactZero && v.Value[7] != 0:
			e.note(isMinusZero)
		case x.Kind == value.ExactZero || x.Kind == value.ExactWhole && x.Frac == 0:
			e.note(isDouble)
		default:
			e.note(guess)
		}
	case bson.TypeDecimal128:
		h := binary.LittleEndian.Uint64(v.Value[8:])
		what := byte(isDecimal)
		if x.Kind == value.ExactZero && h>>63 != 0 {
			what = isMinusZeroD
		}
		e.note(what)
		exponent := h >> 49 & 0x3fff
		if h>>61&3 == 3 {
			exponent = h >> 47 & 0x3fff
		}
		e.trailer = binary.BigEndian.AppendUint16(e.trailer, uint16(exponent))
	}
}
