package update

import "go.mongodb.org/mongo-driver/v2/bson"

func parseMax(_ *parser, _ string, arg bson.RawValue) (modifier, error) { return bound{arg, 1}, nil }
