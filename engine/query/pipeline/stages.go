package pipeline

import "go.mongodb.org/mongo-driver/v2/bson"

// stageRow is one row of the table.
type stageRow struct {
	name  string
	parse func(p *parser, arg bson.RawValue) (stage, error)
	// first and last stages stand nowhere else.
	first, last bool
	// database stages are run on a database, not on a collection.
	database bool
	// update stages may stand in the pipeline of an update.
	update bool
	// unstable stages are not in the stable API's version 1.
	unstable bool
	// refused stages exist in MongoDB; why is part of the answer.
	refused string
}

// stageTable is sorted by name.
var stageTable = []stageRow{
	{name: "$addFields", parse: parseAddFields, update: true},
	{name: "$bucket", parse: parseBucket},
	{name: "$bucketAuto", parse: parseBucketAuto},
	{name: "$changeStream", parse: parseChangeStream, first: true},
	{name: "$changeStreamSplitLargeEvent", refused: "there is no change log"},
	{name: "$collStats", parse: parseStatistics("$collStats"), first: true, unstable: true},
	{name: "$count", parse: parseCount},
	{name: "$currentOp", parse: parseStatistics("$currentOp"), first: true, database: true, unstable: true},
	{name: "$densify", parse: parseDensify},
	{name: "$documents", parse: parseDocuments, first: true},
	{name: "$facet", parse: parseFacet},
	{name: "$fill", parse: parseFill},
	{name: "$geoNear", refused: "there are no geospatial indexes"},
	{name: "$graphLookup", parse: parseGraphLookup},
	{name: "$group", parse: parseGroup},
	{name: "$indexStats", parse: parseStatistics("$indexStats"), first: true, unstable: true},
	{name: "$limit", parse: parseLimit},
	{name: "$listLocalSessions", parse: parseStatistics("$listLocalSessions"), first: true, database: true, unstable: true},
	{name: "$listSampledQueries", refused: "there is no sharding"},
	{name: "$listSearchIndexes", refused: "there is no search service"},
	{name: "$listSessions", parse: parseStatistics("$listSessions"), first: true, unstable: true},
	{name: "$lookup", parse: parseLookup},
	{name: "$match", parse: parseMatch},
	{name: "$merge", parse: parseMerge, last: true},
	{name: "$out", parse: parseOut, last: true},
	{name: "$planCacheStats", parse: parseStatistics("$planCacheStats"), first: true, unstable: true},
	{name: "$project", parse: parseProject, update: true},
	{name: "$querySettings", refused: "there are no query settings"},
	{name: "$queryStats", refused: "there are no query statistics"},
	{name: "$rankFusion", refused: "there is no search service"},
	{name: "$redact", parse: parseRedact},
	{name: "$replaceRoot", parse: parseReplaceRoot, update: true},
	{name: "$replaceWith", parse: parseReplaceWith, update: true},
	{name: "$sample", parse: parseSample},
	{name: "$search", refused: "there is no search service"},
	{name: "$searchMeta", refused: "there is no search service"},
	{name: "$set", parse: parseAddFields, update: true},
	{name: "$setWindowFields", parse: parseSetWindowFields},
	{name: "$shardedDataDistribution", refused: "there is no sharding"},
	{name: "$skip", parse: parseSkip},
	{name: "$sort", parse: parseSort},
	{name: "$sortByCount", parse: parseSortByCount},
	{name: "$unionWith", parse: parseUnionWith},
	{name: "$unset", parse: parseUnset, update: true},
	{name: "$unwind", parse: parseUnwind},
	{name: "$vectorSearch", refused: "there is no search service"},
}
