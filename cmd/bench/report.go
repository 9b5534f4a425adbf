package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is one figure.
type row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// Ratio is Value as a multiple of what Of names; 0 if there is nothing to compare with.
	Ratio float64 `json:"ratio,omitempty"`
	Of    string  `json:"of,omitempty"`
}

// report is a list of figures, and of the machine's limits beside them.
type report struct {
	Rows   []*row `json:"rows"`
	Limits []*row `json:"limits"`
}

// add adds a figure: the median of values.
func (r *report) add(name, unit string, values ...float64) *row {
	x := newRow(name, unit, values)
	r.Rows = append(r.Rows, x)
	return x
}

func newRow(name, unit string, values sample) *row {
	x := &row{Name: name, Value: values.median(), Unit: unit}
	if len(values) > 0 {
		x.Min, x.Max = slices.Min(values), slices.Max(values)
	}
	return x
}

// against compares with a limit, which may be unknown (0).
func (x *row) against(of string, limit float64) *row {
	if limit > 0 {
		x.Ratio, x.Of = x.Value/limit, of
	}
	return x
}

// limit is a limit's value, 0 if it was not taken.
func (r *report) limit(names ...string) (sum float64) {
	for _, n := range names {
		i := slices.IndexFunc(r.Limits, func(x *row) bool { return x.Name == n })
		if i < 0 {
			return 0
		}
		sum += r.Limits[i].Value
	}
	return sum
}

// write prints the rows as TSV, and the limits below, each marked as one.
func (r *report) write(w io.Writer) error {
	if err := writeRows(w, r.Rows); err != nil || len(r.Limits) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w, "[limits]"); err != nil {
		return err
	}
	return writeRows(w, r.Limits)
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func writeRows(w io.Writer, rows []*row) error {
	for _, x := range rows {
		if _, err := fmt.Fprintln(w, x); err != nil {
			return err
		}
	}
	return nil
}

// String is the row as TSV. Columns at the end that say nothing are left out.
func (x *row) String() string {
	cols := []string{x.Name, number(x.Value), x.Unit}
	if x.Min != x.Max || x.Of != "" {
		cols = append(cols, number(x.Min), number(x.Max))
	}
	if x.Of != "" {
		cols = append(cols, number(x.Ratio), x.Of)
	}
	return strings.Join(cols, "\t")
}

// parseRow reads what String writes.
func parseRow(line string) (*row, error) {
	cols := strings.Split(line, "\t")
	if len(cols) != 3 && len(cols) != 5 && len(cols) != 7 {
		return nil, fmt.Errorf("a row has 3, 5 or 7 columns, this one %d: %q", len(cols), line)
	}
	x := &row{Name: cols[0], Unit: cols[2]}
	var err error
	read := func(i int, v *float64) {
		if err == nil {
			*v, err = strconv.ParseFloat(cols[i], 64)
		}
	}
	read(1, &x.Value)
	x.Min, x.Max = x.Value, x.Value
	if len(cols) > 3 {
		read(3, &x.Min)
		read(4, &x.Max)
	}
	if len(cols) > 5 {
		read(5, &x.Ratio)
		x.Of = cols[6]
	}
	return x, err
}

// number has at least four significant digits, and no exponent.
func number(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 1000 {
		digits = min(3-int(math.Floor(math.Log10(a))), 9)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// section is a part of a file of reports.
type section struct {
	name  string
	lines []string
}

// rows reads the section's rows, in their order.
func (s *section) rows() ([]*row, error) {
	var rows []*row
	for _, l := range s.lines {
		x, err := parseRow(l)
		if err != nil {
			return nil, fmt.Errorf("[%s]: %w", s.name, err)
		}
		rows = append(rows, x)
	}
	return rows, nil
}

// parseSections reads a file of reports: lines under [names]; what stands before the first belongs to one without a name.
// Empty lines and those that begin with # say nothing.
func parseSections(r io.Reader) ([]*section, error) {
	list := []*section{{}}
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := s.Text()
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			list = append(list, &section{name: line[1 : len(line)-1]})
		default:
			last := list[len(list)-1]
			last.lines = append(last.lines, line)
		}
	}
	return slices.DeleteFunc(list, func(s *section) bool { return s.name == "" && len(s.lines) == 0 }), s.Err()
}
