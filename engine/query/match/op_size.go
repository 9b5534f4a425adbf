package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseSize(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	i, ok := wholeOf(arg)
	if !ok || i < 0 {
		return nil, mongoerr.BadValue.Errorf("failed to parse $size at '%s': expected a non-negative integer in: $size: %s", path,
			show(arg))
	}
	return &Size{Path: path, N: i, path: p.pathOf(path, true)}, nil
}

func (n *Size) test(v bson.RawValue) bool {
	return v.Type == bson.TypeArray && int64(value.Count(v.Value)) == n.N
}
