package commands

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/sim/model"
)

// What the model's operations are as MongoDB's documents, and back.

func raw(d bson.D) bson.Raw {
	b, err := bson.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("a document of the workload cannot be encoded: %v", err))
	}
	return b
}

func embedded(d bson.D) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw(d)}
}

func text(s string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(s)+1))
	return append(append(b, s...), 0)
}

func namespace(ns string) engine.Namespace {
	db, coll, _ := strings.Cut(ns, ".")
	return engine.Namespace{DB: db, Coll: coll}
}

func encodeValue(v model.Value) any {
	switch v.Kind {
	case model.Int:
		return v.N
	case model.String:
		return v.S
	case model.Date:
		return bson.DateTime(v.N)
	case model.Ints:
		if v.A == nil {
			return []int64{}
		}
		return v.A
	}
	return nil
}

func encode(d *model.Doc) bson.Raw {
	out := bson.D{{Key: "_id", Value: d.ID}}
	for _, f := range d.Fields {
		out = append(out, bson.E{Key: f.Name, Value: encodeValue(f.Value)})
	}
	return raw(out)
}

func filter(f model.Filter) bson.Raw {
	out := bson.D{}
	for _, t := range f {
		v := encodeValue(t.Value)
		if t.Least {
			v = bson.D{{Key: "$gte", Value: v}}
		}
		out = append(out, bson.E{Key: t.Field, Value: v})
	}
	return raw(out)
}

// update is a replacement, or a document of operators, each with its fields.
func update(op *model.Op) bson.RawValue {
	if op.Replace != nil {
		var out bson.D
		for _, f := range op.Replace.Fields {
			out = append(out, bson.E{Key: f.Name, Value: encodeValue(f.Value)})
		}
		return embedded(out)
	}
	out := bson.D{}
	for _, c := range op.Changes {
		v := encodeValue(c.Value)
		if c.Op == "$unset" {
			v = ""
		}
		field := bson.E{Key: c.Field, Value: v}
		if n := len(out); n > 0 && out[n-1].Key == c.Op {
			out[n-1].Value = append(out[n-1].Value.(bson.D), field)
		} else {
			out = append(out, bson.E{Key: c.Op, Value: bson.D{field}})
		}
	}
	return embedded(out)
}

func spec(x model.Index) bson.Raw {
	var key bson.D
	for _, f := range x.Fields {
		key = append(key, bson.E{Key: f, Value: 1})
	}
	out := bson.D{{Key: "key", Value: key}, {Key: "name", Value: x.Name}}
	if x.Unique {
		out = append(out, bson.E{Key: "unique", Value: true}, bson.E{Key: "sparse", Value: true})
	}
	if x.ExpireAfter > 0 {
		out = append(out, bson.E{Key: "expireAfterSeconds", Value: x.ExpireAfter})
	}
	return raw(out)
}

// indexes are a collection's, without that on _id.
func (a *asker) indexes(ctx context.Context, ns engine.Namespace) (out []model.Index, err error) {
	list, err := a.db.ListIndexes(ctx, ns)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		var s struct {
			Name        string `bson:"name"`
			Key         bson.D `bson:"key"`
			Unique      bool   `bson:"unique"`
			ExpireAfter int64  `bson:"expireAfterSeconds"`
		}
		if err := bson.Unmarshal(b, &s); err != nil {
			return nil, err
		}
		if s.Name == "_id_" {
			continue
		}
		x := model.Index{Name: s.Name, Unique: s.Unique, ExpireAfter: s.ExpireAfter}
		for _, f := range s.Key {
			x.Fields = append(x.Fields, f.Key)
		}
		out = append(out, x)
	}
	return out, nil
}
