package main

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// A picture is a column of charts. Sizes are in pixels.
const (
	chartWidth  = 760
	chartHeight = 260
	marginLeft  = 78
	marginRight = 178 // for the names of series, at the ends of their lines
	marginTop   = 38
	marginBase  = 34
	nameHeight  = 15
)

// Colours that can be told apart by those who do not see all of them.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"}

// draw makes an SVG file that needs nothing else.
func draw(charts []*chart) string {
	var b strings.Builder
	h := chartHeight * len(charts)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="system-ui, sans-serif" font-size="12">`+"\n", chartWidth, h, chartWidth, h)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, h)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*chartHeight)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale maps values to pixels.
type scale struct {
	low, high, from, to float64
	log                 bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		return s.from + (s.to-s.from)*math.Log(v/s.low)/math.Log(s.high/s.low)
	}
	return s.from + (s.to-s.from)*(v-s.low)/(s.high-s.low)
}

// scales: x by ratio if it spans much and has no zero, as numbers of clients do; y from zero.
func (c *chart) scales() (x, y scale, xs []float64) {
	top := 0.0
	for _, s := range c.series {
		for _, p := range s.points {
			xs = append(xs, p.x)
			top = max(top, p.high, p.y)
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	first, last := xs[0], xs[len(xs)-1]
	x = scale{first, last, marginLeft, chartWidth - marginRight, first > 0 && last/first >= 8}
	if first == last {
		x.high++
	}
	y = scale{0, top, chartHeight - marginBase, marginTop, false}
	if top == 0 {
		y.high = 1
	}
	return x, y, xs
}

func (c *chart) draw(b *strings.Builder) {
	x, y, xs := c.scales()
	title := c.unit
	if c.title != "" {
		title = c.title + ", " + c.unit
	}
	fmt.Fprintf(b, `<text x="%d" y="20" font-size="14" font-weight="600" fill="#222">%s</text>`+"\n", marginLeft, html.EscapeString(title))
	step := stepOf(y.high)
	for v := 0.0; v <= y.high*1.0001; v += step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#e3e3e3"/><text x="%d" y="%.1f" text-anchor="end" fill="#555">%s</text>`+"\n",
			marginLeft, y.at(v), chartWidth-marginRight, marginLeft-8, y.at(v)+4, number(v))
	}
	last := math.Inf(-1)
	for _, v := range xs {
		if px := x.at(v); px-last >= 24 {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", px, chartHeight-marginBase+18, number(v))
			last = px
		}
	}
	for i, s := range c.series {
		s.draw(b, x, y, colours[i%len(colours)])
	}
	c.names(b, y)
}

func (s *series) draw(b *strings.Builder, x, y scale, colour string) {
	var line, band, back strings.Builder
	spread := false
	for i, p := range s.points {
		mark := "L"
		if i == 0 {
			mark = "M"
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", mark, x.at(p.x), y.at(p.y))
		fmt.Fprintf(&band, "%s%.1f %.1f", mark, x.at(p.x), y.at(p.high))
		last := s.points[len(s.points)-1-i]
		fmt.Fprintf(&back, "L%.1f %.1f", x.at(last.x), y.at(last.low))
		spread = spread || p.low < p.high
	}
	if spread {
		fmt.Fprintf(b, `<path d="%s%sZ" fill="%s" opacity="0.15"/>`+"\n", &band, &back, colour)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"/>`+"\n", &line, colour)
	for _, p := range s.points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s at %s: %s</title></circle>`+"\n",
			x.at(p.x), y.at(p.y), colour, html.EscapeString(s.name), number(p.x), number(p.y))
	}
}

// names writes the series' names at the ends of their lines, moved apart where those meet.
func (c *chart) names(b *strings.Builder, y scale) {
	type label struct {
		series int
		y      float64
	}
	var list []label
	for i, s := range c.series {
		list = append(list, label{i, y.at(s.points[len(s.points)-1].y)})
	}
	slices.SortStableFunc(list, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(list); i++ {
		list[i].y = max(list[i].y, list[i-1].y+nameHeight)
	}
	// What was pushed below the chart pushes back.
	low := float64(chartHeight - marginBase)
	for i := len(list) - 1; i >= 0; i-- {
		list[i].y = min(list[i].y, low)
		low = list[i].y - nameHeight
	}
	for _, l := range list {
		fmt.Fprintf(b, `<text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", chartWidth-marginRight+10, l.y+4, colours[l.series%len(colours)],
			html.EscapeString(c.series[l.series].name))
	}
}

// stepOf is a round distance of lines: three to six of them up to high.
func stepOf(high float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, f := range []float64{0.1, 0.2, 0.5, 1} {
		if high/(step*f) <= 6 {
			return step * f
		}
	}
	return step
}
