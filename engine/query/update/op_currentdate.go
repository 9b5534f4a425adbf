package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// currentDate sets the time, as a date or as a timestamp.
type currentDate struct{ timestamp bool }

func parseCurrentDate(_ *parser, _ string, arg bson.RawValue) (modifier, error) {
	switch arg.Type {
	case bson.TypeBoolean:
		return currentDate{}, nil
	case bson.TypeEmbeddedDocument:
	default:
		return nil, mongoerr.BadValue.Errorf("%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression "+
			"({$type: 'timestamp/date'}).", value.TypeName(arg.Type))
	}
	kind := ""
	for it := value.Elements(arg.Value); it.Next(); {
		if string(it.Name()) != "$type" {
			return nil, mongoerr.BadValue.Errorf("Unrecognized $currentDate option: %s", it.Name())
		}
		kind = string(value.StringBytes(it.Value()))
	}
	if kind != "date" && kind != "timestamp" {
		return nil, mongoerr.BadValue.Errorf("The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
	}
	return currentDate{timestamp: kind == "timestamp"}, nil
}

func (m currentDate) modify(c *context, _ string, _ bson.RawValue) (bson.RawValue, error) {
	if m.timestamp {
		return c.timestamp(), nil
	}
	return value.Date(c.Now), nil
}
