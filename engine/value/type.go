package value

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Rank is the place of a type in the order of all values; types that compare with each other share one. Ranks are MongoDB's
// canonical type numbers, which hashed indexes digest, so they may not change.
type Rank uint8

const (
	RankMinKey        Rank = 0 // MongoDB's is -1; everything else is as there
	RankUndefined     Rank = 1 // missing and undefined; MongoDB's is 0
	RankNull          Rank = 5
	RankNumber        Rank = 10
	RankString        Rank = 15
	RankObject        Rank = 20
	RankArray         Rank = 25
	RankBinary        Rank = 30
	RankObjectID      Rank = 35
	RankBool          Rank = 40
	RankDate          Rank = 45
	RankTimestamp     Rank = 47
	RankRegex         Rank = 50
	RankDBPointer     Rank = 55
	RankCode          Rank = 60
	RankCodeWithScope Rank = 65
	RankMaxKey        Rank = 127
)

var ranks = [256]Rank{
	0:                         RankUndefined,
	bson.TypeMinKey:           RankMinKey,
	bson.TypeUndefined:        RankUndefined,
	bson.TypeNull:             RankNull,
	bson.TypeInt32:            RankNumber,
	bson.TypeInt64:            RankNumber,
	bson.TypeDouble:           RankNumber,
	bson.TypeDecimal128:       RankNumber,
	bson.TypeString:           RankString,
	bson.TypeSymbol:           RankString,
	bson.TypeEmbeddedDocument: RankObject,
	bson.TypeArray:            RankArray,
	bson.TypeBinary:           RankBinary,
	bson.TypeObjectID:         RankObjectID,
	bson.TypeBoolean:          RankBool,
	bson.TypeDateTime:         RankDate,
	bson.TypeTimestamp:        RankTimestamp,
	bson.TypeRegex:            RankRegex,
	bson.TypeDBPointer:        RankDBPointer,
	bson.TypeJavaScript:       RankCode,
	bson.TypeCodeWithScope:    RankCodeWithScope,
	bson.TypeMaxKey:           RankMaxKey,
}

// RankOf is the rank of a type.
func RankOf(t bson.Type) Rank { return ranks[t] }

// types in the order of their numbers, with the names that $type knows.
var types = []struct {
	name   string
	number int32
	typ    bson.Type
}{
	{"minKey", -1, bson.TypeMinKey},
	{"double", 1, bson.TypeDouble},
	{"string", 2, bson.TypeString},
	{"object", 3, bson.TypeEmbeddedDocument},
	{"array", 4, bson.TypeArray},
	{"binData", 5, bson.TypeBinary},
	{"undefined", 6, bson.TypeUndefined},
	{"objectId", 7, bson.TypeObjectID},
	{"bool", 8, bson.TypeBoolean},
	{"date", 9, bson.TypeDateTime},
	{"null", 10, bson.TypeNull},
	{"regex", 11, bson.TypeRegex},
	{"dbPointer", 12, bson.TypeDBPointer},
	{"javascript", 13, bson.TypeJavaScript},
	{"symbol", 14, bson.TypeSymbol},
	{"javascriptWithScope", 15, bson.TypeCodeWithScope},
	{"int", 16, bson.TypeInt32},
	{"timestamp", 17, bson.TypeTimestamp},
	{"long", 18, bson.TypeInt64},
	{"decimal", 19, bson.TypeDecimal128},
	{"maxKey", 127, bson.TypeMaxKey},
}

// TypeName is the name of t as $type and error messages give it; "missing" for type 0.
func TypeName(t bson.Type) string {
	if t == 0 {
		return "missing"
	}
	for i := range types {
		if types[i].typ == t {
			return types[i].name
		}
	}
	return "unknown"
}

// TypesNamed are the types that a name of $type stands for: one, the four of "number", or nil for an unknown name.
func TypesNamed(name string) []bson.Type {
	if name == "number" {
		return []bson.Type{bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128}
	}
	for i := range types {
		if types[i].name == name {
			return []bson.Type{types[i].typ}
		}
	}
	return nil
}

// TypeNumbered is the type with a number of $type (-1 is MinKey), and false for a number that is none.
func TypeNumbered(n int64) (bson.Type, bool) {
	i := slices.IndexFunc(types, func(t struct {
		name   string
		number int32
		typ    bson.Type
	}) bool {
		return int64(t.number) == n
	})
	if i < 0 {
		return 0, false
	}
	return types[i].typ, true
}
