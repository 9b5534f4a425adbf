package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func parseNe(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	if arg.Type == bson.TypeRegex {
		return nil, mongoerr.BadValue.Errorf("can't have a regular expression as the operand of $ne at '%s'", path)
	}
	n, err := p.comparison(path, Eq, arg)
	if err != nil {
		return nil, err
	}
	return &Not{n}, nil
}
