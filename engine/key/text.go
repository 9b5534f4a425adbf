package key

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// String is the interval as explain shows it: [1, 5), ["a", "b"], (NaN, Infinity]. Of a cut that is the edge of a whole type it
// shows the type's name.
func (i Interval) String() string {
	open, end := '[', ')'
	if i.From.after {
		open = '('
	}
	if i.To.after {
		end = ']'
	}
	return fmt.Sprintf("%c%s, %s%c", open, i.From.text("MinKey"), i.To.text("MaxKey"), end)
}

func (c Cut) text(edge string) string {
	if len(c.prefix) == 0 {
		return edge
	}
	if isTypeTag(c.prefix) {
		for t := range tags {
			if tags[t] == c.prefix[0] && t != 0 {
				return value.TypeName(bson.Type(t))
			}
		}
	}
	if c.collated {
		return fmt.Sprintf("CollationKey(0x%x)", c.prefix[1:])
	}
	d := decoder{in: c.prefix}
	t, v := d.value(nil, 0)
	if d.bad {
		return "?"
	}
	return value.Brief(bson.RawValue{Type: t, Value: v}, 100)
}
