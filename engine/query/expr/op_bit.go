package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// bitwise folds integers; the result is an int if all of them are.
func bitwise(op string, start int64, f func(a, b int64) int64) function {
	return func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		r, long := start, false
		for _, v := range args {
			switch v.Type {
			case bson.TypeInt32, bson.TypeInt64:
			case 0, bson.TypeNull, bson.TypeUndefined:
				return value.Null, nil
			default:
				return value.Missing, mongoerr.TypeMismatch.Errorf("%s only supports int and long operands, not %s",
					op, typeName(v))
			}
			long = long || v.Type == bson.TypeInt64
			r = f(r, value.TruncateInt64(v))
		}
		if long {
			return value.Int64(r), nil
		}
		return value.Int32(int32(r)), nil
	}
}

var (
	callBitAnd = bitwise("$bitAnd", -1, func(a, b int64) int64 { return a & b })
	callBitOr  = bitwise("$bitOr", 0, func(a, b int64) int64 { return a | b })
	callBitXor = bitwise("$bitXor", 0, func(a, b int64) int64 { return a ^ b })
	callBitNot = bitwise("$bitNot", 0, func(_, b int64) int64 { return ^b })
)
