package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// countStage gives one document with the number of those before; none if there were none.
type countStage struct{ name string }

func parseCount(_ *parser, arg bson.RawValue) (stage, error) {
	name := string(value.StringBytes(arg))
	switch {
	case arg.Type != bson.TypeString:
		return nil, code(40156).Errorf("the count field must be a string, not %s", value.TypeName(arg.Type))
	case name == "":
		return nil, code(40157).Errorf("the count field must be a non-empty string")
	case name[0] == '$':
		return nil, code(40158).Errorf("the count field cannot be a $-prefixed path")
	case strings.IndexByte(name, 0) >= 0:
		return nil, code(40159).Errorf("the count field cannot contain a null byte")
	case strings.IndexByte(name, '.') >= 0:
		return nil, code(40160).Errorf("the count field cannot contain '.'")
	}
	return &countStage{name}, nil
}

func (s *countStage) run(in Iterator) Iterator {
	done := false
	return over(in, func() (bson.Raw, error) {
		n := int64(0)
		if done {
			return nil, nil
		}
		done = true
		err := each(in, func(bson.Raw) error { n++; return nil })
		if err != nil || n == 0 {
			return nil, err
		}
		d := newDocument()
		d.field(s.name, number(n))
		return d.raw(), nil
	})
}

// number is n as an int if it fits.
func number(n int64) bson.RawValue {
	if n == int64(int32(n)) {
		return value.Int32(int32(n))
	}
	return value.Int64(n)
}
