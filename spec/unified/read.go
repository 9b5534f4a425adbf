package unified

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// all drains what a find or an aggregation gave.
func all(ctx context.Context, cur *mongo.Cursor, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	docs := []bson.Raw{}
	if err := cur.All(ctx, &docs); err != nil {
		return nil, err
	}
	return docs, nil
}

// one is a result of at most one document.
func one(res *mongo.SingleResult) (any, error) {
	doc, err := res.Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	return doc, err
}

func findOptions(a *args) (filter bson.Raw, o *options.FindOptionsBuilder) {
	filter, o = need(a, "filter", asDocument), options.Find()
	set(a, "allowDiskUse", asBool, o.SetAllowDiskUse)
	set(a, "batchSize", asInt32, o.SetBatchSize)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asDocument, func(d bson.Raw) any { return o.SetLet(d) })
	set(a, "limit", asInt64, o.SetLimit)
	set(a, "max", asAny, o.SetMax)
	set(a, "maxAwaitTimeMS", asMillis, o.SetMaxAwaitTime)
	set(a, "min", asAny, o.SetMin)
	set(a, "noCursorTimeout", asBool, o.SetNoCursorTimeout)
	set(a, "projection", asAny, o.SetProjection)
	set(a, "returnKey", asBool, o.SetReturnKey)
	set(a, "showRecordId", asBool, o.SetShowRecordID)
	set(a, "skip", asInt64, o.SetSkip)
	set(a, "sort", asAny, o.SetSort)
	set(a, "cursorType", asCursorType, o.SetCursorType)
	return filter, o
}

func asCursorType(v bson.RawValue) (options.CursorType, error) {
	switch v.StringValue() {
	case "nonTailable":
		return options.NonTailable, nil
	case "tailable":
		return options.Tailable, nil
	case "tailableAwait":
		return options.TailableAwait, nil
	}
	return 0, wrong(v, "type of cursor")
}

func findMany(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := findOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	cur, err := c.Find(ctx, filter, o)
	return all(ctx, cur, err)
}

func findOne(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := need(a, "filter", asDocument), options.FindOne()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "projection", asAny, o.SetProjection)
	set(a, "skip", asInt64, o.SetSkip)
	set(a, "sort", asAny, o.SetSort)
	if err := a.done(); err != nil {
		return nil, err
	}
	return one(c.FindOne(ctx, filter, o))
}

func aggregateOptions(a *args) (pipeline []any, o *options.AggregateOptionsBuilder) {
	pipeline, o = need(a, "pipeline", asList), options.Aggregate()
	set(a, "allowDiskUse", asBool, o.SetAllowDiskUse)
	set(a, "batchSize", asInt32, o.SetBatchSize)
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "let", asAny, o.SetLet)
	return pipeline, o
}

func aggregate(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	pipeline, o := aggregateOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	cur, err := c.Aggregate(ctx, pipeline, o)
	return all(ctx, cur, err)
}

func aggregateDatabase(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	pipeline, o := aggregateOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	cur, err := db.Aggregate(ctx, pipeline, o)
	return all(ctx, cur, err)
}

func distinct(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	field, filter, o := need(a, "fieldName", asString), want(a, "filter", asDocument), options.Distinct()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	if err := a.done(); err != nil {
		return nil, err
	}
	res := c.Distinct(ctx, field, orEmpty(filter), o)
	array, err := res.Raw()
	if err != nil {
		return nil, err
	}
	return bson.RawValue{Type: bson.TypeArray, Value: array}, nil
}

// orEmpty is a filter that may be left out.
func orEmpty(filter bson.Raw) any {
	if filter == nil {
		return bson.D{}
	}
	return filter
}

func countDocuments(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := want(a, "filter", asDocument), options.Count()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "hint", asAny, o.SetHint)
	set(a, "limit", asInt64, o.SetLimit)
	set(a, "skip", asInt64, o.SetSkip)
	if err := a.done(); err != nil {
		return nil, err
	}
	return c.CountDocuments(ctx, orEmpty(filter), o)
}

func estimatedDocumentCount(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	o := options.EstimatedDocumentCount()
	set(a, "comment", asAny, o.SetComment)
	if err := a.done(); err != nil {
		return nil, err
	}
	return c.EstimatedDocumentCount(ctx, o)
}

// count is the command itself: the driver has given up its helper.
func count(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	command := bson.D{{Key: "count", Value: c.Name()}}
	add := func(name string) func(any) any {
		return func(v any) any { command = append(command, bson.E{Key: name, Value: v}); return v }
	}
	set(a, "filter", asAny, add("query"))
	set(a, "collation", asAny, add("collation"))
	set(a, "comment", asAny, add("comment"))
	set(a, "hint", asAny, add("hint"))
	set(a, "limit", asAny, add("limit"))
	set(a, "skip", asAny, add("skip"))
	if err := a.done(); err != nil {
		return nil, err
	}
	var res struct{ N int64 }
	if err := c.Database().RunCommand(ctx, command).Decode(&res); err != nil {
		return nil, err
	}
	return res.N, nil
}

// cursor is a cursor entity: a client's cursor, or a change stream.
type cursor struct {
	it interface {
		Next(context.Context) bool
		TryNext(context.Context) bool
		Err() error
		Close(context.Context) error
	}
	doc func() bson.Raw
}

// Close ends the cursor on the server.
func (c *cursor) Close(ctx context.Context) { _ = c.it.Close(ctx) }

// keep remembers a cursor, so that it is closed at the end.
func (r *run) keep(c *cursor) *cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursors = append(r.cursors, c)
	return c
}

func (r *run) newCursor(cur *mongo.Cursor, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r.keep(&cursor{cur, func() bson.Raw { return cur.Current }}), nil
}

func createFindCursor(ctx context.Context, r *run, c *mongo.Collection, a *args) (any, error) {
	filter, o := findOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	return r.newCursor(c.Find(ctx, filter, o))
}

func closeCursor(ctx context.Context, _ *run, c *cursor, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, c.it.Close(ctx)
}

func iterateOnce(ctx context.Context, _ *run, c *cursor, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	if c.it.TryNext(ctx) {
		return c.doc(), nil
	}
	return nil, c.it.Err()
}

func iterateUntil(ctx context.Context, _ *run, c *cursor, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	if c.it.Next(ctx) {
		return c.doc(), nil
	}
	if err := c.it.Err(); err != nil {
		return nil, err
	}
	return nil, mongo.ErrNoDocuments
}

// wait is for what only time shows.
func wait(ctx context.Context, _ *run, _ struct{}, a *args) (any, error) {
	d := need(a, "ms", asMillis)
	if err := a.done(); err != nil {
		return nil, err
	}
	select {
	case <-time.After(d):
		return nil, nil
	case <-ctx.Done():
		return nil, &unable{ctx.Err()}
	}
}
