package expr

import (
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

const (
	formatSpecifiers = "%bBdGHjLmMSuUVwYzZ"
	parseSpecifiers  = "%bBdGHjLmMSuVYzZ"
)

func parseDateToString(p *parser, arg bson.RawValue) (node, error) {
	const op = "$dateToString"
	return p.dated(op, arg, 18629, 18534, 18628, []string{"date"}, []string{"format", "timezone", "onNull"},
		func(c *Context, args []bson.RawValue) (bson.RawValue, error) {
			format := "%Y-%m-%dT%H:%M:%S.%LZ"
			switch v := args[1]; {
			case v.Type == 0 && args[2].Type != 0:
				format = "%Y-%m-%dT%H:%M:%S.%L%z"
			case isString(v):
				format = text(v)
			case v.Type == bson.TypeNull:
				return value.Null, nil
			case v.Type != 0:
				return value.Missing, code(18533).Errorf("%s requires that 'format' be a string, found: %s", op, typeName(v))
			}
			if err := checkFormat(format, formatSpecifiers); err != nil {
				return value.Missing, err
			}
			if anyNull(args[2]) {
				return value.Null, nil
			}
			z, err := c.zone(op, args[2])
			if err != nil {
				return value.Missing, err
			}
			if args[1].Type == 0 && z == time.UTC {
				format = "%Y-%m-%dT%H:%M:%S.%LZ"
			}
			if anyNull(args[0]) {
				if args[3].Type == 0 {
					return value.Null, nil
				}
				return args[3], nil
			}
			ms, err := moment(args[0])
			if err != nil {
				return value.Missing, err
			}
			t := timeIn(ms, z)
			if t.Year() < 0 || t.Year() > 9999 {
				return value.Missing, code(18537).Errorf("%s is only defined on year 0-9999, tried to use year %d", op, t.Year())
			}
			return value.String(formatTime(t, format)), nil
		})
}

// dateFromString is $dateFromString. onError and onNull are evaluated only when they are needed.
type dateFromString struct {
	text, format, zone, onError, onNull node // all but text may be nil
}

func parseDateFromString(p *parser, arg bson.RawValue) (node, error) {
	nodes, err := p.named("$dateFromString", arg, 40540, 40541, 40542, []string{"dateString"}, []string{"format", "timezone", "onError", "onNull"})
	if err != nil {
		return nil, err
	}
	return &dateFromString{nodes[0], nodes[1], nodes[2], nodes[3], nodes[4]}, nil
}

func (n *dateFromString) eval(c *Context) (bson.RawValue, error) {
	args, err := evalAll(c, []node{n.text, n.format, n.zone})
	if err != nil {
		return value.Missing, err
	}
	format := ""
	if n.format != nil {
		switch {
		case nullish(args[1]):
			return value.Null, nil
		case !isString(args[1]):
			return value.Missing, code(40684).Errorf("$dateFromString requires that 'format' be a string, found: %s",
				typeName(args[1]))
		}
		format = text(args[1])
		if err := checkFormat(format, parseSpecifiers); err != nil {
			return value.Missing, err
		}
	}
	if n.zone != nil && nullish(args[2]) {
		return value.Null, nil
	}
	z, err := c.zone("$dateFromString", args[2])
	if err != nil {
		return value.Missing, err
	}
	if nullish(args[0]) {
		if n.onNull == nil {
			return value.Null, nil
		}
		return n.onNull.eval(c)
	}
	ms, err := int64(0), error(nil)
	if !isString(args[0]) {
		err = mongoerr.ConversionFailure.Errorf("$dateFromString requires that 'dateString' be a string, found: %s with value %s",
			typeName(args[0]), value.Brief(args[0], 50))
	} else {
		ms, err = readDate(text(args[0]), format, z, n.zone != nil)
	}
	if err != nil {
		if n.onError != nil {
			return n.onError.eval(c)
		}
		return value.Missing, err
	}
	return value.Date(ms), nil
}

// layouts are the ways in which a date may be written when no format says how. A time without a zone is in the zone given.
var layouts = func() []string {
	var all []string
	for _, day := range []string{"2006-1-2", "2006/1/2", "20060102", "2006-01", "Jan 2, 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006", "Jan 2 2006", "January 2 2006",
		"1/2/2006", "02-Jan-2006", "Mon, 2 Jan 2006", "Mon Jan 2 2006", "2006-002"} {
		all = append(all, day)
		for _, at := range []string{"T15:04:05", " 15:04:05", "T15:04", " 15:04", "T150405", " 3:04:05 PM", " 3:04 PM", " 3PM"} {
			for _, zone := range []string{"", "Z07:00", "Z0700", "Z07", " MST", " -0700", " -07:00", " Z07:00"} {
				all = append(all, day+at+zone)
			}
		}
	}
	return all
}()

func badDate(s, why string) error {
	return mongoerr.ConversionFailure.Errorf("error parsing date string '%s'; %s", value.Brief(value.String(s), 100), why)
}

// readDate reads a date. zoned says that z was asked for, so that a zone in the text contradicts it.
func readDate(s, format string, z *time.Location, zoned bool) (int64, error) {
	if format != "" {
		return scanDate(s, format, z, zoned)
	}
	s = strings.TrimSpace(s)
	if len(s) > 100 {
		return 0, badDate(s, "it is too long")
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, s, z)
		if err != nil {
			continue
		}
		named := strings.HasSuffix(layout, "MST")
		if zoned && strings.ContainsAny(layout, "Z") || zoned && (named || strings.Contains(layout, "-07")) {
			return 0, badDate(s, "you cannot pass in a date/time string with time zone information together with a timezone argument")
		}
		if named {
			abbreviation, _ := t.Zone()
			if abbreviation != "UTC" && abbreviation != "GMT" {
				return 0, badDate(s, "the time zone is not known")
			}
			t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		}
		return t.UnixMilli(), nil
	}
	return 0, badDate(s, "unexpected character or incomplete date")
}

// scanDate reads s as format says.
func scanDate(s, format string, z *time.Location, zoned bool) (int64, error) {
	var n [8]int // year, month, day, hour, minute, second, millisecond, offset in minutes
	n[1], n[2] = 1, 1
	isoYear, isoWeek, isoDay, yearDay := 0, 1, 1, 0
	offset, given, iso := false, false, false
	rest := s
	number := func(least, most int) (int, bool) {
		i := 0
		for i < len(rest) && i < most && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		if i < least {
			return 0, false
		}
		v, _ := strconv.Atoi(rest[:i])
		rest = rest[i:]
		return v, true
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			if rest == "" || rest[0] != format[i] {
				return 0, badDate(s, "format literal not found")
			}
			rest = rest[1:]
			continue
		}
		i++
		ok := true
		switch format[i] {
		case '%':
			if ok = strings.HasPrefix(rest, "%"); ok {
				rest = rest[1:]
			}
		case 'Y':
			n[0], ok = number(4, 4)
			given = true
		case 'm':
			n[1], ok = number(1, 2)
			ok = ok && n[1] >= 1 && n[1] <= 12
		case 'b', 'B':
			n[1], rest, ok = monthName(rest, format[i] == 'B')
		case 'd':
			n[2], ok = number(1, 2)
			ok = ok && n[2] >= 1 && n[2] <= 31
		case 'H':
			n[3], ok = number(1, 2)
			ok = ok && n[3] < 24
		case 'M':
			n[4], ok = number(1, 2)
			ok = ok && n[4] < 60
		case 'S':
			n[5], ok = number(1, 2)
			ok = ok && n[5] < 60
		case 'L':
			n[6], ok = number(1, 3)
		case 'j':
			yearDay, ok = number(1, 3)
			ok = ok && yearDay >= 1 && yearDay <= 366
		case 'G':
			isoYear, ok = number(4, 4)
			given, iso = true, true
		case 'V':
			isoWeek, ok = number(1, 2)
			ok = ok && isoWeek >= 1 && isoWeek <= 53
		case 'u':
			isoDay, ok = number(1, 1)
			ok = ok && isoDay >= 1 && isoDay <= 7
		case 'z', 'Z':
			n[7], rest, ok = scanOffset(rest, format[i] == 'Z')
			offset = true
		}
		if !ok {
			return 0, badDate(s, "it does not match '%"+format[i:i+1]+"'")
		}
	}
	switch {
	case rest != "":
		return 0, badDate(s, "trailing data")
	case !given:
		return 0, badDate(s, "an incomplete date/time string has been found, with elements missing")
	case offset && zoned:
		return 0, badDate(s, "you cannot pass in a date/time string with time zone information together with a timezone argument")
	case offset:
		z = time.FixedZone("", n[7]*60)
	}
	day := time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC)
	switch {
	case iso:
		day = time.Date(isoYear, 1, 4, 0, 0, 0, 0, time.UTC)
		day = day.AddDate(0, 0, 1-isoWeekday(day)+(isoWeek-1)*7+isoDay-1)
	case yearDay > 0:
		day = time.Date(n[0], 1, yearDay, 0, 0, 0, 0, time.UTC)
	case day.Day() != n[2]:
		return 0, badDate(s, "there is no such day")
	}
	return time.Date(day.Year(), day.Month(), day.Day(), n[3], n[4], n[5], n[6]*1e6, z).UnixMilli(), nil
}

func monthName(s string, long bool) (int, string, bool) {
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if !long {
			name = name[:3]
		}
		if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
			return int(m), s[len(name):], true
		}
	}
	return 0, s, false
}

// scanOffset reads +hh:mm, +hhmm, +hh or Z; with minutes true, +mmm.
func scanOffset(s string, minutes bool) (int, string, bool) {
	if s == "" {
		return 0, s, false
	}
	if s[0] == 'Z' && !minutes {
		return 0, s[1:], true
	}
	end := 1
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == ':') {
		end++
	}
	sign := 1
	switch s[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, s, false
	}
	n, err := strconv.Atoi(strings.Replace(s[1:end], ":", "", 1))
	if err != nil || n > 10000 {
		return 0, s, false
	}
	if !minutes && end-1 > 2 {
		n = n/100*60 + n%100
	} else if !minutes {
		n *= 60
	}
	return sign * n, s[end:], true
}

// toDate is the conversion to a date.
func toDate(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return v, nil
	case bson.TypeTimestamp, bson.TypeObjectID:
		ms, err := moment(v)
		return value.Date(ms), err
	case bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		n, err := toInteger(v, -1<<63, 1<<63-1, "long", value.Int64)
		if err != nil {
			return n, err
		}
		return value.Date(n.Int64()), nil
	case bson.TypeString:
		ms, err := readDate(text(v), "", time.UTC, false)
		return value.Date(ms), err
	}
	return failed("unsupported conversion from %s to date", typeName(v))
}
