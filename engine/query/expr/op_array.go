package expr

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func callArrayElemAt(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	array, index := args[0], args[1]
	switch {
	case nullish(array, index):
		return value.Null, nil
	case !isArray(array):
		return value.Missing, code(28689).Errorf("$arrayElemAt's first argument must be an array, but is %s", typeName(array))
	case !isNumber(index):
		return value.Missing, code(28690).Errorf("$arrayElemAt's second argument must be a numeric value, but is %s",
			typeName(index))
	}
	i, ok := asInt32(index)
	if !ok {
		return value.Missing, code(28691).Errorf("$arrayElemAt's second argument must be representable as a 32-bit integer: %s",
			value.Brief(index, 100))
	}
	if i < 0 {
		i += value.Count(array.Value)
	}
	if i < 0 {
		return value.Missing, nil
	}
	return value.At(array.Value, i), nil
}

func callConcatArrays(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	b := newArray()
	for _, v := range args {
		switch {
		case nullish(v):
			return value.Null, nil
		case !isArray(v):
			return value.Missing, code(28664).Errorf("$concatArrays only supports arrays, not %s", typeName(v))
		}
		for it := value.Elements(v.Value); it.Next(); {
			b.add(it.Value())
		}
	}
	return b.done()
}

func callIn(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	if !isArray(args[1]) {
		return value.Missing, code(40081).Errorf("$in requires an array as a second argument, found: %s", typeName(args[1]))
	}
	for it := value.Elements(args[1].Value); it.Next(); {
		if err := c.step(); err != nil {
			return value.Missing, err
		}
		if c.compare(args[0], it.Value()) == 0 {
			return yes, nil
		}
	}
	return no, nil
}

// span reads the optional start and end of the $indexOf operators; end is at most length.
func span(op string, args []bson.RawValue, length int, notNumber, negative code) (start, end int, err error) {
	bounds := [2]int{0, length}
	for i, v := range args[2:] {
		n, ok := asInt32(v)
		switch {
		case !ok:
			return 0, 0, notNumber.Errorf("%s requires an integral starting and ending index, found a value of type: %s, with value: %s",
				op, typeName(v), value.Brief(v, 100))
		case n < 0:
			return 0, 0, negative.Errorf("%s requires a nonnegative starting and ending index, found: %d", op, n)
		}
		bounds[i] = n
	}
	return bounds[0], min(bounds[1], length), nil
}

func callIndexOfArray(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	array := args[0]
	switch {
	case nullish(array):
		return value.Null, nil
	case !isArray(array):
		return value.Missing, code(40090).Errorf("$indexOfArray requires an array as a first argument, found: %s", typeName(array))
	}
	list := elements(array)
	start, end, err := span("$indexOfArray", args, len(list), 40096, 40097)
	if err != nil {
		return value.Missing, err
	}
	for i := start; i < end; i++ {
		if c.compare(args[1], list[i]) == 0 {
			return value.Int32(int32(i)), nil
		}
	}
	return value.Int32(-1), nil
}

func callIsArray(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return boolean(isArray(args[0])), nil
}

func callRange(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	var n [3]int
	n[2] = 1
	for i, v := range args {
		if !isNumber(v) {
			return value.Missing, code(34443+2*i).Errorf("$range requires a numeric value, found value of type: %s", typeName(v))
		}
		var ok bool
		if n[i], ok = asInt32(v); !ok {
			return value.Missing, code(34444+2*i).Errorf("$range requires a value that can be represented as a 32-bit integer, found value: %s",
				value.Brief(v, 100))
		}
	}
	start, end, step := n[0], n[1], n[2]
	if step == 0 {
		return value.Missing, code(34449).Errorf("$range requires a non-zero step value")
	}
	b := newArray()
	for i := start; (step > 0 && i < end || step < 0 && i > end) && !b.large; i += step {
		if err := c.step(); err != nil {
			return value.Missing, err
		}
		b.add(value.Int32(int32(i)))
	}
	return b.done()
}

func callReverseArray(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	switch v := args[0]; {
	case nullish(v):
		return value.Null, nil
	case !isArray(v):
		return value.Missing, code(34435).Errorf("the argument to $reverseArray must be an array, but was of type: %s", typeName(v))
	default:
		list := elements(v)
		slices.Reverse(list)
		return arrayOf(list)
	}
}

func callSize(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	if !isArray(args[0]) {
		return value.Missing, code(17124).Errorf("the argument to $size must be an array, but was of type: %s", typeName(args[0]))
	}
	return value.Int32(int32(value.Count(args[0].Value))), nil
}

func callSlice(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	if nullish(args...) {
		return value.Null, nil
	}
	if !isArray(args[0]) {
		return value.Missing, code(28724).Errorf("first argument to $slice must be an array, but is of type: %s", typeName(args[0]))
	}
	var n [2]int
	for i, v := range args[1:] {
		if !isNumber(v) {
			return value.Missing, code(28725+2*i).Errorf("argument %d to $slice must be numeric, but is of type: %s",
				i+2, typeName(v))
		}
		var ok bool
		if n[i], ok = asInt32(v); !ok {
			return value.Missing, code(28726+2*i).Errorf("argument %d to $slice can't be represented as a 32-bit integer: %s",
				i+2, value.Brief(v, 100))
		}
	}
	list := elements(args[0])
	start, count := 0, n[0]
	switch {
	case len(args) == 3:
		if n[1] <= 0 {
			return value.Missing, code(28729).Errorf("third argument to $slice must be positive: %d", n[1])
		}
		if start, count = n[0], n[1]; start < 0 {
			start = max(0, start+len(list))
		}
	case count < 0:
		start, count = max(0, len(list)+count), -count
	}
	start = min(start, len(list))
	return arrayOf(list[start:min(len(list), start+count)])
}

func callFirst(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return endOf("$first", args[0], false)
}

func callLast(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	return endOf("$last", args[0], true)
}

func endOf(op string, v bson.RawValue, last bool) (bson.RawValue, error) {
	switch {
	case nullish(v):
		return value.Null, nil
	case !isArray(v):
		return value.Missing, code(28689).Errorf("%s's argument must be an array, but is %s", op, typeName(v))
	case last:
		return value.At(v.Value, value.Count(v.Value)-1), nil
	}
	return value.At(v.Value, 0), nil
}

// eachNode is $map and $filter: an expression over each element, which is bound to a variable.
type eachNode struct {
	op     string
	input  node
	slot   int
	in     node
	filter bool
	limit  node // $filter; nil: none
}

func (n *eachNode) eval(c *Context) (bson.RawValue, error) {
	v, err := n.input.eval(c)
	if err != nil {
		return v, err
	}
	limit := math.MaxInt32
	if n.limit != nil {
		l, err := n.limit.eval(c)
		if err != nil {
			return l, err
		}
		if !nullish(l) {
			i, ok := asInt32(l)
			if !ok {
				return l, code(327391).Errorf("$filter: limit must be represented as a 32-bit integral value: %s",
					value.Brief(l, 100))
			}
			if i <= 0 {
				return l, code(327392).Errorf("$filter: limit must be greater than 0: %d", i)
			}
			limit = i
		}
	}
	switch {
	case nullish(v):
		return value.Null, nil
	case !isArray(v) && n.filter:
		return value.Missing, code(28651).Errorf("input to $filter must be an array not %s", typeName(v))
	case !isArray(v):
		return value.Missing, code(16883).Errorf("input to $map must be an array not %s", typeName(v))
	}
	b := newArray()
	for it := value.Elements(v.Value); it.Next() && b.n < limit; {
		if err := c.step(); err != nil {
			return value.Missing, err
		}
		c.Set(n.slot, it.Value())
		r, err := n.in.eval(c)
		switch {
		case err != nil:
			return r, err
		case !n.filter:
			b.add(r)
		case value.Truth(r):
			b.add(it.Value())
		}
	}
	return b.done()
}

// variableName is the name that "as" gives, else "this".
func variableName(v bson.RawValue) (string, error) {
	if v.Type == 0 {
		return "this", nil
	}
	if v.Type != bson.TypeString {
		return "", mongoerr.FailedToParse.Errorf("'as' must be a string, not %s", typeName(v))
	}
	return text(v), checkName(text(v))
}

func parseMap(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$map", arg, 16878, 16879, 16880, []string{"input", "in"}, []string{"as"})
	if err != nil {
		return nil, err
	}
	return p.each(&eachNode{op: "$map"}, raw[0], raw[1], raw[2])
}

func parseFilter(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$filter", arg, 28646, 28647, 28648, []string{"input", "cond"}, []string{"as", "limit"})
	if err != nil {
		return nil, err
	}
	n := &eachNode{op: "$filter", filter: true}
	if raw[3].Type != 0 {
		if n.limit, err = p.parse(raw[3]); err != nil {
			return nil, err
		}
	}
	return p.each(n, raw[0], raw[1], raw[2])
}

func (p *parser) each(n *eachNode, input, in, as bson.RawValue) (node, error) {
	name, err := variableName(as)
	if err != nil {
		return nil, err
	}
	if n.input, err = p.parse(input); err != nil {
		return nil, err
	}
	n.in, n.slot, err = p.bind(name, in)
	return n, err
}

// reduce folds an array.
type reduce struct {
	input, initial, in node
	this, sofar        int
}

func (n *reduce) eval(c *Context) (bson.RawValue, error) {
	v, err := n.input.eval(c)
	switch {
	case err != nil:
		return v, err
	case nullish(v):
		return value.Null, nil
	case !isArray(v):
		return value.Missing, code(40080).Errorf("$reduce requires that 'input' be an array, found: %s", value.Brief(v, 100))
	}
	r, err := n.initial.eval(c)
	if err != nil {
		return r, err
	}
	for it := value.Elements(v.Value); it.Next(); {
		if err := c.step(); err != nil {
			return value.Missing, err
		}
		c.Set(n.this, it.Value())
		c.Set(n.sofar, r)
		if r, err = n.in.eval(c); err != nil {
			return r, err
		}
		if c.steps%deepEvery == 0 && !shallow(r, value.DepthMax) {
			return value.Missing, mongoerr.Overflow.Errorf("$reduce makes a value of more than %d levels", value.DepthMax)
		}
	}
	return r, nil
}

// deepEvery is how many steps of loops lie between two looks at how deep a value has become. A step adds at most as many levels as
// expressions nest, so that recursion over values stays bounded in between.
const deepEvery = 64

// shallow says whether v has at most so many levels.
func shallow(v bson.RawValue, levels int) bool {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return true
	}
	if levels == 0 {
		return false
	}
	for it := value.Elements(v.Value); it.Next(); {
		if !shallow(it.Value(), levels-1) {
			return false
		}
	}
	return true
}

func parseReduce(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$reduce", arg, 40075, 40076, 40077, []string{"input", "initialValue", "in"}, nil)
	if err != nil {
		return nil, err
	}
	n := &reduce{}
	if n.input, err = p.parse(raw[0]); err != nil {
		return nil, err
	}
	if n.initial, err = p.parse(raw[1]); err != nil {
		return nil, err
	}
	outer := p.scope
	p.scope, n.this = p.scope.Bind("this")
	p.scope, n.sofar = p.scope.Bind("value")
	n.in, err = p.parse(raw[2])
	p.scope = outer
	return n, err
}

// zip is $zip.
type zip struct {
	inputs   []node
	longest  bool
	defaults []node // nil: null
}

func (n *zip) eval(c *Context) (bson.RawValue, error) {
	values, err := evalAll(c, n.inputs)
	if err != nil {
		return value.Missing, err
	}
	lists := make([][]bson.RawValue, len(values))
	size := -1
	for i, v := range values {
		switch {
		case nullish(v):
			return value.Null, nil
		case !isArray(v):
			return value.Missing, code(34468).Errorf("$zip found a non-array expression in input: %s", value.Brief(v, 100))
		}
		lists[i] = elements(v)
		if size < 0 || n.longest == (len(lists[i]) > size) {
			size = len(lists[i])
		}
	}
	defaults := make([]bson.RawValue, len(lists))
	if n.defaults != nil {
		if defaults, err = evalAll(c, n.defaults); err != nil {
			return value.Missing, err
		}
	}
	b := newArray()
	for i := 0; i < size && !b.large; i++ {
		if err := c.step(); err != nil {
			return value.Missing, err
		}
		row := newArray()
		for j, l := range lists {
			if i < len(l) {
				row.add(l[i])
			} else {
				row.add(defaults[j])
			}
		}
		v, err := row.done()
		if err != nil {
			return v, err
		}
		b.add(v)
	}
	return b.done()
}

func parseZip(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$zip", arg, 34460, 34464, 34465, []string{"inputs"}, []string{"useLongestLength", "defaults"})
	switch {
	case err != nil:
		return nil, err
	case !isArray(raw[0]):
		return nil, code(34461).Errorf("inputs must be an array of expressions, found %s", typeName(raw[0]))
	case raw[1].Type != 0 && raw[1].Type != bson.TypeBoolean:
		return nil, code(34463).Errorf("useLongestLength must be a bool, found %s", typeName(raw[1]))
	case raw[2].Type != 0 && !isArray(raw[2]):
		return nil, code(34462).Errorf("defaults must be an array of expressions, found %s", typeName(raw[2]))
	}
	n := &zip{longest: value.Truth(raw[1])}
	if n.inputs, err = p.list(raw[0]); err != nil {
		return nil, err
	}
	if len(n.inputs) == 0 {
		return nil, code(34465).Errorf("$zip requires at least one input array")
	}
	if raw[2].Type == 0 {
		return n, nil
	}
	if n.defaults, err = p.list(raw[2]); err != nil {
		return nil, err
	}
	switch {
	case !n.longest:
		return nil, code(34466).Errorf("cannot specify defaults unless useLongestLength is true")
	case len(n.defaults) != len(n.inputs):
		return nil, code(34467).Errorf("defaults and inputs must have the same length")
	}
	return n, nil
}

// The operators with n: {$firstN: {n: 3, input: [...]}}.

// ends is $firstN, $lastN, $minN and $maxN.
type ends struct {
	op       string
	n, input node
	pick     func(c *Context, list []bson.RawValue, n int) []bson.RawValue
}

func (e *ends) eval(c *Context) (bson.RawValue, error) {
	n, err := e.n.eval(c)
	if err != nil {
		return n, err
	}
	count, err := CheckN(e.op, n)
	if err != nil {
		return n, err
	}
	v, err := e.input.eval(c)
	switch {
	case err != nil:
		return v, err
	case nullish(v):
		return value.Null, nil
	case !isArray(v):
		return v, code(5788200).Errorf("input must be an array, but %s found %s", e.op, typeName(v))
	}
	return arrayOf(e.pick(c, elements(v), count))
}

// CheckN is the operand n of $firstN and its kin, a positive whole number.
func CheckN(op string, v bson.RawValue) (int, error) {
	if !isNumber(v) {
		return 0, code(5787902).Errorf("value for 'n' of %s must be of integral type, but found %s", op, value.Brief(v, 100))
	}
	n, ok := value.AsInt64(v)
	if !ok {
		return 0, code(5787903).Errorf("value for 'n' of %s must be of integral type, but found %s", op, value.Brief(v, 100))
	}
	if n <= 0 {
		return 0, code(5787908).Errorf("'n' of %s must be greater than 0, found %d", op, n)
	}
	return int(min(n, math.MaxInt32)), nil
}

func parseEnds(op string, pick func(c *Context, list []bson.RawValue, n int) []bson.RawValue) func(*parser, bson.RawValue) (node, error) {
	return func(p *parser, arg bson.RawValue) (node, error) {
		nodes, err := p.named(op, arg, 5787900, 5787901, 5787906, []string{"n", "input"}, nil)
		if err != nil {
			return nil, err
		}
		return &ends{op, nodes[0], nodes[1], pick}, nil
	}
}

func pickFirst(_ *Context, list []bson.RawValue, n int) []bson.RawValue {
	return list[:min(n, len(list))]
}

func pickLast(_ *Context, list []bson.RawValue, n int) []bson.RawValue {
	return list[max(0, len(list)-n):]
}

func pickMin(c *Context, list []bson.RawValue, n int) []bson.RawValue {
	list = slices.DeleteFunc(list, func(v bson.RawValue) bool { return nullish(v) })
	slices.SortStableFunc(list, c.compare)
	return list[:min(n, len(list))]
}

func pickMax(c *Context, list []bson.RawValue, n int) []bson.RawValue {
	list = slices.DeleteFunc(list, func(v bson.RawValue) bool { return nullish(v) })
	slices.SortStableFunc(list, func(a, b bson.RawValue) int { return c.compare(b, a) })
	return list[:min(n, len(list))]
}
