package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/server"
	"github.com/multiforadb/multiforadb/simfs"
)

// world is a database with a server on it, and the official driver as its client.
type world struct {
	ctx    context.Context
	client *mongo.Client
	db     *mongo.Database
}

// each runs f in a world in memory whose driver dials in process, and in two on the disk where it uses a socket.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	for _, way := range []string{"in process", "socket", "socket compressed"} {
		t.Run(way, func(t *testing.T) {
			e, dir := env.Real(), t.TempDir()
			if way == "in process" {
				e, dir = simfs.Memory(), "db"
			}
			db, err := engine.Open(dir, engine.Options{Env: e, TTLSweep: -1})
			if err != nil {
				t.Fatal(err)
			}
			srv := server.New(db, server.Options{Env: e})
			opts := options.Client().SetServerMonitoringMode("poll").ApplyURI("mongodb://in-process")
			if way == "in process" {
				opts.SetDialer(srv)
			} else {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				go srv.Serve(l)
				opts.ApplyURI("mongodb://" + l.Addr().String())
			}
			if way == "socket compressed" {
				opts.SetCompressors([]string{"zstd", "snappy"})
			}
			client, err := mongo.Connect(opts.SetRetryReads(false).SetRetryWrites(false).SetServerSelectionTimeout(5 * time.Second))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			t.Cleanup(func() {
				cancel()
				err := errors.Join(client.Disconnect(context.Background()), srv.Close(), db.Close())
				if err != nil {
					t.Error(err)
				}
			})
			f(t, &world{ctx, client, client.Database("test")})
		})
	}
}

// all is what a find gives.
func (w *world) all(t *testing.T, c *mongo.Collection, filter any, opts ...options.Lister[options.FindOptions]) []bson.M {
	t.Helper()
	cur, err := c.Find(w.ctx, filter, opts...)
	if err != nil {
		t.Fatal(err)
	}
	out := []bson.M{}
	if err := cur.All(w.ctx, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func ids(docs []bson.M) string {
	var s []string
	for _, d := range docs {
		s = append(s, fmt.Sprint(d["_id"]))
	}
	return strings.Join(s, " ")
}

func numbered(n int) []any {
	docs := make([]any, n)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 10}, {Key: "name", Value: fmt.Sprintf("n%03d", i)}}
	}
	return docs
}

func TestDriverReadsWhatItWrote(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c")
		if res, err := c.InsertMany(w.ctx, numbered(500)); err != nil || len(res.InsertedIDs) != 500 {
			t.Fatal(err)
		}
		if _, err := c.Indexes().CreateOne(w.ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}, {Key: "name", Value: -1}}}); err != nil {
			t.Fatal(err)
		}
		got := w.all(t, c, bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: 8}}}},
			options.Find().SetSort(bson.D{{Key: "a", Value: 1}, {Key: "name", Value: -1}}).SetSkip(1).SetLimit(60).SetBatchSize(7))
		if len(got) != 60 || got[0]["_id"] != int32(488) || got[49]["_id"] != int32(499) {
			t.Errorf("%d: %s", len(got), ids(got))
		}
		got = w.all(t, c, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{3, 1, 2.0, 1000}}}}}, options.Find().SetProjection(bson.D{{Key: "name", Value: 1}}))
		if ids(got) != "1 2 3" || len(got[0]) != 2 {
			t.Errorf("%v", got)
		}
		if n, err := c.EstimatedDocumentCount(w.ctx); n != 500 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if got := w.all(t, c, bson.D{}); len(got) != 500 {
			t.Errorf("%d documents", len(got))
		}
		if err := c.FindOne(w.ctx, bson.D{{Key: "_id", Value: -1}}).Err(); err != mongo.ErrNoDocuments {
			t.Errorf("%v", err)
		}
		if res, err := c.DeleteMany(w.ctx, bson.D{{Key: "a", Value: bson.D{{Key: "$lt", Value: 5}}}}); err != nil || res.DeletedCount != 250 {
			t.Errorf("%v, %v", res, err)
		}
		if res, err := c.DeleteOne(w.ctx, bson.D{{Key: "a", Value: 7}}); err != nil || res.DeletedCount != 1 {
			t.Errorf("%v, %v", res, err)
		}
		if n, err := c.CountDocuments(w.ctx, bson.D{{Key: "a", Value: 8}}, options.Count().SetSkip(3).SetLimit(40)); n != 40 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := c.CountDocuments(w.ctx, bson.D{{Key: "a", Value: 80}}); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		stage := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
		cur, err := c.Aggregate(w.ctx, mongo.Pipeline{
			stage("$match", stage("a", 9)), stage("$match", stage("_id", stage("$gt", 400))), stage("$sort", stage("_id", -1)),
			stage("$skip", 1), stage("$limit", 3), stage("$project", stage("name", 1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := cur.All(w.ctx, &got); err != nil || ids(got) != "489 479 469" || len(got[0]) != 2 {
			t.Errorf("%v, %v", got, err)
		}
		var values []int32
		if err := c.Distinct(w.ctx, "a", bson.D{}).Decode(&values); err != nil || !slices.Equal(values, []int32{5, 6, 7, 8, 9}) {
			t.Errorf("%v, %v", values, err)
		}
	})
}

func TestDriverUpdates(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c")
		if _, err := c.InsertMany(w.ctx, numbered(20)); err != nil {
			t.Fatal(err)
		}
		set := func(k string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: k, Value: v}}}} }
		res, err := c.UpdateMany(w.ctx, bson.D{{Key: "a", Value: 3}}, set("x", 1))
		if err != nil || res.MatchedCount != 2 || res.ModifiedCount != 2 {
			t.Errorf("%+v, %v", res, err)
		}
		res, err = c.UpdateOne(w.ctx, bson.D{{Key: "_id", Value: 100}}, set("x", 2), options.UpdateOne().SetUpsert(true))
		if err != nil || res.UpsertedID != int32(100) || res.UpsertedCount != 1 || res.MatchedCount != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		res, err = c.ReplaceOne(w.ctx, bson.D{{Key: "_id", Value: 5}}, bson.D{{Key: "y", Value: 1}})
		if err != nil || res.ModifiedCount != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		if _, err = c.UpdateOne(w.ctx, bson.D{}, set("_id", 7)); err == nil {
			t.Error("_id was changed")
		}
		var doc bson.M
		err = c.FindOneAndUpdate(w.ctx, bson.D{{Key: "x", Value: bson.D{{Key: "$exists", Value: true}}}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "x", Value: 5}}}},
			options.FindOneAndUpdate().SetSort(bson.D{{Key: "_id", Value: -1}}).SetReturnDocument(options.After)).Decode(&doc)
		if err != nil || doc["_id"] != int32(100) || doc["x"] != int32(7) {
			t.Errorf("%v, %v", doc, err)
		}
		if err := c.FindOneAndDelete(w.ctx, bson.D{{Key: "_id", Value: 100}}).Decode(&doc); err != nil || doc["x"] != int32(7) {
			t.Errorf("%v, %v", doc, err)
		}
		if err := c.FindOneAndDelete(w.ctx, bson.D{{Key: "_id", Value: 100}}).Err(); err != mongo.ErrNoDocuments {
			t.Errorf("%v", err)
		}
		bulk, err := c.BulkWrite(w.ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: 200}}),
			mongo.NewUpdateManyModel().SetFilter(bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 15}}}}).SetUpdate(set("z", 1)),
			mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 0}}),
		})
		if err != nil || bulk.InsertedCount != 1 || bulk.ModifiedCount != 5 || bulk.DeletedCount != 1 {
			t.Errorf("%+v, %v", bulk, err)
		}
	})
}

func TestDriverBulkWritesOnSeveralCollections(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := func(n int) bson.D { return bson.D{{Key: "_id", Value: n}} }
		var writes []mongo.ClientBulkWrite
		add := func(coll string, m mongo.ClientWriteModel) {
			writes = append(writes, mongo.ClientBulkWrite{Database: "test", Collection: coll, Model: m})
		}
		for i := range 5 {
			add("a", mongo.NewClientInsertOneModel().SetDocument(id(i)))
		}
		add("b", mongo.NewClientInsertOneModel().SetDocument(id(7)))
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
		add("a", mongo.NewClientUpdateManyModel().SetFilter(bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 2}}}}).SetUpdate(set))
		add("b", mongo.NewClientUpdateOneModel().SetFilter(id(9)).SetUpdate(set).SetUpsert(true))
		add("b", mongo.NewClientReplaceOneModel().SetFilter(id(7)).SetReplacement(bson.D{{Key: "y", Value: 1}}))
		add("a", mongo.NewClientDeleteOneModel().SetFilter(id(0)))
		add("a", mongo.NewClientDeleteManyModel().SetFilter(bson.D{{Key: "x", Value: 1}}))
		for _, verbose := range []bool{false, true} {
			res, err := w.client.BulkWrite(w.ctx, writes, options.ClientBulkWrite().SetVerboseResults(verbose))
			if err != nil || res.InsertedCount != 6 || res.MatchedCount != 4 || res.ModifiedCount != 4 || res.UpsertedCount != 1 || res.DeletedCount != 4 {
				t.Fatalf("%+v, %v", res, err)
			}
			if verbose && (len(res.InsertResults) != 6 || res.UpdateResults[6].ModifiedCount != 3 || res.UpdateResults[7].UpsertedID != int32(9) || res.DeleteResults[10].DeletedCount != 3) {
				t.Errorf("%+v", res)
			}
			if got := ids(w.all(t, w.db.Collection("a"), bson.D{})); got != "1" {
				t.Errorf("there are %s", got)
			}
			if err := w.db.Drop(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		writes = nil
		for _, i := range []int{1, 2, 1, 3} {
			add("a", mongo.NewClientInsertOneModel().SetDocument(id(i)))
		}
		_, err := w.client.BulkWrite(w.ctx, writes)
		if be, ok := errors.AsType[mongo.ClientBulkWriteException](err); !ok || len(be.WriteErrors) != 1 || be.WriteErrors[2].Code != 11000 {
			t.Errorf("%v", err)
		}
		if got := ids(w.all(t, w.db.Collection("a"), bson.D{})); got != "1 2" {
			t.Errorf("there are %s", got)
		}
	})
}

func TestDriverSeesErrors(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c")
		unique := mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}, Options: options.Index().SetUnique(true)}
		if _, err := c.Indexes().CreateOne(w.ctx, unique); err != nil {
			t.Fatal(err)
		}
		doc := func(id, a int) bson.D { return bson.D{{Key: "_id", Value: id}, {Key: "a", Value: a}} }
		_, err := c.InsertMany(w.ctx, []any{doc(1, 1), doc(2, 1), doc(3, 1), doc(4, 4)}, options.InsertMany().SetOrdered(false))
		be, ok := errors.AsType[mongo.BulkWriteException](err)
		if !ok || len(be.WriteErrors) != 2 || be.WriteErrors[0].Index != 1 || be.WriteErrors[1].Index != 2 || be.WriteErrors[0].Code != 11000 {
			t.Fatalf("%v", err)
		}
		raw := be.WriteErrors[0].Raw
		if !mongo.IsDuplicateKeyError(err) || raw.Lookup("keyPattern", "a").AsInt64() != 1 || raw.Lookup("keyValue", "a").AsInt64() != 1 {
			t.Errorf("%s", raw)
		}
		if _, err := c.InsertMany(w.ctx, []any{doc(5, 5), doc(6, 5), doc(7, 7)}); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("%v", err)
		}
		if got := ids(w.all(t, c, bson.D{})); got != "1 4 5" {
			t.Errorf("there are %s", got)
		}
		for _, x := range []struct {
			code int32
			err  error
		}{
			{2, c.FindOne(w.ctx, bson.D{{Key: "$nonsense", Value: 1}}).Err()},
			{238, w.db.RunCommand(w.ctx, bson.D{{Key: "mapReduce", Value: "c"}}).Err()},
			{59, w.db.RunCommand(w.ctx, bson.D{{Key: "nonsense", Value: 1}}).Err()},
			{26, w.db.RunCommand(w.ctx, bson.D{{Key: "listIndexes", Value: "none"}}).Err()},
			{73, w.db.RunCommand(w.ctx, bson.D{{Key: "create", Value: ""}}).Err()},
			{27, c.Indexes().DropOne(w.ctx, "none")},
		} {
			if ce, ok := errors.AsType[mongo.CommandError](x.err); !ok || ce.Code != x.code {
				t.Errorf("%d: %v", x.code, x.err)
			}
		}
		sess, err := w.client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		defer sess.EndSession(w.ctx)
		_, err = sess.WithTransaction(w.ctx, func(ctx context.Context) (any, error) { return c.InsertOne(ctx, doc(9, 9)) })
		if ce, ok := errors.AsType[mongo.CommandError](err); !ok || ce.Code != 20 {
			t.Errorf("a transaction: %v", err)
		}
	})
}

func TestDriverSeesTheCatalog(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, name := range []string{"b", "a", "c"} {
			if err := w.db.CreateCollection(w.ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		if names, err := w.db.ListCollectionNames(w.ctx, bson.D{}); err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("%v, %v", names, err)
		}
		specs, err := w.db.ListCollectionSpecifications(w.ctx, bson.D{{Key: "name", Value: bson.D{{Key: "$ne", Value: "b"}}}}, options.ListCollections().SetBatchSize(1))
		if err != nil || len(specs) != 2 || specs[1].Name != "c" || specs[1].Type != "collection" || specs[1].UUID == nil || specs[1].IDIndex.Name != "_id_" {
			t.Errorf("%+v, %v", specs, err)
		}
		c := w.db.Collection("a")
		models := []mongo.IndexModel{
			{Keys: bson.D{{Key: "x", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(60)},
			{Keys: bson.D{{Key: "y", Value: -1}, {Key: "z", Value: 1}}, Options: options.Index().SetSparse(true).SetName("yz")},
		}
		if names, err := c.Indexes().CreateMany(w.ctx, models); err != nil || !slices.Equal(names, []string{"x_1", "yz"}) {
			t.Errorf("%v, %v", names, err)
		}
		indexes, err := c.Indexes().ListSpecifications(w.ctx)
		if err != nil || len(indexes) != 3 || indexes[0].Name != "_id_" || *indexes[1].ExpireAfterSeconds != 60 || !*indexes[2].Sparse {
			t.Errorf("%+v, %v", indexes, err)
		}
		if err := c.Indexes().DropOne(w.ctx, "yz"); err != nil {
			t.Error(err)
		}
		if err := c.Indexes().DropAll(w.ctx); err != nil {
			t.Error(err)
		}
		if indexes, err = c.Indexes().ListSpecifications(w.ctx); err != nil || len(indexes) != 1 {
			t.Errorf("%+v, %v", indexes, err)
		}
		if _, err := w.client.Database("other").Collection("x").InsertOne(w.ctx, bson.D{}); err != nil {
			t.Error(err)
		}
		dbs, err := w.client.ListDatabases(w.ctx, bson.D{})
		if err != nil || len(dbs.Databases) != 2 || dbs.Databases[0].Name != "other" || dbs.Databases[1].Name != "test" || dbs.TotalSize == 0 {
			t.Errorf("%+v, %v", dbs, err)
		}
		if err := c.Drop(w.ctx); err != nil {
			t.Error(err)
		}
		if err := c.Drop(w.ctx); err != nil {
			t.Errorf("a second drop: %v", err)
		}
		if err := w.db.Drop(w.ctx); err != nil {
			t.Error(err)
		}
		if names, err := w.client.ListDatabaseNames(w.ctx, bson.D{}); err != nil || !slices.Equal(names, []string{"other"}) {
			t.Errorf("%v, %v", names, err)
		}
	})
}

func TestDriverCursorsAndSessions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c")
		if _, err := c.InsertMany(w.ctx, numbered(300)); err != nil {
			t.Fatal(err)
		}
		sess, err := w.client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		err = mongo.WithSession(w.ctx, sess, func(ctx context.Context) error {
			cur, err := c.Find(ctx, bson.D{}, options.Find().SetBatchSize(0))
			if err != nil {
				return err
			}
			n := 0
			for n < 150 && cur.Next(ctx) {
				n++
			}
			// The documents ahead of the cursor's place go away; those that stay are still found.
			if _, err := c.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 200}, {Key: "$lt", Value: 290}}}}); err != nil {
				return err
			}
			var ended bson.M
			for cur.Next(ctx) {
				n++
			}
			if n < 210 {
				t.Errorf("%d documents", n)
			}
			open, err := c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
			if err != nil {
				return err
			}
			id := sess.ID()
			if err := w.client.Database("admin").RunCommand(w.ctx, bson.D{{Key: "endSessions", Value: bson.A{id}}}).Decode(&ended); err != nil {
				return err
			}
			for open.Next(ctx) {
			}
			if ce, ok := errors.AsType[mongo.CommandError](open.Err()); !ok || ce.Code != 43 {
				t.Errorf("after endSessions: %v", open.Err())
			}
			return cur.Err()
		})
		if err != nil {
			t.Error(err)
		}
		var status struct {
			Multiforadb struct {
				Commit struct{ Writes, Syncs int64 }
				Data   struct{ Records int64 }
			}
			Metrics struct {
				Cursor struct{ Open struct{ Total int64 } }
			}
		}
		if err := w.db.RunCommand(w.ctx, bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil {
			t.Fatal(err)
		}
		if s := status.Multiforadb; s.Commit.Syncs == 0 || s.Commit.Writes == 0 || s.Data.Records < 210 || status.Metrics.Cursor.Open.Total != 0 {
			t.Errorf("%+v", status)
		}
	})
}

func TestDriverUnacknowledgedWrites(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
		for i := range 50 {
			if _, err := c.InsertOne(w.ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
				t.Fatal(err)
			}
		}
		// The driver has no way to learn when they are in, other than to look.
		for len(w.all(t, c, bson.D{})) != 50 {
			if w.ctx.Err() != nil {
				t.Fatal("they did not come")
			}
		}
	})
}

func TestDriverLargeDocumentsAndBatches(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c")
		pad := strings.Repeat("x", 5<<20)
		for i := range 4 {
			if _, err := c.InsertOne(w.ctx, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: pad}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.all(t, c, bson.D{}); ids(got) != "0 1 2 3" || got[3]["pad"] != pad {
			t.Errorf("%s", ids(got))
		}
		largest := strings.Repeat("x", 16<<20-30)
		if _, err := c.InsertOne(w.ctx, bson.D{{Key: "_id", Value: 8}, {Key: "pad", Value: largest}}); err != nil {
			t.Error(err)
		}
		var doc bson.M
		if err := c.FindOne(w.ctx, bson.D{{Key: "_id", Value: 8}}).Decode(&doc); err != nil || doc["pad"] != largest {
			t.Errorf("the largest document: %v", err)
		}
		err := w.db.RunCommand(w.ctx, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "pad", Value: largest + "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}}}}).Err()
		if err == nil {
			t.Error("a document that is too large is in")
		}
	})
}

func TestDriverAggregates(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c := w.db.Collection("c")
		if _, err := c.InsertMany(w.ctx, numbered(500)); err != nil {
			t.Fatal(err)
		}
		stage := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
		all := func(cur *mongo.Cursor, err error) []bson.M {
			t.Helper()
			var docs []bson.M
			if err == nil {
				err = cur.All(w.ctx, &docs)
			}
			if err != nil {
				t.Fatal(err)
			}
			return docs
		}
		tens := stage("$group", bson.D{{Key: "_id", Value: stage("$mod", bson.A{"$_id", 250})}, {Key: "n", Value: stage("$sum", 1)}})
		docs := all(c.Aggregate(w.ctx, mongo.Pipeline{tens, stage("$sort", stage("_id", 1))}, options.Aggregate().SetBatchSize(7)))
		if len(docs) != 250 || docs[249]["_id"] != int32(249) || docs[249]["n"] != int32(2) {
			t.Errorf("%d groups, the last is %v", len(docs), docs[len(docs)-1])
		}
		over := stage("$match", stage("$expr", stage("$gte", bson.A{"$_id", "$$least"})))
		docs = all(c.Aggregate(w.ctx, mongo.Pipeline{over}, options.Aggregate().SetLet(stage("least", 300)).SetBatchSize(50)))
		if len(docs) != 200 {
			t.Errorf("%d documents from 300 on", len(docs))
		}
		all(c.Aggregate(w.ctx, mongo.Pipeline{over, stage("$out", "out")}, options.Aggregate().SetLet(stage("least", 490))))
		if n, err := w.db.Collection("out").CountDocuments(w.ctx, bson.D{}); n != 10 || err != nil {
			t.Errorf("%d documents are out, %v", n, err)
		}
		docs = all(w.db.Aggregate(w.ctx, mongo.Pipeline{stage("$documents", bson.A{stage("a", 1)})}))
		if len(docs) != 1 || docs[0]["a"] != int32(1) {
			t.Errorf("%v", docs)
		}
	})
}

func TestDriverTailsACappedCollection(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if err := w.db.CreateCollection(w.ctx, "log", options.CreateCollection().SetCapped(true).SetSizeInBytes(1<<20)); err != nil {
			t.Fatal(err)
		}
		c := w.db.Collection("log")
		if _, err := c.InsertMany(w.ctx, numbered(3)); err != nil {
			t.Fatal(err)
		}
		cur, err := c.Find(w.ctx, bson.D{}, options.Find().SetCursorType(options.TailableAwait).SetMaxAwaitTime(20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		defer cur.Close(w.ctx)
		seen := 0
		for cur.Next(w.ctx) {
			if seen++; seen == 6 {
				break
			}
			if seen >= 3 {
				if _, err := c.InsertOne(w.ctx, bson.D{{Key: "_id", Value: 100 + seen}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if seen != 6 || cur.Err() != nil {
			t.Errorf("%d documents, %v", seen, cur.Err())
		}
		if cur.TryNext(w.ctx) || cur.Err() != nil || cur.ID() == 0 {
			t.Errorf("there is more, or the cursor has ended: %v", cur.Err())
		}
	})
}
