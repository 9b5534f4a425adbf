package update

import "go.mongodb.org/mongo-driver/v2/bson"

// setOnInsert is set for documents that an upsert makes, and nothing for others.
type setOnInsert struct{ v bson.RawValue }

func parseSetOnInsert(_ *parser, _ string, arg bson.RawValue) (modifier, error) {
	return setOnInsert{arg}, nil
}

func (m setOnInsert) modify(c *context, _ string, old bson.RawValue) (bson.RawValue, error) {
	if c.Insert {
		return m.v, nil
	}
	return old, nil
}
