package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// depthMax is how deep documents and arrays may nest, the outermost included. MongoDB promises 100 levels to a stored document
// and takes about 200 from the wire. The walk below keeps its own stack, so depth costs no goroutine stack.
const depthMax = 200

// Validate checks that the document at the start of b is well formed, and gives its length. Extra bytes behind it are the
// caller's business. Strings are not checked for UTF-8, as MongoDB does not.
func Validate(b []byte) (int, error) {
	size, err := documentSize(b)
	if err != nil {
		return 0, err
	}
	var ends [depthMax]int32 // of the documents that at is in
	ends[0] = int32(size)
	depth := 0
	at := 4
	for {
		end := int(ends[depth])
		// The last byte of a document is its terminator, and an element never reaches it: so a missing one is seen here.
		if at >= end {
			return 0, fmt.Errorf("a document does not end at byte %d", end)
		}
		kind := bson.Type(b[at])
		at++
		if kind == 0 {
			if at != end {
				return 0, fmt.Errorf("a document ends at byte %d, and should at %d", at, end)
			}
			if depth == 0 {
				return size, nil
			}
			depth--
			continue
		}
		name := bytes.IndexByte(b[at:end], 0)
		if name < 0 {
			return 0, fmt.Errorf("the field name at byte %d has no end", at)
		}
		at += name + 1
		if kind == bson.TypeEmbeddedDocument || kind == bson.TypeArray || kind == bson.TypeCodeWithScope {
			if kind == bson.TypeCodeWithScope {
				if at, err = codeHead(b, at, end); err != nil {
					return 0, err
				}
			}
			n, err := documentSize(b[at:end])
			if err != nil {
				return 0, fmt.Errorf("at byte %d: %w", at, err)
			}
			if depth++; depth == depthMax {
				return 0, fmt.Errorf("documents nest deeper than %d levels", depthMax)
			}
			ends[depth] = int32(at + n)
			at += 4
			continue
		}
		n := valueSize(kind, b[at:end])
		if n < 0 || n >= end-at {
			return 0, fmt.Errorf("the value of type 0x%02x at byte %d is malformed", byte(kind), at)
		}
		at += n
	}
}

// documentSize reads and checks a document's length.
func documentSize(b []byte) (int, error) {
	if len(b) < 5 {
		return 0, fmt.Errorf("a document needs 5 bytes, and there are %d", len(b))
	}
	n := int64(i32(b))
	if n < 5 || n > int64(len(b)) {
		return 0, fmt.Errorf("a document claims a length of %d, and there are %d bytes", n, len(b))
	}
	return int(n), nil
}

// codeHead checks the length and the code of a code with scope, and gives the place of its scope. The scope must end where
// the whole does.
func codeHead(b []byte, at, end int) (int, error) {
	malformed := fmt.Errorf("the code with scope at byte %d is malformed", at)
	if end-at < 4 {
		return 0, malformed
	}
	size := int64(i32(b[at:]))
	if size < 4+5+5 || size > int64(end-at) {
		return 0, malformed
	}
	n := stringSize(b[at+4 : at+int(size)])
	if n < 0 {
		return 0, malformed
	}
	scope := at + 4 + n
	if rest := at + int(size) - scope; rest < 5 || int64(i32(b[scope:])) != int64(rest) {
		return 0, malformed
	}
	return scope, nil
}

// valueSize is the length of a value that has no documents in it, or -1.
func valueSize(kind bson.Type, b []byte) int {
	switch kind {
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		return 8
	case bson.TypeInt32:
		return 4
	case bson.TypeDecimal128:
		return 16
	case bson.TypeObjectID:
		return 12
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0
	case bson.TypeBoolean:
		if len(b) == 0 || b[0] > 1 {
			return -1
		}
		return 1
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return stringSize(b)
	case bson.TypeDBPointer:
		n := stringSize(b)
		if n < 0 {
			return -1
		}
		return n + 12
	case bson.TypeBinary:
		return binarySize(b)
	case bson.TypeRegex:
		pattern := bytes.IndexByte(b, 0)
		if pattern < 0 {
			return -1
		}
		options := bytes.IndexByte(b[pattern+1:], 0)
		if options < 0 {
			return -1
		}
		return pattern + options + 2
	}
	return -1
}

func stringSize(b []byte) int {
	if len(b) < 5 {
		return -1
	}
	n := int64(i32(b))
	if n < 1 || n > int64(len(b)-4) || b[4+n-1] != 0 {
		return -1
	}
	return int(4 + n)
}

// binarySize knows the old subtype 2, which has a second length inside.
func binarySize(b []byte) int {
	if len(b) < 5 {
		return -1
	}
	n := int64(i32(b))
	if n < 0 || n > int64(len(b)-5) {
		return -1
	}
	if b[4] == bson.TypeBinaryBinaryOld && (n < 4 || int64(binary.LittleEndian.Uint32(b[5:])) != n-4) {
		return -1
	}
	return int(5 + n)
}
