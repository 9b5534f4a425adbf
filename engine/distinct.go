package engine

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Distinct is a query for the values of one path.
type Distinct struct {
	Key       string
	Filter    bson.Raw
	Hint      bson.RawValue
	Collation bson.Raw
}

// Distinct answers with an array of the values, in their canonical order. Of an array it takes the elements.
func (db *DB) Distinct(ctx context.Context, ns Namespace, d Distinct) (bson.RawArray, error) {
	values := valueSet{found: map[string]bson.RawValue{}}
	path := value.ParsePath(d.Key)
	each := func(doc bson.Raw) error {
		value.Walk(doc, path, value.LeafArray, func(v bson.RawValue, _ int) bool {
			if v.Type != bson.TypeArray {
				values.add(v)
				return false
			}
			for it := value.Elements(v.Value); it.Next(); {
				values.add(it.Value())
			}
			return false
		})
		if values.size > documentMax {
			return mongoerr.Code(17217).Errorf("distinct too big, 16mb cap")
		}
		return nil
	}
	err := db.run(ctx, ns, Find{Filter: d.Filter, Hint: d.Hint, Collation: d.Collation, Reads: []string{d.Key}}, func(q *query.Query, _ *storage.Collection) bool {
		if q.Collation != nil {
			values.coll = q.Collation
		}
		return true
	}, each)
	if OnView(err) {
		err = db.distinctOnView(ctx, ns, d, &values, each)
	}
	if err != nil {
		return nil, err
	}
	return values.array(), nil
}

// valueSet holds values by their keys: equal ones, whatever their types, are one.
type valueSet struct {
	found map[string]bson.RawValue
	coll  key.Collation
	size  int
	buf   []byte
}

func (s *valueSet) add(v bson.RawValue) {
	if value.IsMissing(v) {
		return
	}
	s.buf = key.AppendBy(s.coll, s.buf[:0], v)
	if _, ok := s.found[string(s.buf)]; ok {
		return
	}
	s.found[string(s.buf)] = bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)}
	s.size += len(v.Value) + 8
}

func (s *valueSet) array() bson.RawArray {
	b := bsoncore.NewArrayBuilder()
	for _, k := range slices.Sorted(maps.Keys(s.found)) {
		v := s.found[k]
		b.AppendValue(bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	}
	return bson.RawArray(b.Build())
}
