package linearizability

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// client asks a database one thing at a time. An error means that the reply is not known.
type client interface {
	do(in Input) (Output, error)
}

const (
	database   = "histories"
	collection = "c"
)

var namespace = engine.Namespace{DB: database, Coll: collection}

// engineClient asks a database in process. Many may use one.
type engineClient struct{ db *engine.DB }

// prepare makes the collection and its index. It may be repeated.
func (c engineClient) prepare(w *workload) error {
	ctx := context.Background()
	if !w.unique {
		return nil
	}
	_, err := c.db.CreateIndexes(ctx, namespace, []bson.Raw{document("key", bson.D{{Key: "v", Value: 1}}, "name", "v_1", "unique", true)})
	return err
}

func (c engineClient) do(in Input) (out Output, err error) {
	switch in.Kind {
	case Find:
		return c.find(document("_id", in.Doc))
	case Owner:
		return c.find(document("v", in.Value))
	case Scan:
		return c.scan()
	case Count:
		return c.count(nil)
	case CountGroup:
		return c.count(document("g", in.Doc))
	case Set, Inc:
		return c.update(document("_id", in.Doc), in.update(), true)
	case Cas:
		return c.update(document("_id", in.Doc, "v", in.If), in.update(), false)
	case Rename:
		return c.update(document("_id", in.Doc), in.update(), false)
	case Swap, Add:
		r, err := c.db.FindAndModify(context.Background(), namespace, engine.FindAndModify{
			Filter: document("_id", in.Doc), Update: embedded(in.update()), Upsert: true, New: in.Kind == Add})
		return Output{Seen: field(r.Value, "v")}, err
	case Insert, Claim:
		out, err := c.insert(document("_id", in.Doc, "v", in.Value))
		return Output{Dup: out.Dup}, err
	case InsertMany:
		return c.insert(in.documents()...)
	case Delete:
		return c.remove(document("_id", in.Doc))
	case Release:
		return c.remove(document("v", in.Value))
	}
	return out, fmt.Errorf("no such operation: %v", in)
}

func (c engineClient) find(filter bson.Raw) (out Output, err error) {
	docs, err := c.all(filter, nil)
	if err != nil || len(docs) == 0 {
		return out, err
	}
	if len(docs) > 1 {
		return Output{Docs: docs}, nil // no model agrees with that
	}
	if _, err := filter.LookupErr("_id"); err == nil {
		return Output{Seen: docs[0].V}, nil
	}
	return Output{Seen: docs[0].ID}, nil
}

// all reads what matches in one snapshot. between is called after each document.
func (c engineClient) all(filter bson.Raw, between func()) (docs []Doc, err error) {
	ctx := context.Background()
	cur, err := c.db.Find(ctx, namespace, engine.Find{Filter: filter})
	if err != nil {
		return nil, err
	}
	more, err := cur.Batch(ctx, 1<<20, func(doc bson.Raw) bool {
		docs = append(docs, Doc{field(doc, "_id"), field(doc, "v")})
		if between != nil {
			between()
		}
		return true
	})
	if more && err == nil {
		err = errors.New("a batch without a limit left something")
	}
	return docs, err
}

func (c engineClient) scan() (Output, error) {
	docs, err := c.all(nil, nil)
	sortDocs(docs)
	return Output{Docs: docs}, err
}

func (c engineClient) count(filter bson.Raw) (Output, error) {
	n, err := c.db.Count(context.Background(), namespace, engine.Count{Filter: filter})
	return Output{N: n}, err
}

func (c engineClient) update(filter, update bson.Raw, upsert bool) (Output, error) {
	r, err := c.db.Update(context.Background(), namespace, []engine.Update{{Filter: filter, Update: embedded(update), Upsert: upsert}}, true)
	if len(r.Errors) > 0 {
		r.Matched = 0
	}
	return reply(r.Matched, r.Errors, err)
}

func (c engineClient) insert(docs ...bson.Raw) (Output, error) {
	r, err := c.db.Insert(context.Background(), namespace, docs, true)
	return reply(r.N, r.Errors, err)
}

func (c engineClient) remove(filter bson.Raw) (Output, error) {
	r, err := c.db.Delete(context.Background(), namespace, []engine.Delete{{Filter: filter}}, true)
	return reply(r.N, r.Errors, err)
}

func reply(n int, refused []engine.WriteError, err error) (Output, error) {
	out := Output{N: int64(n)}
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
		if mongoerr.Is(err, mongoerr.DuplicateKey) {
			out.Dup, err = true, nil
		}
	}
	return out, err
}

// update is the update document of in.
func (in Input) update() bson.Raw {
	op := "$set"
	if in.Kind == Inc || in.Kind == Add {
		op = "$inc"
	}
	return document(op, bson.D{{Key: "v", Value: in.Value}})
}

// documents are what InsertMany inserts.
func (in Input) documents() []bson.Raw {
	ids, _, pad := in.group()
	docs := make([]bson.Raw, len(ids))
	for i, id := range ids {
		docs[i] = document("_id", id, "g", in.Doc, "pad", make([]byte, pad))
	}
	return docs
}

func document(namesAndValues ...any) bson.Raw {
	var d bson.D
	for i := 0; i < len(namesAndValues); i += 2 {
		d = append(d, bson.E{Key: namesAndValues[i].(string), Value: namesAndValues[i+1]})
	}
	b, err := bson.Marshal(d)
	if err != nil {
		panic(err) // names and numbers can be marshalled
	}
	return b
}

func embedded(d bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: d}
}

// field is a number in a document: 0 if there is no document, or no such field.
func field(doc bson.Raw, name string) int64 {
	if doc == nil {
		return 0
	}
	v, err := doc.LookupErr(name)
	if err != nil {
		return 0
	}
	n, _ := v.AsInt64OK()
	return n
}
