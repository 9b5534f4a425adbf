package match

import "go.mongodb.org/mongo-driver/v2/bson"

func parseBitsAllSet(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	return p.bits(AllSet, path, arg)
}
