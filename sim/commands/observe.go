package commands

import (
	"context"
	"errors"
	"fmt"
	"hash/crc64"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/sim/model"
)

// collections are the names of all.
func (a *asker) collections() (out []string, err error) {
	ctx := context.Background()
	dbs, err := a.db.ListDatabases(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range dbs {
		list, err := a.db.ListCollections(ctx, d.Name)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			out = append(out, d.Name+"."+c.Name)
		}
	}
	return out, nil
}

// observe reads all that a database holds, by every plan there is; all must give the same.
func (a *asker) observe() (*model.State, error) {
	names, err := a.collections()
	if err != nil {
		return nil, err
	}
	var colls []*model.Coll
	for _, name := range names {
		c, err := a.collection(name)
		if err != nil {
			return nil, err
		}
		colls = append(colls, c)
	}
	return model.Observed(colls), nil
}

// collection reads one.
func (a *asker) collection(name string) (*model.Coll, error) {
	ctx := context.Background()
	ns := namespace(name)
	indexes, err := a.indexes(ctx, ns)
	if err != nil {
		return nil, err
	}
	docs, err := a.find(ctx, ns, nil, Plain)
	if err != nil {
		return nil, err
	}
	n, err := a.db.Count(ctx, ns, engine.Count{})
	if err == nil && n != int64(len(docs)) {
		err = fmt.Errorf("%s has %d documents and counts %d", ns, len(docs), n)
	}
	all, e := a.sum(ns, engine.Find{})
	if err = errors.Join(err, e); err != nil {
		return nil, err
	}
	plans := []engine.Find{{Hint: embedded(bson.D{{Key: "$natural", Value: -1}})}, {Hint: hint("_id_")}, {Sort: raw(bson.D{{Key: "_id", Value: -1}})}}
	for _, x := range indexes {
		if !x.Unique { // those are sparse: MongoDB gives less if they are asked for
			plans = append(plans, engine.Find{Hint: hint(x.Name)})
		}
	}
	for _, f := range plans {
		sum, err := a.sum(ns, f)
		if err == nil && sum != all {
			err = fmt.Errorf("%s: by hint %v and sort %v a search gives other documents than by another plan (%d and %d)", ns, f.Hint, f.Sort, sum.n, all.n)
		}
		if err != nil {
			return nil, err
		}
	}
	return &model.Coll{NS: name, Docs: docs, Indexes: indexes}, nil
}

func hint(name string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: text(name)}
}

// digest is a set of documents.
type digest struct {
	n   int
	sum uint64
}

var table = crc64.MakeTable(crc64.ISO)

func (a *asker) sum(ns engine.Namespace, f engine.Find) (d digest, err error) {
	c, err := a.db.Find(context.Background(), ns, f)
	if err != nil {
		return d, err
	}
	_, err = c.Batch(context.Background(), batchMax, func(b bson.Raw) bool {
		d.n++
		d.sum += crc64.Checksum(b, table) * 0x9E3779B97F4A7C15
		return true
	})
	return d, err
}
