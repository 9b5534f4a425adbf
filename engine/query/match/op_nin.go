package match

import "go.mongodb.org/mongo-driver/v2/bson"

func parseNin(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	n, err := p.in("$nin", path, arg)
	if err != nil {
		return nil, err
	}
	if a, ok := n.(*Always); ok {
		return &Always{!a.Value}, nil
	}
	return &Not{n}, nil
}
