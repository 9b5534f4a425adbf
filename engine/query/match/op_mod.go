package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parseMod(p *parser, path string, arg bson.RawValue, _ bson.Raw) (Node, error) {
	malformed := func(format string, args ...any) (Node, error) {
		return nil, mongoerr.BadValue.Errorf("malformed $mod at '"+path+"', "+format, args...)
	}
	if arg.Type != bson.TypeArray {
		return malformed("needs to be an array")
	}
	switch n := value.Count(arg.Value); {
	case n < 2:
		return malformed("not enough elements")
	case n > 2:
		return malformed("too many elements")
	}
	var part [2]int64
	for i, name := range []string{"divisor", "remainder"} {
		v := value.At(arg.Value, i)
		if !value.IsNumber(v.Type) {
			return malformed("%s not a number", name)
		}
		n, ok := truncated(v)
		if !ok {
			return malformed("%s %s does not fit an integer", name, show(v))
		}
		part[i] = n
	}
	if part[0] == 0 {
		return malformed("divisor cannot be 0")
	}
	return &Mod{Path: path, Divisor: part[0], Remainder: part[1], path: p.pathOf(path, false)}, nil
}

func (n *Mod) test(v bson.RawValue) bool {
	i, ok := truncated(v)
	return ok && i%n.Divisor == n.Remainder
}
