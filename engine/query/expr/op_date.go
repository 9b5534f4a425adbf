package expr

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// datePart is an operator that takes one number out of a date: {$year: date} or {$year: {date: ..., timezone: ...}}.
func datePart(op string, part func(t time.Time) bson.RawValue) func(*parser, bson.RawValue) (node, error) {
	return func(p *parser, arg bson.RawValue) (node, error) {
		var nodes []node
		var err error
		if arg.Type == bson.TypeEmbeddedDocument && !startsWithDollar(arg) {
			nodes, err = p.named(op, arg, 40535, 40535, 40539, []string{"date"}, []string{"timezone"})
		} else if nodes, err = p.arguments(op, arg, 1, 1); err == nil {
			nodes = append(nodes, nil)
		}
		if err != nil {
			return nil, err
		}
		zoned := nodes[1] != nil
		if !zoned {
			nodes = nodes[:1]
		}
		return p.call(op, func(c *Context, args []bson.RawValue) (bson.RawValue, error) {
			if nullish(args...) {
				return value.Null, nil
			}
			z := time.UTC
			if zoned {
				var err error
				if z, err = c.zone(op, args[1]); err != nil {
					return value.Missing, err
				}
			}
			ms, err := moment(args[0])
			if err != nil {
				return value.Missing, err
			}
			return part(timeIn(ms, z)), nil
		}, nodes...), nil
	}
}

func small(n int) bson.RawValue { return value.Int32(int32(n)) }

var (
	parseYear         = datePart("$year", func(t time.Time) bson.RawValue { return small(t.Year()) })
	parseMonth        = datePart("$month", func(t time.Time) bson.RawValue { return small(int(t.Month())) })
	parseDayOfMonth   = datePart("$dayOfMonth", func(t time.Time) bson.RawValue { return small(t.Day()) })
	parseDayOfWeek    = datePart("$dayOfWeek", func(t time.Time) bson.RawValue { return small(int(t.Weekday()) + 1) })
	parseDayOfYear    = datePart("$dayOfYear", func(t time.Time) bson.RawValue { return small(t.YearDay()) })
	parseHour         = datePart("$hour", func(t time.Time) bson.RawValue { return small(t.Hour()) })
	parseMinute       = datePart("$minute", func(t time.Time) bson.RawValue { return small(t.Minute()) })
	parseSecond       = datePart("$second", func(t time.Time) bson.RawValue { return small(t.Second()) })
	parseMillisecond  = datePart("$millisecond", func(t time.Time) bson.RawValue { return small(t.Nanosecond() / 1e6) })
	parseWeek         = datePart("$week", func(t time.Time) bson.RawValue { return small(sundayWeek(t)) })
	parseISODayOfWeek = datePart("$isoDayOfWeek", func(t time.Time) bson.RawValue { return small(isoWeekday(t)) })
	parseISOWeek      = datePart("$isoWeek", func(t time.Time) bson.RawValue { _, w := t.ISOWeek(); return small(w) })
	parseISOWeekYear  = datePart("$isoWeekYear", func(t time.Time) bson.RawValue { y, _ := t.ISOWeek(); return value.Int64(int64(y)) })
)

// dated is an operator with named operands that are all evaluated, missing ones as missing.
type dated struct {
	nodes []node
	f     function
}

func (n *dated) eval(c *Context) (bson.RawValue, error) {
	args, err := evalAll(c, n.nodes)
	if err != nil {
		return value.Missing, err
	}
	// An operand that was written and turned out missing is null, one that was not written stays missing.
	for i := range args {
		if n.nodes[i] != nil && args[i].Type == 0 {
			args[i] = value.Null
		}
	}
	return n.f(c, args)
}

// dated reads such an operator.
func (p *parser) dated(op string, arg bson.RawValue, notObject, unknown, missing code, must, may []string, f function) (node, error) {
	nodes, err := p.named(op, arg, notObject, unknown, missing, must, may)
	if err != nil {
		return nil, err
	}
	n := &dated{nodes, f}
	for _, e := range nodes {
		if _, ok := e.(literal); e != nil && !ok {
			return n, nil
		}
	}
	if v, err := n.eval(&Context{}); err == nil {
		return literal{v}, nil
	}
	return n, nil
}

func anyNull(args ...bson.RawValue) bool {
	for _, v := range args {
		if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			return true
		}
	}
	return false
}

func parseDateAdd(p *parser, arg bson.RawValue) (node, error) { return p.dateAdd("$dateAdd", arg, 1) }

func parseDateSubtract(p *parser, arg bson.RawValue) (node, error) {
	return p.dateAdd("$dateSubtract", arg, -1)
}

func (p *parser) dateAdd(op string, arg bson.RawValue, sign int64) (node, error) {
	return p.dated(op, arg, 5166400, 5166401, 5166402, []string{"startDate", "unit", "amount"}, []string{"timezone"},
		func(c *Context, args []bson.RawValue) (bson.RawValue, error) {
			if anyNull(args...) {
				return value.Null, nil
			}
			u, err := readUnit(op, args[1])
			if err != nil {
				return value.Missing, err
			}
			ms, err := moment(args[0])
			if err != nil {
				return value.Missing, code(5166403).Errorf("%s requires startDate to be convertible to a date, but got %s",
					op, typeName(args[0]))
			}
			n, ok := int64(0), false
			if isNumber(args[2]) {
				n, ok = value.AsInt64(args[2])
			}
			if !ok {
				return value.Missing, code(5166405).Errorf("%s expects integer amount of time units", op)
			}
			z, err := c.zone(op, args[3])
			if err != nil {
				return value.Missing, err
			}
			if n == -1<<63 && sign < 0 {
				return value.Missing, code(6045000).Errorf("invalid %s 'amount' parameter value: %d", op, n)
			}
			r, ok := addUnits(ms, u, sign*n, z)
			if !ok {
				return value.Missing, code(5976500).Errorf("invalid %s 'amount' parameter value: %s %s",
					op, value.Brief(args[2], 50), unitNames[u])
			}
			return value.Date(r), nil
		})
}

func parseDateDiff(p *parser, arg bson.RawValue) (node, error) {
	const op = "$dateDiff"
	return p.dated(op, arg, 5166301, 5166302, 5166303, []string{"startDate", "endDate", "unit"}, []string{"timezone", "startOfWeek"},
		func(c *Context, args []bson.RawValue) (bson.RawValue, error) {
			if anyNull(args[:4]...) {
				return value.Null, nil
			}
			u, err := readUnit(op, args[2])
			if err != nil {
				return value.Missing, err
			}
			if u == unitWeek && anyNull(args[4]) {
				return value.Null, nil
			}
			from, err := moment(args[0])
			if err != nil {
				return value.Missing, code(5166307).Errorf("%s requires 'startDate' to be a date, but got %s",
					op, typeName(args[0]))
			}
			to, err := moment(args[1])
			if err != nil {
				return value.Missing, code(5166307).Errorf("%s requires 'endDate' to be a date, but got %s", op, typeName(args[1]))
			}
			z, err := c.zone(op, args[3])
			if err != nil {
				return value.Missing, err
			}
			start := time.Sunday
			if u == unitWeek {
				if start, err = readWeekday(op, args[4]); err != nil {
					return value.Missing, err
				}
			}
			return value.Int64(diffUnits(from, to, u, z, start)), nil
		})
}

func parseDateTrunc(p *parser, arg bson.RawValue) (node, error) {
	const op = "$dateTrunc"
	return p.dated(op, arg, 5439007, 5439008, 5439009, []string{"date", "unit"}, []string{"binSize", "timezone", "startOfWeek"},
		func(c *Context, args []bson.RawValue) (bson.RawValue, error) {
			if anyNull(args[:4]...) {
				return value.Null, nil
			}
			u, err := readUnit(op, args[1])
			if err != nil {
				return value.Missing, err
			}
			if u == unitWeek && anyNull(args[4]) {
				return value.Null, nil
			}
			ms, err := moment(args[0])
			if err != nil {
				return value.Missing, code(5439012).Errorf("%s requires 'date' to be a date, but got %s", op, typeName(args[0]))
			}
			n := int64(1)
			if args[2].Type != 0 {
				ok := false
				if isNumber(args[2]) {
					n, ok = value.AsInt64(args[2])
				}
				if !ok {
					return value.Missing, code(5439017).Errorf("%s requires 'binSize' to be a 64-bit integer, but got value '%s'",
						op, value.Brief(args[2], 50))
				}
				if n <= 0 {
					return value.Missing, code(5439018).Errorf("%s requires 'binSize' to be greater than 0, but got value %d",
						op, n)
				}
			}
			z, err := c.zone(op, args[3])
			if err != nil {
				return value.Missing, err
			}
			start := time.Sunday
			if u == unitWeek {
				if start, err = readWeekday(op, args[4]); err != nil {
					return value.Missing, err
				}
			}
			r, ok := truncUnits(ms, u, n, z, start)
			if !ok {
				return value.Missing, code(5439006).Errorf("%s: 'binSize' %d is too large", op, n)
			}
			return value.Date(r), nil
		})
}

func parseDateToParts(p *parser, arg bson.RawValue) (node, error) {
	const op = "$dateToParts"
	return p.dated(op, arg, 40524, 40520, 40522, []string{"date"}, []string{"timezone", "iso8601"},
		func(c *Context, args []bson.RawValue) (bson.RawValue, error) {
			if anyNull(args...) {
				return value.Null, nil
			}
			if args[2].Type != 0 && args[2].Type != bson.TypeBoolean {
				return value.Missing, code(40521).Errorf("iso8601 must evaluate to a bool, found %s", typeName(args[2]))
			}
			z, err := c.zone(op, args[1])
			if err != nil {
				return value.Missing, err
			}
			ms, err := moment(args[0])
			if err != nil {
				return value.Missing, err
			}
			t := timeIn(ms, z)
			b := newDocument()
			if value.Truth(args[2]) {
				y, w := t.ISOWeek()
				b.field("isoWeekYear", small(y))
				b.field("isoWeek", small(w))
				b.field("isoDayOfWeek", small(isoWeekday(t)))
			} else {
				b.field("year", small(t.Year()))
				b.field("month", small(int(t.Month())))
				b.field("day", small(t.Day()))
			}
			b.field("hour", small(t.Hour()))
			b.field("minute", small(t.Minute()))
			b.field("second", small(t.Second()))
			b.field("millisecond", small(t.Nanosecond()/1e6))
			return b.done()
		})
}

// dateParts are the operands of $dateFromParts, each with what it is when it is not given.
var dateParts = []struct {
	name string
	def  int64
}{{"year", 1970}, {"month", 1}, {"day", 1}, {"hour", 0}, {"minute", 0}, {"second", 0}, {"millisecond", 0}, {"isoWeekYear", 1970}, {"isoWeek", 1}, {"isoDayOfWeek", 1}}

func parseDateFromParts(p *parser, arg bson.RawValue) (node, error) {
	const op = "$dateFromParts"
	may := []string{}
	for _, part := range dateParts {
		may = append(may, part.name)
	}
	if isDocument(arg) {
		iso := value.Lookup(arg.Value, "isoWeekYear").Type != 0
		switch {
		case !iso && value.Lookup(arg.Value, "year").Type == 0:
			return nil, code(40516).Errorf("%s requires either 'year' or 'isoWeekYear' to be present", op)
		case iso && (value.Lookup(arg.Value, "year").Type != 0 || value.Lookup(arg.Value, "month").Type != 0 || value.Lookup(arg.Value, "day").Type != 0):
			return nil, code(40489).Errorf("%s does not allow mixing natural dates with ISO dates", op)
		case !iso && (value.Lookup(arg.Value, "isoWeek").Type != 0 || value.Lookup(arg.Value, "isoDayOfWeek").Type != 0):
			return nil, code(40525).Errorf("%s does not allow mixing natural dates with ISO dates", op)
		}
	}
	return p.dated(op, arg, 40519, 40518, 40516, nil, append(may, "timezone"), dateFromParts)
}

func dateFromParts(c *Context, args []bson.RawValue) (bson.RawValue, error) {
	const op = "$dateFromParts"
	if anyNull(args...) {
		return value.Null, nil
	}
	var n [10]int64
	for i, part := range dateParts {
		v := args[i]
		if n[i] = part.def; v.Type == 0 {
			continue
		}
		ok := false
		if isNumber(v) {
			n[i], ok = value.AsInt64(v)
		}
		if !ok {
			return value.Missing, code(40515).Errorf("'%s' must evaluate to an integer, found %s with value %s",
				part.name, typeName(v), value.Brief(v, 50))
		}
		switch {
		case part.name == "year" || part.name == "isoWeekYear":
			if n[i] < 1 || n[i] > 9999 {
				return value.Missing, code(40523).Errorf("'%s' must evaluate to an integer in the range 1 to 9999, found %d",
					part.name, n[i])
			}
		case part.name == "millisecond" || part.name == "second" || part.name == "minute" || part.name == "hour":
			if n[i] < -1<<53 || n[i] > 1<<53 {
				return value.Missing, mongoerr.DurationOverflow.Errorf("'%s' is too large: %d", part.name, n[i])
			}
		case n[i] < -32768 || n[i] > 32767:
			return value.Missing, code(31034).Errorf("'%s' must evaluate to a value in the range [-32768, 32767]; value %d is not in range",
				part.name, n[i])
		}
	}
	z, err := c.zone(op, args[10])
	if err != nil {
		return value.Missing, err
	}
	var day time.Time
	if args[7].Type != 0 {
		// The fourth of January is in week 1.
		day = time.Date(int(n[7]), 1, 4, 0, 0, 0, 0, time.UTC)
		day = day.AddDate(0, 0, 1-isoWeekday(day)+int(n[8]-1)*7+int(n[9]-1))
	} else {
		day = time.Date(int(n[0]), time.Month(n[1]), int(n[2]), 0, 0, 0, 0, time.UTC)
	}
	ms := value.Int64(day.UnixMilli())
	for i, scale := range []int64{3600e3, 60e3, 1e3, 1} {
		part, ok := value.Multiply(value.Int64(n[3+i]), value.Int64(scale))
		if ok {
			ms, ok = value.Add(ms, part)
		}
		if !ok {
			return value.Missing, mongoerr.DurationOverflow.Errorf("overflow in %s", op)
		}
	}
	return value.Date(unwall(ms.Int64(), z)), nil
}

func parseTsSecond(p *parser, arg bson.RawValue) (node, error) {
	return p.ofTimestamp("$tsSecond", arg, func(t, _ uint32) uint32 { return t }, 5687301)
}

func parseTsIncrement(p *parser, arg bson.RawValue) (node, error) {
	return p.ofTimestamp("$tsIncrement", arg, func(_, i uint32) uint32 { return i }, 5687302)
}

func (p *parser) ofTimestamp(op string, arg bson.RawValue, part func(t, i uint32) uint32, wrong code) (node, error) {
	args, err := p.arguments(op, arg, 1, 1)
	if err != nil {
		return nil, err
	}
	return p.call(op, func(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
		switch v := args[0]; {
		case nullish(v):
			return value.Null, nil
		case v.Type != bson.TypeTimestamp:
			return value.Missing, wrong.Errorf("argument to %s must be a timestamp, but is %s", op, typeName(v))
		default:
			t, i := v.Timestamp()
			return value.Int64(int64(part(t, i))), nil
		}
	}, args...), nil
}
