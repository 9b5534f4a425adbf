package unified

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func insertOne(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	doc, o := need(a, "document", asDocument), options.InsertOne()
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "comment", asAny, o.SetComment)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.InsertOne(ctx, doc, o)
	if err != nil || !res.Acknowledged {
		return absent{}, err
	}
	return bson.D{{Key: "insertedId", Value: res.InsertedID}}, nil
}

func insertMany(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	docs, o := need(a, "documents", asDocuments), options.InsertMany()
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "ordered", asBool, o.SetOrdered)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.InsertMany(ctx, docs, o)
	if res == nil || !res.Acknowledged {
		return absent{}, err
	}
	ids := bson.D{}
	for i, id := range res.InsertedIDs {
		ids = append(ids, bson.E{Key: fmt.Sprint(i), Value: id})
	}
	return bson.D{
		{Key: "insertedIds", Value: ids}, {Key: "insertedCount", Value: len(ids)}, {Key: "deletedCount", Value: 0}, {Key: "matchedCount", Value: 0},
		{Key: "modifiedCount", Value: 0}, {Key: "upsertedCount", Value: 0}, {Key: "upsertedIds", Value: bson.D{}},
	}, err
}

func deleteOne(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := need(a, "filter", asDocument), options.DeleteOne()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.DeleteOne(ctx, filter, o)
	return deleted(res, err)
}

func deleteMany(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := need(a, "filter", asDocument), options.DeleteMany()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.DeleteMany(ctx, filter, o)
	return deleted(res, err)
}

func deleted(res *mongo.DeleteResult, err error) (any, error) {
	if err != nil || !res.Acknowledged {
		return absent{}, err
	}
	return bson.D{{Key: "deletedCount", Value: res.DeletedCount}}, nil
}

func updateOne(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, change, o := need(a, "filter", asDocument), need(a, "update", asAny), options.UpdateOne()
	set(a, "arrayFilters", asList, o.SetArrayFilters)
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	set(a, "sort", asAny, o.SetSort)
	set(a, "upsert", asBool, o.SetUpsert)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.UpdateOne(ctx, filter, change, o)
	return updated(res, err)
}

func updateMany(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, change, o := need(a, "filter", asDocument), need(a, "update", asAny), options.UpdateMany()
	set(a, "arrayFilters", asList, o.SetArrayFilters)
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	set(a, "upsert", asBool, o.SetUpsert)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.UpdateMany(ctx, filter, change, o)
	return updated(res, err)
}

func replaceOne(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, doc, o := need(a, "filter", asDocument), need(a, "replacement", asDocument), options.Replace()
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	set(a, "sort", asAny, o.SetSort)
	set(a, "upsert", asBool, o.SetUpsert)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.ReplaceOne(ctx, filter, doc, o)
	return updated(res, err)
}

func updated(res *mongo.UpdateResult, err error) (any, error) {
	if err != nil || !res.Acknowledged {
		return absent{}, err
	}
	out := bson.D{
		{Key: "matchedCount", Value: res.MatchedCount}, {Key: "modifiedCount", Value: res.ModifiedCount}, {Key: "upsertedCount", Value: res.UpsertedCount},
	}
	if res.UpsertedID != nil {
		out = append(out, bson.E{Key: "upsertedId", Value: res.UpsertedID})
	}
	return out, nil
}

func findOneAndDelete(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := need(a, "filter", asDocument), options.FindOneAndDelete()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	set(a, "projection", asAny, o.SetProjection)
	set(a, "sort", asAny, o.SetSort)
	if err := a.done(); err != nil {
		return nil, err
	}
	return one(c.FindOneAndDelete(ctx, filter, o))
}

func findOneAndUpdate(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, change, o := need(a, "filter", asDocument), need(a, "update", asAny), options.FindOneAndUpdate()
	set(a, "arrayFilters", asList, o.SetArrayFilters)
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	set(a, "projection", asAny, o.SetProjection)
	set(a, "returnDocument", asReturnDocument, o.SetReturnDocument)
	set(a, "sort", asAny, o.SetSort)
	set(a, "upsert", asBool, o.SetUpsert)
	if err := a.done(); err != nil {
		return nil, err
	}
	return one(c.FindOneAndUpdate(ctx, filter, change, o))
}

func findOneAndReplace(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, doc, o := need(a, "filter", asDocument), need(a, "replacement", asDocument), options.FindOneAndReplace()
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	set(a, "projection", asAny, o.SetProjection)
	set(a, "returnDocument", asReturnDocument, o.SetReturnDocument)
	set(a, "sort", asAny, o.SetSort)
	set(a, "upsert", asBool, o.SetUpsert)
	if err := a.done(); err != nil {
		return nil, err
	}
	return one(c.FindOneAndReplace(ctx, filter, doc, o))
}

func asReturnDocument(v bson.RawValue) (options.ReturnDocument, error) {
	switch v.StringValue() {
	case "Before":
		return options.Before, nil
	case "After":
		return options.After, nil
	}
	return 0, wrong(v, "returnDocument")
}
