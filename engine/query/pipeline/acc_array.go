package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// elements gives add each element of an accumulator's array; missing is none.
func elements(op string, v bson.RawValue, add func(v bson.RawValue) int) (grew int, err error) {
	switch v.Type {
	case 0:
		return 0, nil
	case bson.TypeArray:
	default:
		return 0, mongoerr.TypeMismatch.Errorf("%s requires array inputs, but input %s is of type %s", op, value.Brief(v, 100), value.TypeName(v.Type))
	}
	for it := value.Elements(v.Value); it.Next(); {
		grew += add(it.Value())
	}
	return grew, nil
}

// concat is $concatArrays: the arrays of a group as one.
type concat struct{ push }

func (a *concat) add(c *expr.Context, args []bson.RawValue) (int, error) {
	return elements("$concatArrays", args[0], func(v bson.RawValue) int {
		n, _ := a.push.add(c, []bson.RawValue{v})
		return n
	})
}

// unionSet is $setUnion: the elements of a group's arrays, each once.
type unionSet struct{ distinct }

func parseSetUnion(p *parser, op string, arg bson.RawValue) (*accumulation, error) {
	if arg.Type == bson.TypeArray {
		if value.Count(arg.Value) != 1 {
			return nil, code(40237).Errorf("the %s accumulator is a unary operator", op)
		}
		arg = value.At(arg.Value, 0)
	}
	e, err := p.expression(arg)
	o := p.opts
	return &accumulation{[]*expr.Expr{e}, func() accumulator { return &unionSet{distinct{newGroups(o)}} }}, err
}

func (a *unionSet) add(c *expr.Context, args []bson.RawValue) (int, error) {
	return elements("$setUnion", args[0], func(v bson.RawValue) int {
		n, _ := a.distinct.add(c, []bson.RawValue{v})
		return n
	})
}
