package update

import "go.mongodb.org/mongo-driver/v2/bson"

// set puts a value where it may or may not be one. Whatever was there goes.
type set struct{ v bson.RawValue }

func parseSet(_ *parser, _ string, arg bson.RawValue) (modifier, error) { return set{arg}, nil }

func (m set) modify(_ *context, _ string, _ bson.RawValue) (bson.RawValue, error) { return m.v, nil }
