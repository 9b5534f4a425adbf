package unified

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// request takes {name: arguments} apart.
func request(doc bson.Raw) (string, *args, error) {
	elements, err := doc.Elements()
	if err != nil || len(elements) != 1 {
		return "", nil, fmt.Errorf("unified: a request must have one field: %s", doc)
	}
	name := elements[0].Key()
	arguments, err := asDocument(elements[0].Value())
	return name, newArgs(name, arguments), err
}

func bulkWrite(ctx context.Context, _ *run, c *mongo.Collection, a *args) (any, error) {
	var models []mongo.WriteModel
	ids := bson.D{}
	for i, doc := range need(a, "requests", asDocuments) {
		m, err := writeModel(doc)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
		if in, ok := m.(*mongo.InsertOneModel); ok {
			raw, _ := in.Document.(bson.Raw)
			ids = append(ids, bson.E{Key: fmt.Sprint(i), Value: raw.Lookup("_id")})
		}
	}
	o := options.BulkWrite()
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "let", asAny, o.SetLet)
	set(a, "ordered", asBool, o.SetOrdered)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.BulkWrite(ctx, models, o)
	if res == nil || err == nil && !res.Acknowledged {
		return absent{}, err
	}
	upserted := bson.D{}
	for _, i := range sortedKeys(res.UpsertedIDs) {
		upserted = append(upserted, bson.E{Key: fmt.Sprint(i), Value: res.UpsertedIDs[i]})
	}
	out := bson.D{
		{Key: "deletedCount", Value: res.DeletedCount}, {Key: "insertedCount", Value: res.InsertedCount}, {Key: "matchedCount", Value: res.MatchedCount},
		{Key: "modifiedCount", Value: res.ModifiedCount}, {Key: "upsertedCount", Value: res.UpsertedCount}, {Key: "upsertedIds", Value: upserted},
	}
	if err == nil {
		// The driver does not tell the ids of what it inserted; without an error they are those of the requests.
		out = append(out, bson.E{Key: "insertedIds", Value: ids})
	}
	return out, err
}

func writeModel(doc bson.Raw) (mongo.WriteModel, error) {
	name, a, err := request(doc)
	if err != nil {
		return nil, err
	}
	var model mongo.WriteModel
	switch name {
	case "insertOne":
		model = mongo.NewInsertOneModel().SetDocument(need(a, "document", asDocument))
	case "deleteOne":
		m := mongo.NewDeleteOneModel().SetFilter(need(a, "filter", asDocument))
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		model = m
	case "deleteMany":
		m := mongo.NewDeleteManyModel().SetFilter(need(a, "filter", asDocument))
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		model = m
	case "updateOne":
		m := mongo.NewUpdateOneModel().SetFilter(need(a, "filter", asDocument)).SetUpdate(need(a, "update", asAny))
		set(a, "arrayFilters", asList, m.SetArrayFilters)
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		set(a, "sort", asAny, m.SetSort)
		set(a, "upsert", asBool, m.SetUpsert)
		model = m
	case "updateMany":
		m := mongo.NewUpdateManyModel().SetFilter(need(a, "filter", asDocument)).SetUpdate(need(a, "update", asAny))
		set(a, "arrayFilters", asList, m.SetArrayFilters)
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		set(a, "upsert", asBool, m.SetUpsert)
		model = m
	case "replaceOne":
		m := mongo.NewReplaceOneModel().SetFilter(need(a, "filter", asDocument)).SetReplacement(need(a, "replacement", asDocument))
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		set(a, "sort", asAny, m.SetSort)
		set(a, "upsert", asBool, m.SetUpsert)
		model = m
	default:
		return nil, skip("the Go driver has no write model " + name)
	}
	return model, a.done()
}

func clientBulkWrite(ctx context.Context, _ *run, c *client, a *args) (any, error) {
	var writes []mongo.ClientBulkWrite
	for _, doc := range need(a, "models", asDocuments) {
		w, err := clientWriteModel(doc)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	o := options.ClientBulkWrite()
	set(a, "bypassDocumentValidation", asBool, o.SetBypassDocumentValidation)
	set(a, "comment", asAny, o.SetComment)
	set(a, "let", asAny, o.SetLet)
	set(a, "ordered", asBool, o.SetOrdered)
	set(a, "verboseResults", asBool, o.SetVerboseResults)
	set(a, "writeConcern", asWriteConcern, o.SetWriteConcern)
	if err := a.done(); err != nil {
		return nil, err
	}
	res, err := c.BulkWrite(ctx, writes, o)
	var failed mongo.ClientBulkWriteException
	if errors.As(err, &failed) {
		res = failed.PartialResult
	}
	if res == nil || err == nil && !res.Acknowledged {
		return absent{}, err
	}
	return clientBulkResult(res), err
}

func clientBulkResult(res *mongo.ClientBulkWriteResult) bson.D {
	out := bson.D{
		{Key: "insertedCount", Value: res.InsertedCount}, {Key: "upsertedCount", Value: res.UpsertedCount}, {Key: "matchedCount", Value: res.MatchedCount},
		{Key: "modifiedCount", Value: res.ModifiedCount}, {Key: "deletedCount", Value: res.DeletedCount},
	}
	if !res.HasVerboseResults {
		return out
	}
	inserts, updates, deletes := bson.D{}, bson.D{}, bson.D{}
	for _, i := range sortedKeys(res.InsertResults) {
		inserts = append(inserts, bson.E{Key: fmt.Sprint(i), Value: bson.D{{Key: "insertedId", Value: res.InsertResults[i].InsertedID}}})
	}
	for _, i := range sortedKeys(res.UpdateResults) {
		u := res.UpdateResults[i]
		d := bson.D{{Key: "matchedCount", Value: u.MatchedCount}, {Key: "modifiedCount", Value: u.ModifiedCount}}
		if u.UpsertedID != nil {
			d = append(d, bson.E{Key: "upsertedId", Value: u.UpsertedID})
		}
		updates = append(updates, bson.E{Key: fmt.Sprint(i), Value: d})
	}
	for _, i := range sortedKeys(res.DeleteResults) {
		deletes = append(deletes, bson.E{Key: fmt.Sprint(i), Value: bson.D{{Key: "deletedCount", Value: res.DeleteResults[i].DeletedCount}}})
	}
	return append(out, bson.E{Key: "insertResults", Value: inserts}, bson.E{Key: "updateResults", Value: updates}, bson.E{Key: "deleteResults", Value: deletes})
}

func clientWriteModel(doc bson.Raw) (w mongo.ClientBulkWrite, err error) {
	name, a, err := request(doc)
	if err != nil {
		return w, err
	}
	var ok bool
	if w.Database, w.Collection, ok = strings.Cut(need(a, "namespace", asString), "."); !ok {
		return w, fmt.Errorf("unified: a model of no namespace: %s", doc)
	}
	switch name {
	case "insertOne":
		w.Model = mongo.NewClientInsertOneModel().SetDocument(need(a, "document", asDocument))
	case "deleteOne":
		m := mongo.NewClientDeleteOneModel().SetFilter(need(a, "filter", asDocument))
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		w.Model = m
	case "deleteMany":
		m := mongo.NewClientDeleteManyModel().SetFilter(need(a, "filter", asDocument))
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		w.Model = m
	case "updateOne":
		m := mongo.NewClientUpdateOneModel().SetFilter(need(a, "filter", asDocument)).SetUpdate(need(a, "update", asAny))
		set(a, "arrayFilters", asList, m.SetArrayFilters)
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		set(a, "sort", asAny, m.SetSort)
		set(a, "upsert", asBool, m.SetUpsert)
		w.Model = m
	case "updateMany":
		m := mongo.NewClientUpdateManyModel().SetFilter(need(a, "filter", asDocument)).SetUpdate(need(a, "update", asAny))
		set(a, "arrayFilters", asList, m.SetArrayFilters)
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		set(a, "upsert", asBool, m.SetUpsert)
		w.Model = m
	case "replaceOne":
		m := mongo.NewClientReplaceOneModel().SetFilter(need(a, "filter", asDocument)).SetReplacement(need(a, "replacement", asDocument))
		set(a, "collation", asCollation, m.SetCollation)
		set(a, "hint", asAny, m.SetHint)
		set(a, "sort", asAny, m.SetSort)
		set(a, "upsert", asBool, m.SetUpsert)
		w.Model = m
	default:
		return w, skip("the Go driver has no write model " + name)
	}
	return w, a.done()
}
