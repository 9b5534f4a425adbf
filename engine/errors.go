package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// clientError turns the storage column's sentinels into MongoDB's codes; what already has a code stays as it is. No code
// here is one that drivers retry by themselves, but that of a closed database, where a retry finds the next server.
//
//	ErrDiskFull  14031 OutOfDiskSpace
//	ErrFailed        8 UnknownError: to a write that was waiting it means that nobody knows
//	ErrCorrupt       1 InternalError, with the place
//	ErrClosed    11600 InterruptedAtShutdown
func clientError(err error) error {
	if err == nil {
		return nil
	}
	var coded *mongoerr.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, storage.ErrDiskFull):
		return mongoerr.OutOfDiskSpace.Errorf("%w", err)
	case errors.Is(err, storage.ErrFailed):
		return mongoerr.UnknownError.Errorf("%w", err)
	case errors.Is(err, storage.ErrCorrupt):
		return mongoerr.InternalError.Errorf("%w", err)
	case errors.Is(err, storage.ErrClosed):
		return mongoerr.InterruptedAtShutdown.Errorf("%w", err)
	}
	return err
}

// An index and its documents that do not agree are damage, though no checksum says so.

func corruptIndex(ns catalog.Namespace, x *index, format string, args ...any) error {
	return fmt.Errorf("index %s of %s: %s: %w", x.Name, ns, fmt.Sprintf(format, args...), storage.ErrCorrupt)
}

// duplicateKey is MongoDB's 11000 for a document whose key k in x another document has.
func duplicateKey(ns catalog.Namespace, x *index, k []byte, doc bson.Raw) error {
	values := keyValues(x, k, doc)
	start, b := bsoncore.AppendDocumentStart(nil)
	i := 0
	for it := value.Elements(x.Key); it.Next(); i++ {
		b = bsoncore.AppendValueElement(b, string(it.Name()), bsoncore.Value{Type: bsoncore.Type(values[i].Type), Data: values[i].Value})
	}
	b, _ = bsoncore.AppendDocumentEnd(b, start)
	text := value.Brief(value.Document(b), 2000)
	text = strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	return mongoerr.DuplicateKey.New("E11000 duplicate key error collection: %s index: %s dup key: { %s }", ns, x.Name, text).
		With("keyPattern", x.Key).With("keyValue", bson.Raw(b))
}

// keyValues finds the values in doc that k was made of. The key's bytes do not tell number types apart, so it looks for the
// values that give the same bytes.
func keyValues(x *index, k []byte, doc bson.Raw) []bson.RawValue {
	out := make([]bson.RawValue, len(x.Pattern.Fields))
	for i, f := range x.Pattern.Fields {
		n := key.FieldLen(k, f.Kind == key.Descending)
		field := k[:n]
		k = k[n:]
		out[i] = value.Null
		value.Walk(doc, f.Path, value.LeafBoth, func(v bson.RawValue, _ int) bool {
			same := !value.IsMissing(v) && bytes.Equal(x.Pattern.AppendField(nil, i, v), field)
			if same {
				out[i] = v
			}
			return same
		})
	}
	return out
}
