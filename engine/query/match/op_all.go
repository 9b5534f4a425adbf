package match

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseAll(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, mongoerr.BadValue.Errorf("$all at '%s' needs an array", path)
	}
	var nodes []Node
	elemMatch := false
	for it := value.Elements(arg.Value); it.Next(); {
		v := it.Value()
		clause := ""
		if v.Type == bson.TypeEmbeddedDocument {
			if first := value.Elements(v.Value); first.Next() {
				clause = string(first.Name())
			}
		}
		if nodes == nil {
			elemMatch = clause == "$elemMatch"
		}
		var n Node
		var err error
		switch {
		case elemMatch != (clause == "$elemMatch"):
			return nil, mongoerr.BadValue.Errorf("$all at '%s': $all/$elemMatch has to be consistent", path)
		case elemMatch && value.Count(v.Value) != 1:
			return nil, mongoerr.BadValue.Errorf("$all at '%s': nothing may stand beside $elemMatch", path)
		case elemMatch:
			n, err = parseElemMatch(p, path, value.Lookup(v.Value, clause), v.Value)
		case strings.HasPrefix(clause, "$") && isOperators(v, false):
			return nil, mongoerr.BadValue.Errorf("no $ expressions in $all, but found %s (at '%s')", clause, path)
		case v.Type == bson.TypeRegex:
			n, err = p.regexValue(path, v)
		default:
			n, err = p.comparison(path, Eq, v)
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if nodes == nil {
		return &Always{false}, nil
	}
	return makeAnd(nodes), nil
}
