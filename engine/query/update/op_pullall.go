package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// parsePullAll makes a pull of the elements that equal any of the argument's.
func parsePullAll(p *parser, _ string, arg bson.RawValue) (modifier, error) {
	if arg.Type != bson.TypeArray {
		return nil, mongoerr.BadValue.Errorf("$pullAll requires an array argument but was given a %s", value.TypeName(arg.Type))
	}
	these := newMembers(p.opts.Compare, list(arg))
	return pull{func(_ *context, v bson.RawValue) (bool, error) { return these.has(v), nil }}, nil
}
