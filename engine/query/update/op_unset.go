package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// unset takes a field away. An element of an array becomes null.
type unset struct{}

func parseUnset(*parser, string, bson.RawValue) (modifier, error) { return unset{}, nil }

func (unset) modify(*context, string, bson.RawValue) (bson.RawValue, error) {
	return value.Missing, nil
}
