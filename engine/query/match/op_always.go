package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func parseAlwaysTrue(_ *parser, arg bson.RawValue) (Node, error) {
	return always("$alwaysTrue", true, arg)
}

func parseAlwaysFalse(_ *parser, arg bson.RawValue) (Node, error) {
	return always("$alwaysFalse", false, arg)
}

func always(name string, result bool, arg bson.RawValue) (Node, error) {
	if i, ok := wholeOf(arg); !ok || i != 1 {
		return nil, mongoerr.FailedToParse.Errorf("%s must be an integer value of 1, not %s", name, show(arg))
	}
	return &Always{result}, nil
}
