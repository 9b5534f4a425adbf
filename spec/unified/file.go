// Package unified runs MongoDB's specification tests for drivers (the unified test format) against a server, through the official Go
// driver. The tests were written to judge drivers; here the driver is trusted, and they judge the server.
//
// A [File] is one JSON file, parsed: requirements, entities (clients, databases, collections, sessions, buckets), initial data, and tests. A test is a list of operations, each
// with the result or the error that it must have, then the events that the clients must have seen and the
// data that must be left. A [Server] is what tests are run against; [Server.Run] runs one test and gives its [Outcome]. A [Card] keeps the
// outcomes of many, as text in a fixed order.
//
// What always holds: a test starts with no entities of another and with its initial data alone. It is skipped, with a reason, only for
// what it needs and neither a single server nor this driver has; whatever else goes wrong is a failure. A verdict does not depend on
// the order in which the driver tells of its events, beyond what the test asks for.
//
// The crud specification's tests from before this format (its directory v1) say the same with fewer words; they are rewritten
// while they are read (legacy.go). Other formats are not run.
package unified

import (
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// File is one file of tests.
type File struct {
	Description string           `bson:"description"`
	Schema      string           `bson:"schemaVersion"`
	RunOn       []requirement    `bson:"runOnRequirements"`
	Entities    []bson.Raw       `bson:"createEntities"`
	Initial     []collectionData `bson:"initialData"`
	Tests       []Test           `bson:"tests"`
}

// Test is one test of a File.
type Test struct {
	Description string           `bson:"description"`
	SkipReason  string           `bson:"skipReason"`
	RunOn       []requirement    `bson:"runOnRequirements"`
	Operations  []operation      `bson:"operations"`
	Events      []expectedEvents `bson:"expectEvents"`
	Logs        []bson.Raw       `bson:"expectLogMessages"`
	Outcome     []collectionData `bson:"outcome"`
}

type operation struct {
	Name      string        `bson:"name"`
	Object    string        `bson:"object"`
	Arguments bson.Raw      `bson:"arguments"`
	Result    bson.RawValue `bson:"expectResult"`
	Error     bson.Raw      `bson:"expectError"`
	SaveAs    string        `bson:"saveResultAsEntity"`
	Ignore    bool          `bson:"ignoreResultAndError"`
}

type collectionData struct {
	Collection string     `bson:"collectionName"`
	Database   string     `bson:"databaseName"`
	Options    bson.Raw   `bson:"createOptions"`
	Documents  []bson.Raw `bson:"documents"`
}

type expectedEvents struct {
	Client string     `bson:"client"`
	Type   string     `bson:"eventType"`
	Extra  bool       `bson:"ignoreExtraEvents"`
	Events []bson.Raw `bson:"events"`
}

// LegacyError says that a file is not in the unified format.
type LegacyError struct{}

func (LegacyError) Error() string { return "legacy format" }

// Parse reads a file. The error is a LegacyError if it is of a format that is not run.
func Parse(data []byte) (*File, error) {
	var head map[string]json.RawMessage
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, LegacyError{} // an array, as some of the oldest are
	}
	if head["schemaVersion"] == nil {
		return parseLegacy(head, data)
	}
	return parse(data)
}

func parse(data []byte) (*File, error) {
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON(data, false, &raw); err != nil {
		return nil, fmt.Errorf("unified: %w", err)
	}
	f := new(File)
	if err := bson.Unmarshal(raw, f); err != nil {
		return nil, fmt.Errorf("unified: %w", err)
	}
	return f, nil
}
