package match

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// operator is one row of the table. An operator that stands both at the top of a filter and behind a path has both functions.
type operator struct {
	name string
	// field parses {path: {name: arg}}. clause is the whole document that holds name, for operators that have a companion.
	// A nil node without error is a clause that says nothing.
	field func(p *parser, path string, arg bson.RawValue, clause bson.Raw) (Node, error)
	// top parses {name: arg}.
	top func(p *parser, arg bson.RawValue) (Node, error)
	// todo operators exist in MongoDB and are refused here.
	todo bool
}

// operators is sorted by name.
var operators = []operator{
	{name: "$all", field: parseAll},
	{name: "$alwaysFalse", top: parseAlwaysFalse},
	{name: "$alwaysTrue", top: parseAlwaysTrue},
	{name: "$and", top: parseAnd},
	{name: "$bitsAllClear", field: parseBitsAllClear},
	{name: "$bitsAllSet", field: parseBitsAllSet},
	{name: "$bitsAnyClear", field: parseBitsAnyClear},
	{name: "$bitsAnySet", field: parseBitsAnySet},
	{name: "$comment", field: parseCommentField, top: parseComment},
	{name: "$db", top: parseDB},
	{name: "$elemMatch", field: parseElemMatch},
	{name: "$eq", field: parseEq},
	{name: "$exists", field: parseExists},
	{name: "$expr", top: parseExpr},
	{name: "$geoIntersects", todo: true},
	{name: "$geoWithin", todo: true},
	{name: "$gt", field: parseGt},
	{name: "$gte", field: parseGte},
	{name: "$id", top: parseID},
	{name: "$in", field: parseIn},
	{name: "$jsonSchema", top: parseJSONSchema},
	{name: "$lt", field: parseLt},
	{name: "$lte", field: parseLte},
	{name: "$maxDistance", todo: true},
	{name: "$minDistance", todo: true},
	{name: "$mod", field: parseMod},
	{name: "$ne", field: parseNe},
	{name: "$near", todo: true},
	{name: "$nearSphere", todo: true},
	{name: "$nin", field: parseNin},
	{name: "$nor", top: parseNor},
	{name: "$not", field: parseNot},
	{name: "$options", field: parseOptions},
	{name: "$or", top: parseOr},
	{name: "$ref", top: parseRef},
	{name: "$regex", field: parseRegex},
	{name: "$sampleRate", todo: true},
	{name: "$size", field: parseSize},
	{name: "$text", todo: true},
	{name: "$type", field: parseType},
	{name: "$where", todo: true},
	{name: "$within", todo: true},
}

// findOperator finds name's row.
func (p *parser) findOperator(name string) (operator, bool) {
	i, ok := slices.BinarySearchFunc(p.operators, name, func(o operator, name string) int { return strings.Compare(o.name, name) })
	if !ok {
		return operator{}, false
	}
	return p.operators[i], true
}
