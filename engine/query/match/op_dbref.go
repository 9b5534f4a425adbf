package match

import "go.mongodb.org/mongo-driver/v2/bson"

// The three fields of a DBRef are the only names with '$' that a document may have and a filter may ask for.

func parseRef(p *parser, arg bson.RawValue) (Node, error) { return p.field("$ref", arg) }

func parseID(p *parser, arg bson.RawValue) (Node, error) { return p.field("$id", arg) }

func parseDB(p *parser, arg bson.RawValue) (Node, error) { return p.field("$db", arg) }
