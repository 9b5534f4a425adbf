package update

import "go.mongodb.org/mongo-driver/v2/bson"

// operator is one row of the table.
type operator struct {
	name string
	// parse reads {name: {path: arg}}.
	parse func(p *parser, path string, arg bson.RawValue) (modifier, error)
}

// operators is sorted by name.
var operators = []operator{
	{"$addToSet", parseAddToSet},
	{"$bit", parseBit},
	{"$currentDate", parseCurrentDate},
	{"$inc", parseInc},
	{"$max", parseMax},
	{"$min", parseMin},
	{"$mul", parseMul},
	{"$pop", parsePop},
	{"$pull", parsePull},
	{"$pullAll", parsePullAll},
	{"$push", parsePush},
	{"$rename", parseRename},
	{"$set", parseSet},
	{"$setOnInsert", parseSetOnInsert},
	{"$unset", parseUnset},
}
