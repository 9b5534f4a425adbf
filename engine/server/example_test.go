package server_test

import (
	"context"
	"fmt"
	"log"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/server"
	"github.com/multiforadb/multiforadb/simfs"
)

// The official driver talks to a database in the same process, without a socket. This one is in memory; without Env it
// would be in the directory that Open names.
func Example() {
	memory := simfs.Memory()
	db, err := engine.Open("shop", engine.Options{Env: memory})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	srv := server.New(db, server.Options{Env: memory})
	defer srv.Close()

	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://in-process").SetDialer(srv))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Disconnect(ctx)

	fruit := client.Database("shop").Collection("fruit")
	if _, err := fruit.InsertOne(ctx, bson.D{{Key: "_id", Value: "apple"}, {Key: "price", Value: 3}}); err != nil {
		log.Fatal(err)
	}
	var doc bson.M
	if err := fruit.FindOne(ctx, bson.D{{Key: "price", Value: bson.D{{Key: "$lt", Value: 5}}}}).Decode(&doc); err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc["_id"], "costs", doc["price"])
	// Output: apple costs 3
}
