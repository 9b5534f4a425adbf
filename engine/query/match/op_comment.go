package match

import "go.mongodb.org/mongo-driver/v2/bson"

// A comment says nothing to the matcher; whoever logs the query finds it in there.
func parseComment(*parser, bson.RawValue) (Node, error) { return nil, nil }

func parseCommentField(*parser, string, bson.RawValue, bson.Raw) (Node, error) { return nil, nil }
