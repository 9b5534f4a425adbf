package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

func parseExists(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	n := &Exists{Path: path, path: p.pathOf(path, true)}
	if value.Truth(arg) {
		return n, nil
	}
	return &Not{n}, nil
}
