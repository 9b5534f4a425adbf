package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// plot draws the series of reports: rows called series@x. Each section becomes a file, with a chart for each unit.
type plot struct {
	Files []string `arg:"" type:"existingfile" help:"Reports, or what a measurement has printed."`
	Out   string   `default:"." type:"existingdir" placeholder:"DIR" help:"Directory for the pictures (${default})."`
	Only  string   `placeholder:"TEXT" help:"Draw only series with this text in their name."`
}

// series is a line of a chart.
type series struct {
	name   string
	points []point
}

type point struct{ x, y, low, high float64 }

// chart has all series of one unit.
type chart struct {
	title, unit string
	series      []*series
}

func (c *plot) Run(b *bench) error {
	drawn := 0
	for _, path := range c.Files {
		sections, err := readSections(path)
		if err != nil {
			return err
		}
		for _, s := range sections {
			if s.name == "meta" || s.name == "difference" {
				continue
			}
			rows, err := s.rows()
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			charts := c.charts(s.name, rows)
			if len(charts) == 0 {
				continue
			}
			name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			if s.name != "" {
				name += "-" + s.name
			}
			name = filepath.Join(c.Out, fileName(name)+".svg")
			if err := os.WriteFile(name, []byte(draw(charts)), 0o644); err != nil {
				return err
			}
			fmt.Fprintln(b.stdout, name)
			drawn++
		}
	}
	if drawn == 0 {
		return fmt.Errorf("there is nothing to draw: no two rows called series@x of one series")
	}
	return nil
}

// fileName is name with what some systems do not like in files' names as hyphens, one for several.
func fileName(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }), "-")
}

// charts sorts rows into series, and those by unit, in the order of their first rows. A series has two points at least.
func (c *plot) charts(section string, rows []*row) []*chart {
	var list []*chart
	for _, r := range rows {
		name, at, ok := strings.Cut(r.Name, "@")
		x, err := strconv.ParseFloat(at, 64)
		if !ok || err != nil || !strings.Contains(name, c.Only) {
			continue
		}
		i := slices.IndexFunc(list, func(c *chart) bool { return c.unit == r.Unit })
		if i < 0 {
			i = len(list)
			list = append(list, &chart{title: section, unit: r.Unit})
		}
		ch := list[i]
		j := slices.IndexFunc(ch.series, func(s *series) bool { return s.name == name })
		if j < 0 {
			j = len(ch.series)
			ch.series = append(ch.series, &series{name: name})
		}
		ch.series[j].points = append(ch.series[j].points, point{x, r.Value, r.Min, r.Max})
	}
	for _, ch := range list {
		ch.series = slices.DeleteFunc(ch.series, func(s *series) bool { return len(s.points) < 2 })
		for _, s := range ch.series {
			slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
		}
	}
	return slices.DeleteFunc(list, func(c *chart) bool { return len(c.series) == 0 })
}
