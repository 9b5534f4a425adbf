package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseAnd(p *parser, arg bson.RawValue) (Node, error) {
	nodes, err := p.documents("$and", arg)
	return makeAnd(nodes), err
}

// documents parses the operand of $and, $or and $nor: an array of at least one filter.
func (p *parser) documents(name string, arg bson.RawValue) ([]Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, mongoerr.BadValue.Errorf("%s must be an array", name)
	}
	var nodes []Node
	for it := value.Elements(arg.Value); it.Next(); {
		v := it.Value()
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.BadValue.Errorf("%s entries need to be full objects, not %s", name, value.TypeName(v.Type))
		}
		n, err := p.document(v.Value)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if nodes == nil {
		return nil, mongoerr.BadValue.Errorf("%s must be a nonempty array", name)
	}
	return nodes, nil
}
