package match

import "go.mongodb.org/mongo-driver/v2/bson"

func parseNor(p *parser, arg bson.RawValue) (Node, error) {
	nodes, err := p.documents("$nor", arg)
	if err != nil {
		return nil, err
	}
	return makeNor(nodes), nil
}
