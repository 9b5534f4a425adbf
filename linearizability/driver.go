package linearizability

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// driverClient asks a server through the official driver. Many may use one.
type driverClient struct{ c *mongo.Collection }

// prepare makes the collection's index. It may be repeated.
func (c driverClient) prepare(ctx context.Context, w *workload) error {
	if !w.unique {
		return nil
	}
	_, err := c.c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "v", Value: 1}}, Options: options.Index().SetUnique(true)})
	return err
}

// do is the engineClient's do over the wire. An error means that the reply is not known.
func (c driverClient) do(ctx context.Context, in Input) (out Output, err error) {
	byID, byV := bson.D{{Key: "_id", Value: in.Doc}}, bson.D{{Key: "v", Value: in.Value}}
	switch in.Kind {
	case Find:
		out.Seen, err = seen(c.c.FindOne(ctx, byID), "v")
	case Owner:
		out.Seen, err = seen(c.c.FindOne(ctx, byV), "_id")
	case Scan:
		out.Docs, err = c.scan(ctx)
	case Count:
		if in.Value%2 == 0 {
			out.N, err = c.c.EstimatedDocumentCount(ctx)
		} else {
			out.N, err = c.c.CountDocuments(ctx, bson.D{})
		}
	case CountGroup:
		out.N, err = c.c.CountDocuments(ctx, bson.D{{Key: "g", Value: in.Doc}})
	case Set, Inc:
		out.N, err = matched(c.c.UpdateOne(ctx, byID, in.update(), options.UpdateOne().SetUpsert(true)))
	case Cas:
		filter := append(byID, bson.E{Key: "v", Value: in.If})
		out.N, err = matched(c.c.UpdateOne(ctx, filter, in.update()))
	case Rename:
		out.N, err = matched(c.c.UpdateOne(ctx, byID, in.update()))
	case Swap, Add:
		opt := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.Before)
		if in.Kind == Add {
			opt.SetReturnDocument(options.After)
		}
		out.Seen, err = seen(c.c.FindOneAndUpdate(ctx, byID, in.update(), opt), "v")
	case Insert, Claim:
		_, err = c.c.InsertOne(ctx, document("_id", in.Doc, "v", in.Value))
	case InsertMany:
		out.N = in.Value
		_, err = c.c.InsertMany(ctx, in.documents())
		if refused, ok := errors.AsType[mongo.BulkWriteException](err); ok && len(refused.WriteErrors) > 0 {
			out.N = int64(refused.WriteErrors[0].Index)
		}
	case Delete:
		out.N, err = deleted(c.c.DeleteOne(ctx, byID))
	case Release:
		out.N, err = deleted(c.c.DeleteOne(ctx, byV))
	default:
		return out, fmt.Errorf("no such operation: %v", in)
	}
	if mongo.IsDuplicateKeyError(err) {
		out.Dup, err = true, nil
	}
	return out, err
}

// scan reads all documents in one batch, which is one snapshot.
func (c driverClient) scan(ctx context.Context) (docs []Doc, err error) {
	cur, err := c.c.Find(ctx, bson.D{}, options.Find().SetBatchSize(1<<20).SetProjection(bson.D{{Key: "pad", Value: 0}}))
	if err != nil {
		return nil, err
	}
	if cur.ID() != 0 {
		return nil, errors.New("a scan did not fit into one batch")
	}
	for cur.Next(ctx) {
		docs = append(docs, Doc{field(cur.Current, "_id"), field(cur.Current, "v")})
	}
	sortDocs(docs)
	return docs, cur.Err()
}

func seen(r *mongo.SingleResult, name string) (int64, error) {
	doc, err := r.Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return 0, nil
	}
	return field(doc, name), err
}

func matched(r *mongo.UpdateResult, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.MatchedCount, nil
}

func deleted(r *mongo.DeleteResult, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.DeletedCount, nil
}
