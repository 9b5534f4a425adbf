package unified

import (
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	legacyDatabase   = "crud-v1"
	legacyCollection = "coll"
)

// legacyCRUD is a file of the crud specification's first version: one collection, and one operation a test.
type legacyCRUD struct {
	Data  []bson.Raw `bson:"data"`
	Min   string     `bson:"minServerVersion"`
	Max   string     `bson:"maxServerVersion"`
	Tests []struct {
		Description string `bson:"description"`
		Operation   struct {
			Name      string `bson:"name"`
			Arguments bson.D `bson:"arguments"`
		} `bson:"operation"`
		Outcome struct {
			Error      bool          `bson:"error"`
			Result     bson.RawValue `bson:"result"`
			Collection *struct {
				Name string     `bson:"name"`
				Data []bson.Raw `bson:"data"`
			} `bson:"collection"`
		} `bson:"outcome"`
	} `bson:"tests"`
}

// parseLegacy rewrites a file of crud v1 as a unified one: every test has an operation and an outcome.
func parseLegacy(head map[string]json.RawMessage, data []byte) (*File, error) {
	var probe []struct{ Operation, Outcome json.RawMessage }
	if json.Unmarshal(head["tests"], &probe) != nil || len(probe) == 0 || head["data"] == nil || head["runOn"] != nil {
		return nil, LegacyError{}
	}
	for _, t := range probe {
		if len(t.Operation) == 0 || len(t.Outcome) == 0 || t.Operation[0] != '{' {
			return nil, LegacyError{}
		}
	}
	for _, name := range []string{"failPoint", "database_name"} {
		if head[name] != nil {
			return nil, LegacyError{}
		}
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON(data, false, &raw); err != nil {
		return nil, fmt.Errorf("unified: %w", err)
	}
	var old legacyCRUD
	if err := bson.Unmarshal(raw, &old); err != nil {
		return nil, LegacyError{}
	}
	f := &File{Schema: "1.0", RunOn: []requirement{{Min: old.Min, Max: old.Max}}}
	for _, e := range []bson.D{
		{{Key: "client", Value: bson.D{{Key: "id", Value: "client"}}}},
		{{Key: "database", Value: bson.D{{Key: "id", Value: "database"}, {Key: "client", Value: "client"}, {Key: "databaseName", Value: legacyDatabase}}}},
		{{Key: "collection", Value: bson.D{{Key: "id", Value: "collection"}, {Key: "database", Value: "database"}, {Key: "collectionName", Value: legacyCollection}}}},
	} {
		f.Entities = append(f.Entities, document(e))
	}
	f.Initial = []collectionData{{Database: legacyDatabase, Collection: legacyCollection, Documents: old.Data}}
	for _, t := range old.Tests {
		op := operation{Name: t.Operation.Name, Object: "collection"}
		op.Arguments = document(legacyArguments(t.Operation.Arguments))
		if t.Outcome.Error {
			op.Error = document(bson.D{{Key: "isError", Value: true}})
		} else if !t.Outcome.Result.IsZero() {
			op.Result = lenient(t.Outcome.Result)
		}
		n := Test{Description: t.Description, Operations: []operation{op}}
		if c := t.Outcome.Collection; c != nil {
			name := c.Name
			if name == "" {
				name = legacyCollection
			} else {
				f.Initial = append(f.Initial, collectionData{Database: legacyDatabase, Collection: name})
			}
			n.Outcome = []collectionData{{Database: legacyDatabase, Collection: name, Documents: c.Data}}
		}
		f.Tests = append(f.Tests, n)
	}
	return f, nil
}

// legacyArguments turns {name: "deleteOne", arguments: {…}} into {deleteOne: {…}}, and lifts options up.
func legacyArguments(in bson.D) bson.D {
	var out bson.D
	for _, e := range in {
		switch v := e.Value.(type) {
		case bson.D:
			if e.Key == "options" {
				out = append(out, v...)
				continue
			}
		case bson.A:
			if e.Key == "requests" {
				e.Value = legacyRequests(v)
			}
		}
		out = append(out, e)
	}
	return out
}

func legacyRequests(in bson.A) bson.A {
	var out bson.A
	for _, r := range in {
		var name string
		var arguments any
		if d, ok := r.(bson.D); ok {
			for _, e := range d {
				switch e.Key {
				case "name":
					name, _ = e.Value.(string)
				case "arguments":
					arguments = e.Value
				}
			}
		}
		out = append(out, bson.D{{Key: name, Value: arguments}})
	}
	return out
}

// lenient lets the driver leave out what it need not tell: ids of inserted documents, and counts that are nought.
func lenient(v bson.RawValue) bson.RawValue {
	if v.Type != bson.TypeEmbeddedDocument {
		return v
	}
	elements, err := v.Document().Elements()
	if err != nil {
		return v
	}
	var out bson.D
	for _, e := range elements {
		var value any = e.Value()
		switch e.Key() {
		case "insertedIds", "insertedId", "upsertedCount", "upsertedIds", "insertedCount":
			value = bson.D{{Key: "$$unsetOrMatches", Value: value}}
		}
		out = append(out, bson.E{Key: e.Key(), Value: value})
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document(out)}
}

// document is v as BSON. What is given to it was made here of things that are BSON already.
func document(v bson.D) bson.Raw {
	if v == nil {
		v = bson.D{}
	}
	raw, err := bson.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("unified: %v", err))
	}
	return raw
}
