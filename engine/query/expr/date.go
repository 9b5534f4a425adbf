package expr

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones must not depend on the machine having them

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// zone finds a time zone: a name of the Olson database, or an offset like +05:30, -0800, +03. Missing is UTC.
func (c *Context) zone(op string, v bson.RawValue) (*time.Location, error) {
	if v.Type == 0 {
		return time.UTC, nil
	}
	if !isString(v) {
		return nil, code(40517).Errorf("timezone of %s must evaluate to a string, found %s", op, typeName(v))
	}
	name := text(v)
	if z, ok := c.zones[name]; ok {
		return z, nil
	}
	z, err := findZone(name)
	if err != nil {
		return nil, err
	}
	if c.zones == nil {
		c.zones = map[string]*time.Location{}
	}
	c.zones[name] = z
	return z, nil
}

func findZone(name string) (*time.Location, error) {
	unknown := code(40485).Errorf("unrecognized time zone identifier: \"%s\"", value.Brief(value.String(name), 100))
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, unknown
	}
	if name[0] == '+' || name[0] == '-' {
		digits := strings.Replace(name[1:], ":", "", 1)
		if len(digits) != 2 && len(digits) != 4 || len(name) == 4 {
			return nil, unknown
		}
		n, err := strconv.Atoi(digits + "00"[:4-len(digits)])
		if err != nil || digits[0] < '0' || digits[0] > '9' {
			return nil, unknown
		}
		seconds := (n/100)*3600 + (n%100)*60
		if name[0] == '-' {
			seconds = -seconds
		}
		return time.FixedZone(name, seconds), nil
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown
	}
	return z, nil
}

// moment is a date, a timestamp or the time in an ObjectId, in milliseconds since 1970.
func moment(v bson.RawValue) (int64, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return millis(v), nil
	case bson.TypeTimestamp:
		t, _ := v.Timestamp()
		return int64(t) * 1000, nil
	case bson.TypeObjectID:
		return v.ObjectID().Timestamp().UnixMilli(), nil
	}
	return 0, code(16006).Errorf("can't convert from BSON type %s to Date", typeName(v))
}

// timeIn is a moment as a time in a zone.
func timeIn(ms int64, z *time.Location) time.Time { return time.UnixMilli(ms).In(z) }

func isoText(ms int64) string { return formatTime(timeIn(ms, time.UTC), "%Y-%m-%dT%H:%M:%S.%LZ") }

// formatTime writes t by a format that checkFormat has passed.
func formatTime(t time.Time, format string) string {
	var b []byte
	pad := func(n, width int) {
		s := strconv.Itoa(n)
		b = append(append(b, "0000"[:max(0, width-len(s))]...), s...)
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		i++
		switch format[i] {
		case '%':
			b = append(b, '%')
		case 'b':
			b = append(b, t.Month().String()[:3]...)
		case 'B':
			b = append(b, t.Month().String()...)
		case 'd':
			pad(t.Day(), 2)
		case 'G':
			y, _ := t.ISOWeek()
			pad(y, 4)
		case 'H':
			pad(t.Hour(), 2)
		case 'j':
			pad(t.YearDay(), 3)
		case 'L':
			pad(t.Nanosecond()/1e6, 3)
		case 'm':
			pad(int(t.Month()), 2)
		case 'M':
			pad(t.Minute(), 2)
		case 'S':
			pad(t.Second(), 2)
		case 'u':
			b = strconv.AppendInt(b, int64(isoWeekday(t)), 10)
		case 'U':
			pad(sundayWeek(t), 2)
		case 'V':
			_, w := t.ISOWeek()
			pad(w, 2)
		case 'w':
			b = strconv.AppendInt(b, int64(t.Weekday())+1, 10)
		case 'Y':
			pad(t.Year(), 4)
		case 'z':
			_, offset := t.Zone()
			b = append(b, '+')
			if offset < 0 {
				b[len(b)-1], offset = '-', -offset
			}
			pad(offset/3600, 2)
			pad(offset/60%60, 2)
		case 'Z':
			_, offset := t.Zone()
			b = strconv.AppendInt(b, int64(offset/60), 10)
		}
	}
	return string(b)
}

// checkFormat says whether a format has only specifiers that there are.
func checkFormat(format, specifiers string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) {
			return code(18535).Errorf("unmatched '%%' at end of format string")
		}
		if strings.IndexByte(specifiers, format[i]) < 0 {
			return code(18536).Errorf("invalid format character '%%%c' in format string", format[i])
		}
	}
	return nil
}

func isoWeekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// sundayWeek is the week of the year, 0 to 53; weeks begin on Sundays, and days before the first one are in week 0.
func sundayWeek(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }

// unit is a unit of time.
type unit uint8

const (
	unitYear unit = iota
	unitQuarter
	unitMonth
	unitWeek
	unitDay
	unitHour
	unitMinute
	unitSecond
	unitMillisecond
)

var unitNames = []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"}

// unitMillis are the milliseconds of the units of fixed length.
var unitMillis = [...]int64{unitWeek: 7 * 86400e3, unitDay: 86400e3, unitHour: 3600e3, unitMinute: 60e3, unitSecond: 1e3, unitMillisecond: 1}

func readUnit(op string, v bson.RawValue) (unit, error) {
	if !isString(v) {
		return 0, code(5439013).Errorf("%s requires 'unit' to be a string, but got %s", op, typeName(v))
	}
	for i, name := range unitNames {
		if text(v) == name {
			return unit(i), nil
		}
	}
	return 0, mongoerr.FailedToParse.Errorf("unknown time unit value in %s: %s", op, value.Brief(v, 50))
}

// readWeekday reads the first day of a week.
func readWeekday(op string, v bson.RawValue) (time.Weekday, error) {
	if v.Type == 0 {
		return time.Sunday, nil
	}
	if !isString(v) {
		return 0, code(5439015).Errorf("%s requires 'startOfWeek' to be a string, but got %s", op, typeName(v))
	}
	s := strings.ToLower(text(v))
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); s == name || s == name[:3] {
			return d, nil
		}
	}
	return 0, mongoerr.FailedToParse.Errorf("unknown day of week value in %s: %s", op, value.Brief(v, 50))
}

// addUnits adds n units to a moment. Months and longer end on the month's last day at the latest; days and weeks keep the time of
// day in the zone. ok is false if the result is no date.
func addUnits(ms int64, u unit, n int64, z *time.Location) (r int64, ok bool) {
	const far = 1 << 44 // days and months beyond are no date in any unit
	switch u {
	case unitYear, unitQuarter, unitMonth:
		if n > far || n < -far {
			return 0, false
		}
		months := n * [...]int64{12, 3, 1}[u]
		t := timeIn(ms, z)
		month := int64(t.Month()) - 1 + months
		year := int64(t.Year()) + floorDiv(month, 12)
		month -= floorDiv(month, 12) * 12
		if year < -292000000 || year > 292000000 {
			return 0, false
		}
		last := time.Date(int(year), time.Month(month+2), 0, 0, 0, 0, 0, time.UTC).Day()
		r := time.Date(int(year), time.Month(month+1), min(t.Day(), last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), z)
		return r.UnixMilli(), true
	case unitWeek, unitDay:
		if n > 1e11 || n < -1e11 {
			return 0, false
		}
		days := n * (unitMillis[u] / unitMillis[unitDay])
		if z == time.UTC {
			break
		}
		t := timeIn(ms, z)
		return t.AddDate(0, 0, int(days)).UnixMilli(), true
	}
	delta, fits := value.Multiply(value.Int64(n), value.Int64(unitMillis[u]))
	if !fits {
		return 0, false
	}
	sum, fits := value.Add(delta, value.Int64(ms))
	if !fits {
		return 0, false
	}
	return sum.Int64(), true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// wall is the wall clock of a moment in a zone, as milliseconds of a clock that has no zone.
func wall(ms int64, z *time.Location) int64 {
	_, offset := timeIn(ms, z).Zone()
	return ms + int64(offset)*1000
}

// unwall turns the wall clock back into a moment.
func unwall(ms int64, z *time.Location) int64 {
	t := time.UnixMilli(ms).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), z).UnixMilli()
}

// monthNumber counts months from year 0.
func monthNumber(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) - 1 }

// dayNumber counts days from 1970.
func dayNumber(ms int64, z *time.Location) int64 { return floorDiv(wall(ms, z), unitMillis[unitDay]) }

// weekNumber counts weeks that begin on a day; 1970 began on a Thursday.
func weekNumber(day int64, start time.Weekday) int64 { return floorDiv(day+int64(4-start+7)%7, 7) }

// diffUnits is how many boundaries of a unit lie between two moments.
func diffUnits(from, to int64, u unit, z *time.Location, start time.Weekday) int64 {
	switch u {
	case unitYear:
		return int64(timeIn(to, z).Year() - timeIn(from, z).Year())
	case unitQuarter:
		return floorDiv(monthNumber(timeIn(to, z)), 3) - floorDiv(monthNumber(timeIn(from, z)), 3)
	case unitMonth:
		return monthNumber(timeIn(to, z)) - monthNumber(timeIn(from, z))
	case unitWeek:
		return weekNumber(dayNumber(to, z), start) - weekNumber(dayNumber(from, z), start)
	case unitDay:
		return dayNumber(to, z) - dayNumber(from, z)
	case unitHour:
		return floorDiv(wall(to, z), unitMillis[u]) - floorDiv(wall(from, z), unitMillis[u]) - (offsetOf(to, z)-offsetOf(from, z))/3600
	}
	return floorDiv(to, unitMillis[u]) - floorDiv(from, unitMillis[u])
}

func offsetOf(ms int64, z *time.Location) int64 {
	_, offset := timeIn(ms, z).Zone()
	return int64(offset)
}

// truncUnits cuts a moment down to the beginning of its bin of n units. Bins are counted from 2000-01-01 in the zone.
func truncUnits(ms int64, u unit, n int64, z *time.Location, start time.Weekday) (int64, bool) {
	const epoch = 946684800000 // 2000-01-01
	switch u {
	case unitYear, unitQuarter, unitMonth:
		size := n * [...]int64{12, 3, 1}[u]
		if size <= 0 || size > 1e9 {
			return 0, false
		}
		m := floorDiv(monthNumber(timeIn(ms, z))-24000, size)*size + 24000
		return time.Date(int(floorDiv(m, 12)), time.Month(m-floorDiv(m, 12)*12+1), 1, 0, 0, 0, 0, z).UnixMilli(), true
	case unitWeek, unitDay:
		if n > 1e11 {
			return 0, false
		}
		reference := int64(epoch)
		if u == unitWeek { // the first such day on or after
			reference += (int64(start) - 6 + 7) % 7 * unitMillis[unitDay] // 2000-01-01 was a Saturday
		}
		size := n * unitMillis[u]
		return unwall(reference+floorDiv(wall(ms, z)-reference, size)*size, z), true
	}
	size, ok := value.Multiply(value.Int64(n), value.Int64(unitMillis[u]))
	if !ok {
		return 0, false
	}
	reference := unwall(epoch, z)
	return reference + floorDiv(ms-reference, size.Int64())*size.Int64(), true
}
