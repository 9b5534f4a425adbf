package match_test

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// This file is the language once more, written from the manual as plainly as possible: documents decoded to Go values, paths
// resolved to lists of values, every operator a function of a value. It knows no bytes and is in no hurry. TestAgainstNaive
// holds package match against it.

// gone is what a path that leads nowhere reaches.
type gone struct{}

func naiveFilter(f bson.D, doc bson.D) bool {
	for _, e := range f {
		if !naiveClause(e, doc) {
			return false
		}
	}
	return true
}

func naiveClause(e bson.E, doc bson.D) bool {
	switch e.Key {
	case "$and", "$or", "$nor":
		n := 0
		for _, c := range e.Value.(bson.A) {
			if naiveFilter(c.(bson.D), doc) {
				n++
			}
		}
		switch e.Key {
		case "$and":
			return n == len(e.Value.(bson.A))
		case "$or":
			return n > 0
		}
		return n == 0
	case "$alwaysTrue":
		return true
	case "$alwaysFalse":
		return false
	}
	parts := strings.Split(e.Key, ".")
	ops, ok := e.Value.(bson.D)
	if !ok || len(ops) == 0 || !strings.HasPrefix(ops[0].Key, "$") {
		if re, ok := e.Value.(bson.Regex); ok {
			return naiveAny(doc, parts, func(v any) bool { return naiveRegex(v, re) })
		}
		return naiveAny(doc, parts, func(v any) bool { return naiveCompare("$eq", v, e.Value) })
	}
	for _, op := range ops {
		if !naivePathOp(op, ops, doc, parts) {
			return false
		}
	}
	return true
}

// naivePathOp is one operator behind a path.
func naivePathOp(op bson.E, ops bson.D, doc bson.D, parts []string) bool {
	switch op.Key {
	case "$ne":
		return !naivePathOp(bson.E{Key: "$eq", Value: op.Value}, nil, doc, parts)
	case "$nin":
		return !naivePathOp(bson.E{Key: "$in", Value: op.Value}, nil, doc, parts)
	case "$not":
		if re, ok := op.Value.(bson.Regex); ok {
			return !naiveAny(doc, parts, func(v any) bool { return naiveRegex(v, re) })
		}
		for _, c := range op.Value.(bson.D) {
			if !naivePathOp(c, op.Value.(bson.D), doc, parts) {
				return true
			}
		}
		return false
	case "$exists":
		found := false
		for _, v := range naiveReach(doc, parts) {
			found = found || v != gone{}
		}
		return found == op.Value.(bool)
	case "$all":
		for _, c := range op.Value.(bson.A) {
			if d, ok := c.(bson.D); ok && len(d) == 1 && d[0].Key == "$elemMatch" {
				if !naivePathOp(d[0], d, doc, parts) {
					return false
				}
			} else if !naiveAny(doc, parts, func(v any) bool { return naiveCompare("$eq", v, c) }) {
				return false
			}
		}
		return len(op.Value.(bson.A)) > 0
	case "$size", "$elemMatch":
		for _, v := range naiveReach(doc, parts) {
			if naiveValueOp(op, ops, v) {
				return true
			}
		}
		return false
	}
	return naiveAny(doc, parts, func(v any) bool { return naiveValueOp(op, ops, v) })
}

// naiveValueOp is one operator on one value.
func naiveValueOp(op bson.E, ops bson.D, v any) bool {
	switch op.Key {
	case "$eq", "$gt", "$gte", "$lt", "$lte":
		return naiveCompare(op.Key, v, op.Value)
	case "$ne":
		return !naiveCompare("$eq", v, op.Value)
	case "$in", "$nin":
		in := slices.ContainsFunc(op.Value.(bson.A), func(w any) bool {
			if re, ok := w.(bson.Regex); ok {
				return naiveRegex(v, re)
			}
			return naiveCompare("$eq", v, w)
		})
		return in == (op.Key == "$in")
	case "$not":
		for _, c := range op.Value.(bson.D) {
			if !naiveValueOp(c, op.Value.(bson.D), v) {
				return true
			}
		}
		return false
	case "$exists":
		return (v != gone{}) == op.Value.(bool)
	case "$type":
		return naiveType(v) == op.Value || op.Value == "number" && naiveRank(v) == 10
	case "$mod":
		r := naiveNumber(v)
		if r == nil {
			return false
		}
		i := new(big.Int).Quo(r.Num(), r.Denom())
		want := op.Value.(bson.A)
		rest := new(big.Int).Rem(i, big.NewInt(int64(want[0].(int32))))
		return i.IsInt64() && rest.Int64() == int64(want[1].(int32))
	case "$all":
		for _, c := range op.Value.(bson.A) {
			if d, ok := c.(bson.D); ok && len(d) == 1 && d[0].Key == "$elemMatch" {
				if !naiveValueOp(d[0], d, v) {
					return false
				}
			} else if !naiveCompare("$eq", v, c) {
				return false
			}
		}
		return len(op.Value.(bson.A)) > 0
	case "$size":
		a, ok := v.(bson.A)
		return ok && len(a) == int(op.Value.(int32))
	case "$elemMatch":
		a, ok := v.(bson.A)
		if !ok {
			return false
		}
		cond := op.Value.(bson.D)
		for _, elem := range a {
			if len(cond) > 0 && strings.HasPrefix(cond[0].Key, "$") && !slices.Contains([]string{"$and", "$or", "$nor"}, cond[0].Key) {
				if !slices.ContainsFunc(cond, func(c bson.E) bool { return !naiveValueOp(c, cond, elem) }) {
					return true
				}
				continue
			}
			switch elem := elem.(type) {
			case bson.D:
				if naiveFilter(cond, elem) {
					return true
				}
			case bson.A:
				var d bson.D
				for i, x := range elem {
					d = append(d, bson.E{Key: strconv.Itoa(i), Value: x})
				}
				if naiveFilter(cond, d) {
					return true
				}
			}
		}
		return false
	case "$bitsAllSet", "$bitsAnyClear":
		var bit func(p int) bool
		if b, ok := v.(bson.Binary); ok {
			bit = func(p int) bool { return p/8 < len(b.Data) && b.Data[p/8]>>(p%8)&1 == 1 }
		} else if r := naiveNumber(v); r != nil && r.IsInt() && r.Num().IsInt64() {
			bit = func(p int) bool { return r.Num().Bit(p) == 1 } // big.Int is two's complement without end
		} else {
			return false
		}
		all := true
		for _, p := range op.Value.(bson.A) {
			all = all && bit(int(p.(int32)))
		}
		return all == (op.Key == "$bitsAllSet")
	case "$regex":
		return naiveRegex(v, bson.Regex{Pattern: op.Value.(string)})
	}
	panic("naive: " + op.Key)
}

// naiveAny tries test on what the path reaches, arrays at its end opened.
func naiveAny(doc bson.D, parts []string, test func(any) bool) bool {
	for _, v := range naiveWalk(doc, parts) {
		if c, ok := v.(closed); ok {
			if test(c.a) {
				return true
			}
			continue
		}
		if test(v) {
			return true
		}
		if a, ok := v.(bson.A); ok && slices.ContainsFunc(a, test) {
			return true
		}
	}
	return false
}

// closed is an array that a number named at the end of a path: it is taken as it is.
type closed struct{ a bson.A }

func naiveReach(doc bson.D, parts []string) (found []any) {
	for _, v := range naiveWalk(doc, parts) {
		if c, ok := v.(closed); ok {
			v = c.a
		}
		found = append(found, v)
	}
	return found
}

func naiveWalk(doc bson.D, parts []string) []any {
	i := slices.IndexFunc(doc, func(e bson.E) bool { return e.Key == parts[0] })
	if i < 0 {
		return []any{gone{}}
	}
	return naiveBelow(doc[i].Value, parts[1:])
}

func naiveBelow(v any, parts []string) (found []any) {
	if len(parts) == 0 {
		return []any{v}
	}
	switch v := v.(type) {
	case bson.D:
		return naiveWalk(v, parts)
	case bson.A:
		for i, elem := range v {
			if d, ok := elem.(bson.D); ok {
				found = append(found, naiveWalk(d, parts)...)
			}
			if parts[0] != strconv.Itoa(i) {
				continue
			}
			switch elem.(type) {
			case bson.D, bson.A:
				if len(parts) > 1 {
					found = append(found, naiveBelow(elem, parts[1:])...)
				} else if a, ok := elem.(bson.A); ok {
					found = append(found, closed{a})
				} else {
					found = append(found, elem)
				}
			default:
				if len(parts) == 1 {
					found = append(found, elem)
				}
			}
		}
		return found
	}
	return []any{gone{}}
}

func naiveRegex(v any, re bson.Regex) bool {
	if s, ok := v.(string); ok {
		return regexp.MustCompile(re.Pattern).MatchString(s)
	}
	return v == any(re)
}

// naiveCompare is v op arg, inside of the brackets of types.
func naiveCompare(op string, v, arg any) bool {
	switch a, b := naiveRank(v), naiveRank(arg); {
	case v == gone{}:
		if arg == nil {
			return op == "$eq" || op == "$gte" || op == "$lte"
		}
		return b == 127 && (op == "$lt" || op == "$lte") || b == -1 && (op == "$gt" || op == "$gte")
	case a != b:
		return b == 127 && (op == "$lt" || op == "$lte") || b == -1 && (op == "$gt" || op == "$gte")
	case a == 10 && (naiveNaN(v) || naiveNaN(arg)):
		return naiveNaN(v) && naiveNaN(arg) && op != "$lt" && op != "$gt"
	}
	d := naiveOrder(v, arg)
	switch op {
	case "$gt":
		return d > 0
	case "$gte":
		return d >= 0
	case "$lt":
		return d < 0
	case "$lte":
		return d <= 0
	}
	return d == 0
}

func naiveType(v any) string {
	switch v.(type) {
	case gone:
		return "missing"
	case nil:
		return "null"
	case int32:
		return "int"
	case int64:
		return "long"
	case float64:
		return "double"
	case bson.Decimal128:
		return "decimal"
	case string:
		return "string"
	case bson.D:
		return "object"
	case bson.A:
		return "array"
	case bool:
		return "bool"
	case bson.DateTime:
		return "date"
	case bson.Regex:
		return "regex"
	case bson.Binary:
		return "binData"
	case bson.MinKey:
		return "minKey"
	case bson.MaxKey:
		return "maxKey"
	}
	panic(v)
}

func naiveRank(v any) int {
	return map[string]int{"missing": 0, "minKey": -1, "null": 5, "int": 10, "long": 10, "double": 10, "decimal": 10, "string": 15, "object": 20,
		"array": 25, "binData": 30, "bool": 40, "date": 45, "regex": 50, "maxKey": 127}[naiveType(v)]
}

// naiveNumber is a finite number, or nil.
func naiveNumber(v any) *big.Rat {
	switch v := v.(type) {
	case int32:
		return big.NewRat(int64(v), 1)
	case int64:
		return big.NewRat(v, 1)
	case float64:
		return new(big.Rat).SetFloat64(v)
	case bson.Decimal128:
		if c, exp, err := v.BigInt(); err == nil {
			ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
			if exp < 0 {
				return new(big.Rat).SetFrac(c, ten)
			}
			return new(big.Rat).SetInt(new(big.Int).Mul(c, ten))
		}
	}
	return nil
}

func naiveNaN(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v)
	case bson.Decimal128:
		return v.IsNaN()
	}
	return false
}

// naiveInf is -1 or 1 for an infinity.
func naiveInf(v any) int {
	switch v := v.(type) {
	case float64:
		if math.IsInf(v, 0) {
			return cmp.Compare(v, 0)
		}
	case bson.Decimal128:
		return v.IsInf()
	}
	return 0
}

func naiveOrder(a, b any) int {
	if d := cmp.Compare(naiveRank(a), naiveRank(b)); d != 0 {
		return d
	}
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case bool:
		return map[bool]int{true: 1}[a] - map[bool]int{true: 1}[b.(bool)]
	case bson.DateTime:
		return cmp.Compare(a, b.(bson.DateTime))
	case bson.Regex:
		return cmp.Or(strings.Compare(a.Pattern, b.(bson.Regex).Pattern), strings.Compare(a.Options, b.(bson.Regex).Options))
	case bson.Binary:
		b := b.(bson.Binary)
		return cmp.Or(cmp.Compare(len(a.Data), len(b.Data)), cmp.Compare(a.Subtype, b.Subtype), bytes.Compare(a.Data, b.Data))
	case bson.D:
		b := b.(bson.D)
		for i := range min(len(a), len(b)) {
			if d := cmp.Or(cmp.Compare(naiveRank(a[i].Value), naiveRank(b[i].Value)), strings.Compare(a[i].Key, b[i].Key),
				naiveOrder(a[i].Value, b[i].Value)); d != 0 {
				return d
			}
		}
		return cmp.Compare(len(a), len(b))
	case bson.A:
		return slices.CompareFunc(a, b.(bson.A), naiveOrder)
	}
	if naiveRank(a) != 10 {
		return 0
	}
	switch na, nb := naiveNaN(a), naiveNaN(b); {
	case na || nb:
		return map[bool]int{true: 1}[nb] - map[bool]int{true: 1}[na]
	case naiveInf(a) != 0 || naiveInf(b) != 0:
		return cmp.Compare(naiveInf(a), naiveInf(b))
	}
	return naiveNumber(a).Cmp(naiveNumber(b))
}
