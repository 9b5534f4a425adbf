package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// world is what a pipeline sees beside the collection that it is run on: the other collections of the snapshot, and figures.
type world struct {
	db                   *DB
	terms                *terms
	operations, sessions func() []bson.Raw
	disk                 spill.Disk

	views int // that were named

	// Of the batch under way:
	sn  *storage.Snapshot
	ctx context.Context
}

func (w *world) collection(ns pipeline.Namespace) (*collection, *storage.Collection, error) {
	to := Namespace{DB: ns.DB, Coll: ns.Collection}
	if err := to.Check(); err != nil {
		return nil, nil, err
	}
	return w.db.collection(w.sn, to)
}

func (w *world) Find(ns pipeline.Namespace, f pipeline.Find) (pipeline.Iterator, error) {
	c, sc, err := w.collection(ns)
	if err != nil || c == nil {
		return pipeline.Documents(nil), err
	}
	q, err := w.db.frontQuery(w.terms, f)
	if err != nil {
		return nil, err
	}
	q.Disk = w.disk
	p, err := query.New(q, c.plan, source{sc}, &c.choices)
	if err != nil {
		return nil, err
	}
	r := p.Start()
	r.Attach(source{sc}, w.db.tick(w.ctx))
	return found{r}, nil
}

// found are the documents of a run.
type found struct{ *query.Run }

func (f found) Next() (bson.Raw, error) {
	if !f.Run.Next() {
		return nil, f.Err()
	}
	return f.Doc(), nil
}

func (f found) Close() error {
	f.Detach()
	return f.Run.Close()
}

func (w *world) Indexed(ns pipeline.Namespace, path string) bool {
	c, _, err := w.collection(ns)
	if err != nil || c == nil {
		return false
	}
	for _, x := range c.plan {
		if x.Fields[0].Path == path && x.Partial == nil && !x.Sparse && !x.Hidden {
			return true
		}
	}
	return false
}

// Statistics are the documents of the stages that tell about the server.
func (w *world) Statistics(stage string, ns pipeline.Namespace, arg bson.RawValue) (pipeline.Iterator, error) {
	switch stage {
	case "$collStats":
		return w.collStats(ns, arg)
	case "$indexStats":
		return w.indexStats(ns)
	case "$planCacheStats":
		return pipeline.Documents(nil), nil // plans are not kept
	case "$currentOp":
		if w.operations != nil {
			return pipeline.Documents(w.operations()), nil
		}
	case "$listLocalSessions":
		if value.Lookup(arg.Value, "users").Type == 0 && w.sessions != nil { // without users, all are everybody's
			return pipeline.Documents(w.sessions()), nil
		}
	}
	return nil, mongoerr.NotImplemented.Errorf("the stage %s is not implemented yet", stage)
}

func (w *world) collStats(ns pipeline.Namespace, arg bson.RawValue) (pipeline.Iterator, error) {
	c, sc, err := w.collection(ns)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, mongoerr.NamespaceNotFound.Errorf("Collection [%s] not found.", ns)
	}
	s := statsOf(c, sc)
	d := bson.D{{Key: "ns", Value: ns.String()}, {Key: "localTime", Value: bson.NewDateTimeFromTime(w.db.env.Clock.Now())}}
	for it := value.Elements(arg.Value); it.Next(); {
		name, scale := string(it.Name()), int64(1)
		switch name {
		case "storageStats":
			if v := value.Lookup(it.Value().Value, "scale"); it.Value().Type == bson.TypeEmbeddedDocument && value.IsNumber(v.Type) {
				if scale = int64(value.AsDouble(v)); scale < 1 {
					return nil, mongoerr.BadValue.Errorf("$collStats: scale must be at least 1")
				}
			}
			average, sizes, total := int64(0), bson.D{}, int64(0)
			if s.Count > 0 {
				average = s.Size / s.Count
			}
			for _, x := range s.IndexSizes {
				sizes, total = append(sizes, bson.E{Key: x.Name, Value: x.Size / scale}), total+x.Size
			}
			figures := bson.D{
				{Key: "size", Value: s.Size / scale}, {Key: "count", Value: s.Count}, {Key: "avgObjSize", Value: average},
				{Key: "storageSize", Value: s.StorageSize / scale}, {Key: "capped", Value: c.def.Options.Capped}, {Key: "nindexes", Value: len(sizes)},
				{Key: "totalIndexSize", Value: total / scale}, {Key: "indexSizes", Value: sizes}, {Key: "scaleFactor", Value: scale},
			}
			if o := &c.def.Options; o.Capped {
				figures = append(figures, bson.E{Key: "max", Value: o.Max}, bson.E{Key: "maxSize", Value: o.Size / scale})
			}
			d = append(d, bson.E{Key: name, Value: figures})
		case "count":
			d = append(d, bson.E{Key: name, Value: s.Count})
		default:
			return nil, mongoerr.NotImplemented.Errorf("$collStats: %s is not implemented", name)
		}
	}
	return marshalled(d)
}

// indexStats leaves out how often an index was used, which nobody counts.
func (w *world) indexStats(ns pipeline.Namespace) (pipeline.Iterator, error) {
	c, _, err := w.collection(ns)
	if err != nil || c == nil {
		return pipeline.Documents(nil), err
	}
	var docs []any
	for i := range c.def.Indexes {
		x := &c.def.Indexes[i]
		d := bson.D{{Key: "name", Value: x.Name}, {Key: "key", Value: x.Key}, {Key: "spec", Value: x.Raw}}
		if x.Building {
			d = append(d, bson.E{Key: "building", Value: true})
		}
		docs = append(docs, d)
	}
	return marshalled(docs...)
}

func marshalled(docs ...any) (pipeline.Iterator, error) {
	list := make([]bson.Raw, len(docs))
	for i, d := range docs {
		var err error
		if list[i], err = bson.Marshal(d); err != nil {
			return nil, err
		}
	}
	return pipeline.Documents(list), nil
}
