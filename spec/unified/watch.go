package unified

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func watchClient(ctx context.Context, r *run, c *client, a *args) (any, error) {
	return r.watch(ctx, c.Watch, a)
}

func watchDatabase(ctx context.Context, r *run, db *mongo.Database, a *args) (any, error) {
	return r.watch(ctx, db.Watch, a)
}

func watchCollection(ctx context.Context, r *run, c *mongo.Collection, a *args) (any, error) {
	return r.watch(ctx, c.Watch, a)
}

func (r *run) watch(ctx context.Context, open func(context.Context, any, ...options.Lister[options.ChangeStreamOptions]) (*mongo.ChangeStream, error), a *args) (any, error) {
	pipeline, o := want(a, "pipeline", asList), options.ChangeStream()
	set(a, "batchSize", asInt32, o.SetBatchSize)
	set(a, "comment", asAny, o.SetComment)
	set(a, "fullDocument", asString, func(s string) any { return o.SetFullDocument(options.FullDocument(s)) })
	set(a, "fullDocumentBeforeChange", asString, func(s string) any { return o.SetFullDocumentBeforeChange(options.FullDocument(s)) })
	set(a, "maxAwaitTimeMS", asMillis, o.SetMaxAwaitTime)
	set(a, "resumeAfter", asDocument, func(d bson.Raw) any { return o.SetResumeAfter(d) })
	set(a, "showExpandedEvents", asBool, o.SetShowExpandedEvents)
	set(a, "startAfter", asDocument, func(d bson.Raw) any { return o.SetStartAfter(d) })
	if err := a.done(); err != nil {
		return nil, err
	}
	if pipeline == nil {
		pipeline = []any{}
	}
	cs, err := open(ctx, pipeline, o)
	if err != nil {
		return nil, err
	}
	return r.keep(&cursor{cs, func() bson.Raw { return cs.Current }}), nil
}
