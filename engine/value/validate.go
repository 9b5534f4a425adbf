package value

import (
	"bytes"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

const (
	// SizeMax is the size of the largest document that is stored, in bytes.
	SizeMax = 16 << 20
	// DepthMax is how many documents and arrays, the outermost included, may lie in each other. MongoDB's manual promises
	// 100; its server takes 180 into collections. Recursion over stored documents is bounded by it everywhere.
	DepthMax = 180
)

// Validate checks a document that comes in: every length and terminator, known types, UTF-8 in names and strings, booleans of
// 0 or 1, at most DepthMax levels, at most SizeMax bytes. Fields of the same name are allowed, as MongoDB stores them; array
// positions are what counts in arrays, not the names there.
//
// Its errors are InvalidBSON, BSONObjectTooLarge and, for the depth, Overflow.
func Validate(doc bson.Raw) error {
	if len(doc) > SizeMax {
		return mongoerr.BSONObjectTooLarge.Errorf("document of %d bytes is larger than the maximum of %d", len(doc), SizeMax)
	}
	return validate(doc, 1)
}

func validate(doc []byte, depth int) error {
	if depth > DepthMax {
		return mongoerr.Overflow.Errorf("document is nested deeper than %d levels", DepthMax)
	}
	it := Elements(doc)
	for it.Next() {
		if !utf8.Valid(it.name) {
			return mongoerr.InvalidBSON.Errorf("field name %q is not UTF-8", it.name)
		}
		v := it.val.Value
		switch it.val.Type {
		case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
			if v[len(v)-1] != 0 {
				return mongoerr.InvalidBSON.Errorf("string in field %q does not end in NUL", it.name)
			}
			if !utf8.Valid(text(v)) {
				return mongoerr.InvalidBSON.Errorf("string in field %q is not UTF-8", it.name)
			}
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if err := validate(v, depth+1); err != nil {
				return err
			}
		case bson.TypeBoolean:
			if v[0] > 1 {
				return mongoerr.InvalidBSON.Errorf("boolean in field %q is %d, not 0 or 1", it.name, v[0])
			}
		case bson.TypeRegex:
			if !utf8.Valid(v) {
				return mongoerr.InvalidBSON.Errorf("regular expression in field %q is not UTF-8", it.name)
			}
		case bson.TypeDBPointer:
			if s := v[:len(v)-12]; s[len(s)-1] != 0 || !utf8.Valid(text(s)) {
				return mongoerr.InvalidBSON.Errorf("DBPointer in field %q has no proper namespace", it.name)
			}
		case bson.TypeCodeWithScope:
			code, scope := codeWithScope(v)
			if v[8+len(code)] != 0 || !utf8.Valid(code) {
				return mongoerr.InvalidBSON.Errorf("code in field %q is not UTF-8 that ends in NUL", it.name)
			}
			if err := validate(scope, depth+1); err != nil {
				return err
			}
		}
	}
	if it.bad {
		if len(it.name) == 0 {
			return mongoerr.InvalidBSON.Errorf("malformed document")
		}
		return mongoerr.InvalidBSON.Errorf("malformed document after field %q", bytes.ToValidUTF8(it.name, []byte("?")))
	}
	return nil
}
