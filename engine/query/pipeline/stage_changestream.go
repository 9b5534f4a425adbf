package pipeline

import "go.mongodb.org/mongo-driver/v2/bson"

// parseChangeStream refuses as a MongoDB that is no member of a replica set does: drivers know that error.
func parseChangeStream(*parser, bson.RawValue) (stage, error) {
	return nil, code(40573).Errorf("The $changeStream stage is only supported on replica sets")
}
