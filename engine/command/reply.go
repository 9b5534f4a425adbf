package command

import (
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// appendError appends the fields of a failed command's reply.
func appendError(dst []byte, err error) []byte {
	e := mongoerr.From(err)
	dst = bsoncore.AppendDoubleElement(dst, "ok", 0)
	dst = bsoncore.AppendStringElement(dst, "errmsg", e.Message)
	dst = bsoncore.AppendInt32Element(dst, "code", int32(e.Code))
	dst = bsoncore.AppendStringElement(dst, "codeName", e.Code.Name())
	dst = appendExtra(dst, e)
	if len(e.Labels) > 0 {
		dst = appendStrings(dst, "errorLabels", e.Labels)
	}
	return dst
}

// appendExtra appends the fields that an error has beside its code: keyPattern, keyValue, errInfo.
func appendExtra(dst []byte, e *mongoerr.Error) []byte {
	for _, x := range e.Extra {
		t, v, err := bson.MarshalValue(x.Value)
		if err != nil {
			// The value was made by us; the error itself matters more than this part of it.
			continue
		}
		dst = appendValue(dst, x.Key, bson.RawValue{Type: t, Value: v})
	}
	return dst
}

// appendWriteErrors appends the array of a write command's errors, if there are any.
func appendWriteErrors(dst []byte, errs []engine.WriteError) []byte {
	if len(errs) == 0 {
		return dst
	}
	at, dst := bsoncore.AppendArrayElementStart(dst, "writeErrors")
	for i, we := range errs {
		e := mongoerr.From(we.Err)
		var doc int32
		doc, dst = bsoncore.AppendDocumentElementStart(dst, indexName(i))
		dst = bsoncore.AppendInt32Element(dst, "index", int32(we.Index))
		dst = bsoncore.AppendInt32Element(dst, "code", int32(e.Code))
		dst = appendExtra(dst, e)
		dst = bsoncore.AppendStringElement(dst, "errmsg", e.Message)
		dst, _ = bsoncore.AppendDocumentEnd(dst, doc)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// appendValue appends one element.
func appendValue(dst []byte, name string, v bson.RawValue) []byte {
	dst = bsoncore.AppendHeader(dst, bsoncore.Type(v.Type), name)
	return append(dst, v.Value...)
}

// appendCount appends a number as MongoDB does: an int if it fits, else a long.
func appendCount(dst []byte, name string, n int64) []byte {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return bsoncore.AppendInt32Element(dst, name, int32(n))
	}
	return bsoncore.AppendInt64Element(dst, name, n)
}

// appendDocs appends an array of documents.
func appendDocs(dst []byte, name string, docs []bson.Raw) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, name)
	for i, d := range docs {
		dst = appendElement(dst, i, d)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// appendElement appends a document as element i of an array.
func appendElement(dst []byte, i int, doc bson.Raw) []byte {
	dst = append(dst, byte(bson.TypeEmbeddedDocument))
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, 0)
	return append(dst, doc...)
}

// nested appends a document element that f fills.
func nested(dst []byte, name string, f func(dst []byte) []byte) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, name)
	dst = f(dst)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// document makes a document that f fills.
func document(f func(dst []byte) []byte) bson.Raw {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = f(dst)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return bson.Raw(dst)
}

// appendStrings appends an array of strings.
func appendStrings(dst []byte, name string, list []string) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, name)
	for i, v := range list {
		dst = bsoncore.AppendStringElement(dst, indexName(i), v)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// indexName is the name of element i of an array.
func indexName(i int) string { return strconv.Itoa(i) }

// AppendError appends the reply to a request that did not come as far as a command.
func AppendError(dst []byte, err error) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = appendError(dst, err)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
