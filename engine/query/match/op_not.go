package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseNot(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	var n Node
	var err error
	switch {
	case arg.Type == bson.TypeRegex:
		n, err = p.regexValue(path, arg)
	case arg.Type != bson.TypeEmbeddedDocument:
		return nil, mongoerr.BadValue.Errorf("$not at '%s' needs a regex or a document", path)
	case value.Count(arg.Value) == 0:
		return nil, mongoerr.BadValue.Errorf("$not at '%s' cannot be empty", path)
	default:
		n, err = p.operatorsOf(path, arg.Value)
	}
	if err != nil {
		return nil, err
	}
	if a, ok := n.(*Always); ok {
		return &Always{!a.Value}, nil
	}
	return &Not{n}, nil
}
