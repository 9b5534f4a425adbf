package value

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Compare orders any two values: negative, zero or positive as a is before, equal to, or after b. It allocates nothing unless a
// Decimal128 meets a double.
func Compare(a, b bson.RawValue) int { return compare(a.Type, a.Value, b.Type, b.Value) }

// Equal says whether Compare finds no difference: 1 equals 1.0, a string equals a symbol, missing equals undefined.
func Equal(a, b bson.RawValue) bool { return compare(a.Type, a.Value, b.Type, b.Value) == 0 }

// Identical says whether the two values are the same bytes of the same type, so that replacing one by the other changes
// nothing that a client could see.
func Identical(a, b bson.RawValue) bool { return a.Type == b.Type && bytes.Equal(a.Value, b.Value) }

// CompareDocuments orders two documents as values.
func CompareDocuments(a, b []byte) int { return compareElements(a, b, true) }

func compare(ta bson.Type, a []byte, tb bson.Type, b []byte) int {
	ra, rb := ranks[ta], ranks[tb]
	if ra != rb {
		return cmp(ra, rb)
	}
	switch ra {
	case RankNumber:
		return compareNumbers(ta, a, tb, b)
	case RankString, RankCode:
		return bytes.Compare(text(a), text(b))
	case RankObject:
		return compareElements(a, b, true)
	case RankArray:
		return compareElements(a, b, false)
	case RankBinary:
		if c := cmp(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)); c != 0 {
			return c
		}
		return bytes.Compare(a[4:], b[4:])
	case RankObjectID, RankBool:
		return bytes.Compare(a, b)
	case RankDate:
		return cmp(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case RankTimestamp:
		return cmp(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
	case RankRegex:
		pa, oa := regex(a)
		pb, ob := regex(b)
		if c := bytes.Compare(pa, pb); c != 0 {
			return c
		}
		return bytes.Compare(oa, ob)
	case RankDBPointer:
		if c := cmp(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)); c != 0 {
			return c
		}
		return bytes.Compare(a[4:], b[4:])
	case RankCodeWithScope:
		ca, sa := codeWithScope(a)
		cb, sb := codeWithScope(b)
		if c := bytes.Compare(ca, cb); c != 0 {
			return c
		}
		return compareElements(sa, sb, true)
	}
	return 0 // MinKey, undefined and missing, null, MaxKey have one value each
}

func compareElements(a, b []byte, names bool) int {
	ia, ib := Elements(a), Elements(b)
	for {
		na, nb := ia.Next(), ib.Next()
		switch {
		case !na && !nb:
			return 0
		case !na:
			return -1
		case !nb:
			return 1
		}
		if c := cmp(ranks[ia.val.Type], ranks[ib.val.Type]); c != 0 {
			return c
		}
		if names {
			if c := bytes.Compare(ia.name, ib.name); c != 0 {
				return c
			}
		}
		if c := compare(ia.val.Type, ia.val.Value, ib.val.Type, ib.val.Value); c != 0 {
			return c
		}
	}
}
