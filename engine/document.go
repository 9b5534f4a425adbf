package engine

import (
	"encoding/binary"
	"strings"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// documentMax is the size of the largest document, in bytes.
const documentMax = 16 << 20

// prepare makes a document that comes in ready to be stored: valid, with an _id that may be one, in front. Empty timestamps
// become the time, as MongoDB has it, at the top level and except in _id.
func (db *DB) prepare(doc bson.Raw) (bson.Raw, error) {
	if err := value.Validate(doc); err != nil {
		return nil, err
	}
	it := value.Elements(doc)
	first, found := true, false
	var id bson.RawValue
	inFront, stamp := false, false
	for it.Next() {
		if string(it.Name()) == "_id" {
			if found {
				return nil, mongoerr.BadValue.Errorf("can't have multiple _id fields in one document")
			}
			id, found, inFront = it.Value(), true, first
		} else if isEmptyTimestamp(it.Value()) {
			stamp = true
		}
		first = false
	}
	if found {
		if err := checkID(id); err != nil {
			return nil, err
		}
		if inFront && !stamp {
			return doc, checkSize(doc)
		}
	} else {
		id = value.ObjectID(db.objectIDs.next(db.env))
	}
	out := make(bsoncore.Document, 4, len(doc)+4+len("_id")+2+len(id.Value))
	out = bsoncore.AppendValueElement(out, "_id", bsoncore.Value{Type: bsoncore.Type(id.Type), Data: id.Value})
	for it = value.Elements(doc); it.Next(); {
		if v := it.Value(); string(it.Name()) != "_id" {
			if isEmptyTimestamp(v) {
				v = value.Timestamp(uint32(db.env.Clock.Now().Unix()), db.ordinal.Add(1))
			}
			out = bsoncore.AppendHeader(out, bsoncore.Type(v.Type), string(it.Name()))
			out = append(out, v.Value...)
		}
	}
	out = append(out, 0)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return bson.Raw(out), checkSize(bson.Raw(out))
}

func isEmptyTimestamp(v bson.RawValue) bool {
	return v.Type == bson.TypeTimestamp && binary.LittleEndian.Uint64(v.Value) == 0
}

func checkSize(doc bson.Raw) error {
	if len(doc) > documentMax {
		return mongoerr.BSONObjectTooLarge.Errorf("object to insert too large. size in bytes: %d, max size: %d", len(doc), documentMax)
	}
	return nil
}

// checkID says whether id may be an _id.
func checkID(id bson.RawValue) error {
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return mongoerr.InvalidIDField.Errorf("The '_id' value cannot be of type %s", value.TypeName(id.Type))
	case bson.TypeEmbeddedDocument:
		for it := value.Elements(id.Value); it.Next(); {
			if name := string(it.Name()); strings.HasPrefix(name, "$") && name != "$ref" && name != "$id" && name != "$db" {
				return mongoerr.DollarPrefixedFieldName.Errorf("_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", name)
			}
		}
	}
	return nil
}

// objectIDs makes ObjectIDs: seconds, a number drawn when the database is opened, and a counter.
type objectIDs struct {
	random  [5]byte
	counter atomic.Uint32
}

func (o *objectIDs) init(e *env.Env) {
	x := e.Rand.Uint64()
	for i := range o.random {
		o.random[i] = byte(x >> (8 * i))
	}
	o.counter.Store(uint32(e.Rand.Uint64()))
}

func (o *objectIDs) next(e *env.Env) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], uint32(e.Clock.Now().Unix()))
	copy(id[4:], o.random[:])
	n := o.counter.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

// appendField adds a field at the end of a document, which is changed.
func appendField(doc []byte, name string, v bson.RawValue) bson.Raw {
	doc = bsoncore.AppendHeader(doc[:len(doc)-1], bsoncore.Type(v.Type), name)
	doc = append(append(doc, v.Value...), 0)
	binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
	return doc
}

// noFields is an empty document to append to.
func noFields() bson.Raw { return bson.Raw{5, 0, 0, 0, 0} }
