package match

import (
	"bytes"
	"cmp"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Collation orders strings in another way than by their bytes: negative, zero or positive as a is before, the same as, or after
// b. It must be safe for concurrent use.
type Collation interface {
	Compare(a, b []byte) int
	// AppendKey appends bytes that order as the text does.
	AppendKey(dst, text []byte) []byte
}

// Compare is value.Compare with the strings and symbols in a and b, at any depth, compared by c. Names of fields and code are not
// text of a language and stay binary. A nil c is value.Compare itself.
func Compare(c Collation, a, b bson.RawValue) int {
	if c == nil {
		return value.Compare(a, b)
	}
	switch {
	case isText(a.Type) && isText(b.Type):
		return c.Compare(value.StringBytes(a), value.StringBytes(b))
	case a.Type != b.Type, a.Type != bson.TypeEmbeddedDocument && a.Type != bson.TypeArray:
		return value.Compare(a, b)
	}
	ia, ib := value.Elements(a.Value), value.Elements(b.Value)
	for {
		na, nb := ia.Next(), ib.Next()
		if !na || !nb {
			return boolInt(na) - boolInt(nb)
		}
		va, vb := ia.Value(), ib.Value()
		if d := cmp.Compare(value.RankOf(va.Type), value.RankOf(vb.Type)); d != 0 {
			return d
		}
		if a.Type == bson.TypeEmbeddedDocument {
			if d := bytes.Compare(ia.Name(), ib.Name()); d != 0 {
				return d
			}
		}
		if d := Compare(c, va, vb); d != 0 {
			return d
		}
	}
}

func isText(t bson.Type) bool { return t == bson.TypeString || t == bson.TypeSymbol }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
