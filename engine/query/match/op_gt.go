package match

import "go.mongodb.org/mongo-driver/v2/bson"

func parseGt(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	return p.comparison(path, Gt, arg)
}
