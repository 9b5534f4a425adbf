package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Angles are radians. A decimal is answered by a decimal, but worked out as a double: 15 digits hold.

// angle is the form of the operators; inside says whether f is defined for its argument.
func angle(op string, f func(float64) float64, inside func(float64) bool, domain string) function {
	return number1(op, func(v bson.RawValue) (bson.RawValue, error) {
		x := value.AsDouble(v)
		if inside != nil && x == x && !inside(x) {
			return value.Missing, code(50989).Errorf("cannot apply %s to %s, value must be in %s", op, value.Brief(v, 100), domain)
		}
		return likeNumber(v, f(x)), nil
	})
}

// likeNumber is f as a decimal if v is one, else as a double.
func likeNumber(v bson.RawValue, f float64) bson.RawValue {
	if v.Type == bson.TypeDecimal128 {
		return value.OfDecimal(value.AsDecimal(value.Double(f)))
	}
	return value.Double(f)
}

func finite(x float64) bool     { return !math.IsInf(x, 0) }
func withinOne(x float64) bool  { return x >= -1 && x <= 1 }
func atLeastOne(x float64) bool { return x >= 1 }

var (
	callAcos  = angle("$acos", math.Acos, withinOne, "[-1,1]")
	callAcosh = angle("$acosh", math.Acosh, atLeastOne, "[1,inf]")
	callAsin  = angle("$asin", math.Asin, withinOne, "[-1,1]")
	callAsinh = angle("$asinh", math.Asinh, nil, "")
	callAtan  = angle("$atan", math.Atan, nil, "")
	callAtanh = angle("$atanh", math.Atanh, withinOne, "[-1,1]")
	callCos   = angle("$cos", math.Cos, finite, "(-inf,inf)")
	callCosh  = angle("$cosh", math.Cosh, nil, "")
	callSin   = angle("$sin", math.Sin, finite, "(-inf,inf)")
	callSinh  = angle("$sinh", math.Sinh, nil, "")
	callTan   = angle("$tan", math.Tan, finite, "(-inf,inf)")
	callTanh  = angle("$tanh", math.Tanh, nil, "")
)

func callAtan2(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	y, x := args[0], args[1]
	switch {
	case nullish(y, x):
		return value.Null, nil
	case !isNumber(y):
		return value.Missing, code(51044).Errorf("$atan2 only supports numeric types, not %s", typeName(y))
	case !isNumber(x):
		return value.Missing, code(51045).Errorf("$atan2 only supports numeric types, not %s", typeName(x))
	}
	like := y
	if x.Type == bson.TypeDecimal128 {
		like = x
	}
	return likeNumber(like, math.Atan2(value.AsDouble(y), value.AsDouble(x))), nil
}

const pi34 = "3.141592653589793238462643383279503"

var callDegreesToRadians = number1("$degreesToRadians", func(v bson.RawValue) (bson.RawValue, error) {
	if v.Type == bson.TypeDecimal128 {
		return turn(v, pi34, "180"), nil
	}
	return value.Double(value.AsDouble(v) * (math.Pi / 180)), nil
})

var callRadiansToDegrees = number1("$radiansToDegrees", func(v bson.RawValue) (bson.RawValue, error) {
	if v.Type == bson.TypeDecimal128 {
		return turn(v, "180", pi34), nil
	}
	return value.Double(value.AsDouble(v) * (180 / math.Pi)), nil
})

// turn is v·up/down.
func turn(v bson.RawValue, up, down string) bson.RawValue {
	u, _, err := apd.NewFromString(up)
	d, _, err2 := apd.NewFromString(down)
	if err != nil || err2 != nil {
		panic("expr: the numbers of turn do not parse")
	}
	var r apd.Decimal
	value.DecimalContext.Quo(&r, u, d)
	value.DecimalContext.Mul(&r, value.AsDecimal(v), &r)
	return value.OfDecimal(&r)
}
