package unified

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

func closeClient(ctx context.Context, _ *run, c *client, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, c.Disconnect(ctx)
}

func listDatabases(ctx context.Context, _ *run, c *client, a *args) (any, error) {
	filter := want(a, "filter", asDocument)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.ListDatabases(ctx, orEmpty(filter))
	if err != nil {
		return nil, err
	}
	out := bson.A{}
	for _, d := range res.Databases {
		out = append(out, bson.D{{Key: "name", Value: d.Name}, {Key: "sizeOnDisk", Value: d.SizeOnDisk}, {Key: "empty", Value: d.Empty}})
	}
	return out, nil
}

func listDatabaseNames(ctx context.Context, _ *run, c *client, a *args) (any, error) {
	filter := want(a, "filter", asDocument)
	if err := a.done(); err != nil {
		return nil, err
	}
	return c.ListDatabaseNames(ctx, orEmpty(filter))
}

func listCollections(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	filter, o := want(a, "filter", asDocument), options.ListCollections()
	set(a, "batchSize", asInt32, o.SetBatchSize)
	set(a, "nameOnly", asBool, o.SetNameOnly)
	if err := a.done(); err != nil {
		return nil, err
	}
	cur, err := db.ListCollections(ctx, orEmpty(filter), o)
	return all(ctx, cur, err)
}

func listCollectionNames(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	filter := want(a, "filter", asDocument)
	if err := a.done(); err != nil {
		return nil, err
	}
	return db.ListCollectionNames(ctx, orEmpty(filter))
}

func createCollection(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	name := need(a, "collection", asString)
	if a.has("viewOn") {
		on, pipeline, o := want(a, "viewOn", asString), want(a, "pipeline", asList), options.CreateView()
		set(a, "collation", asCollation, o.SetCollation)
		if err := a.done(); err != nil {
			return nil, err
		}
		if pipeline == nil {
			pipeline = []any{}
		}
		return nil, db.CreateView(ctx, name, on, pipeline, o)
	}
	o := options.CreateCollection()
	set(a, "capped", asBool, o.SetCapped)
	set(a, "changeStreamPreAndPostImages", asAny, o.SetChangeStreamPreAndPostImages)
	set(a, "clusteredIndex", asAny, o.SetClusteredIndex)
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "expireAfterSeconds", asInt64, o.SetExpireAfterSeconds)
	set(a, "max", asInt64, o.SetMaxDocuments)
	set(a, "size", asInt64, o.SetSizeInBytes)
	set(a, "validationAction", asString, o.SetValidationAction)
	set(a, "validationLevel", asString, o.SetValidationLevel)
	set(a, "validator", asAny, o.SetValidator)
	if doc := want(a, "timeseries", asDocument); doc != nil {
		b, ts := newArgs("timeseries", doc), options.TimeSeries()
		set(b, "timeField", asString, ts.SetTimeField)
		set(b, "metaField", asString, ts.SetMetaField)
		set(b, "granularity", asString, ts.SetGranularity)
		set(b, "bucketMaxSpanSeconds", asSeconds, ts.SetBucketMaxSpan)
		set(b, "bucketRoundingSeconds", asSeconds, ts.SetBucketRounding)
		if err := b.done(); err != nil {
			return nil, err
		}
		o.SetTimeSeriesOptions(ts)
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	if err := db.CreateCollection(ctx, name, o); err != nil {
		return nil, err
	}
	return db.Collection(name), nil
}

func dropCollection(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	name := need(a, "collection", asString)
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, db.Collection(name).Drop(ctx)
}

func dropThis(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, c.Drop(ctx)
}

// modifyCollection has no helper in the driver, but it is its command.
func modifyCollection(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	command := bson.D{{Key: "collMod", Value: need(a, "collection", asString)}}
	elements, err := a.raw.Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		if !a.used[e.Key()] {
			command = append(command, bson.E{Key: e.Key(), Value: a.get(e.Key())})
		}
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	return db.RunCommand(ctx, command).Raw()
}

// renameCollection has no helper either.
func renameCollection(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	db := c.Database().Name()
	command := bson.D{{Key: "renameCollection", Value: db + "." + c.Name()}, {Key: "to", Value: db + "." + need(a, "to", asString)}}
	set(a, "dropTarget", asBool, func(b bool) bool { command = append(command, bson.E{Key: "dropTarget", Value: b}); return b })
	if err := a.done(); err != nil {
		return nil, err
	}
	return c.Database().Client().Database("admin").RunCommand(ctx, command).Raw()
}

func runCommandOptions(a *args) (command bson.Raw, o *options.RunCmdOptionsBuilder) {
	a.get("commandName") // the command says it itself
	command, o = need(a, "command", asDocument), options.RunCmd()
	set(a, "readPreference", asReadPreference, func(rp *readpref.ReadPref) any { return o.SetReadPreference(rp) })
	if a.has("writeConcern") || a.has("readConcern") {
		a.fail(skip("the Go driver has no concerns of runCommand"))
	}
	return command, o
}

func runCommand(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	command, o := runCommandOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	return db.RunCommand(ctx, command, o).Raw()
}

// commandCursor opens a cursor by a command. What is said besides goes for its getMore.
func commandCursor(ctx context.Context, db *mongo.Database, a *args) (*mongo.Cursor, error) {
	command, o := runCommandOptions(a)
	a.get("cursorType") // the command says it itself
	var later []func(*mongo.Cursor)
	set(a, "batchSize", asInt32, func(n int32) bool { later = append(later, func(c *mongo.Cursor) { c.SetBatchSize(n) }); return true })
	set(a, "comment", asAny, func(v any) bool { later = append(later, func(c *mongo.Cursor) { c.SetComment(v) }); return true })
	set(a, "maxTimeMS", asMillis, func(d time.Duration) bool {
		later = append(later, func(c *mongo.Cursor) { c.SetMaxAwaitTime(d) })
		return true
	})
	if err := a.done(); err != nil {
		return nil, err
	}
	cur, err := db.RunCommandCursor(ctx, command, o)
	if err != nil {
		return nil, err
	}
	for _, f := range later {
		f(cur)
	}
	return cur, nil
}

func runCursorCommand(ctx context.Context, _ *run, db *mongo.Database, a *args) (any, error) {
	cur, err := commandCursor(ctx, db, a)
	return all(ctx, cur, err)
}

func createCommandCursor(ctx context.Context, r *run, db *mongo.Database, a *args) (any, error) {
	return r.newCursor(commandCursor(ctx, db, a))
}

func createIndex(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	keys, o := need(a, "keys", asDocument), options.Index()
	set(a, "collation", asCollation, o.SetCollation)
	set(a, "expireAfterSeconds", asInt32, o.SetExpireAfterSeconds)
	set(a, "hidden", asBool, o.SetHidden)
	set(a, "name", asString, o.SetName)
	set(a, "partialFilterExpression", asAny, o.SetPartialFilterExpression)
	set(a, "sparse", asBool, o.SetSparse)
	set(a, "unique", asBool, o.SetUnique)
	set(a, "wildcardProjection", asAny, o.SetWildcardProjection)
	if err := a.done(); err != nil {
		return nil, err
	}
	return c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys, Options: o})
}

func dropIndex(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	name := need(a, "name", asString)
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, c.Indexes().DropOne(ctx, name)
}

func dropIndexes(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, c.Indexes().DropAll(ctx)
}

func listIndexes(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	o := options.ListIndexes()
	set(a, "batchSize", asInt32, o.SetBatchSize)
	if err := a.done(); err != nil {
		return nil, err
	}
	cur, err := c.Indexes().List(ctx, o)
	return all(ctx, cur, err)
}

func listIndexNames(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	specs, err := c.Indexes().ListSpecifications(ctx)
	if err != nil {
		return nil, err
	}
	names := bson.A{}
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names, nil
}
