package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// planRun takes a plan of measurements, each several times, and keeps the report.
//
// A plan is a file of lines "name: command of bench with its flags"; the name becomes the section of the report. Without a file
// it is "main: compare …" and "concurrency: concurrent …".
type planRun struct {
	Size    size   `arg:"" optional:"" default:"1g" help:"Bytes of documents that compare loads (${default})."`
	DocSize size   `arg:"" optional:"" default:"16k" help:"Bytes of a document (${default})."`
	Clients []int  `arg:"" optional:"" help:"Numbers of clients (1 4 8 16 32)."`
	Plan    string `type:"existingfile" placeholder:"FILE" help:"Plan, instead of compare and concurrent."`
	Repeat  int    `default:"3" help:"How often each measurement is taken (${default})."`
	Out     string `default:"spec/bench" type:"path" placeholder:"DIR" help:"Directory of reports (${default})."`
	Server  string `type:"existingfile" placeholder:"PROGRAM" help:"The server's program; without one it is built."`
	Dir     string `default:"." type:"existingdir" help:"Directory on the disk that is meant (the current one)."`
}

func (c *planRun) Validate() error {
	if c.Repeat < 1 {
		return errors.New("--repeat is at least 1")
	}
	return nil
}

// step is a line of a plan.
type step struct {
	name string
	args []string
	measurement
}

// Run takes the plan, and writes its report beside the older ones.
func (c *planRun) Run(b *bench) error {
	steps, err := c.steps(b)
	if err != nil {
		return err
	}
	meta := metaOf(c)
	var sections []*section
	var limits []report
	for _, st := range steps {
		var runs []report
		for i := range c.Repeat {
			fmt.Fprintf(b.stderr, "%s, %d of %d\n", st.name, i+1, c.Repeat)
			var r report
			if err := st.measure(b, &r); err != nil {
				return fmt.Errorf("%s: %w", st.name, err)
			}
			runs = append(runs, r)
			limits = append(limits, report{Rows: r.Limits})
		}
		sections = append(sections, sectionOf(st.name, merge(runs)))
		meta.lines = append(meta.lines, "command of "+st.name+"\tbench "+strings.Join(st.args, " "))
	}
	meta.lines = append(meta.lines, "load average, end\t"+loadAverage())
	sections = append(sections, sectionOf("limits", merge(limits)), meta)
	return c.keep(b, sections)
}

// steps reads the plan: all of it before anything is measured.
func (c *planRun) steps(b *bench) ([]step, error) {
	clients := c.Clients
	if len(clients) == 0 {
		clients = []int{1, 4, 8, 16, 32}
	}
	text := fmt.Sprintf("main: compare --size %d --doc-size %d\nconcurrency: concurrent --clients %s", c.Size, c.DocSize,
		strings.ReplaceAll(strings.Trim(fmt.Sprint(clients), "[]"), " ", ","))
	if c.Plan != "" {
		raw, err := os.ReadFile(c.Plan)
		if err != nil {
			return nil, err
		}
		text = string(raw)
	}
	program := c.Server
	if program == "" {
		var err error
		if program, err = b.own(); err != nil {
			return nil, err
		}
	}
	var steps []step
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		st := step{name: name, args: strings.Fields(rest)}
		if !ok || len(st.args) == 0 || slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			return nil, fmt.Errorf("plan: not a name of its own and a command: %q", line)
		}
		args := st.args
		if args[0] != "limits" {
			args = append(slices.Clone(args), "--server", program)
		}
		k, err := parse(append(args, "--dir", c.Dir))
		if err != nil {
			return nil, fmt.Errorf("plan, %s: %w", name, err)
		}
		if st.measurement, ok = chosen(k).(measurement); !ok {
			return nil, fmt.Errorf("plan, %s: %s measures nothing", name, args[0])
		}
		steps = append(steps, st)
	}
	return steps, nil
}

// merge makes one row of those that several runs have of a name: the median of their values, and the extremes of those.
func merge(runs []report) []*row {
	var names []string
	values := map[string]sample{}
	last := map[string]*row{}
	ratios := map[string]sample{}
	for _, r := range runs {
		for _, x := range r.Rows {
			if values[x.Name] == nil {
				names = append(names, x.Name)
			}
			values[x.Name] = append(values[x.Name], x.Value)
			if x.Of != "" {
				ratios[x.Name] = append(ratios[x.Name], x.Ratio)
			}
			last[x.Name] = x
		}
	}
	var rows []*row
	for _, n := range names {
		x := newRow(n, last[n].Unit, values[n])
		x.Ratio, x.Of = ratios[n].median(), last[n].Of
		rows = append(rows, x)
	}
	return rows
}

func sectionOf(name string, rows []*row) *section {
	s := &section{name: name}
	for _, x := range rows {
		s.lines = append(s.lines, x.String())
	}
	return s
}

// keep writes the report, with what has changed since the one before it, and prints it.
func (c *planRun) keep(b *bench, sections []*section) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	old, err := previous(c.Out, sections)
	if err != nil {
		return err
	}
	if old != nil {
		d, err := difference(old, sections)
		if err != nil {
			return err
		}
		sections = append(sections, d)
	}
	var text strings.Builder
	for i, s := range sections {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "[%s]\n", s.name)
		for _, l := range s.lines {
			text.WriteString(l + "\n")
		}
	}
	path, err := freshName(c.Out, time.Now().Format(time.DateOnly)+"-"+commit())
	if err == nil {
		err = os.WriteFile(path, []byte(text.String()), 0o644)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "%s\n%s\n", text.String(), path)
	return nil
}

// freshName gives a name in dir that no report has.
func freshName(dir, name string) (string, error) {
	for n := 1; ; n++ {
		path := filepath.Join(dir, name+".txt")
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.txt", name, n))
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return path, nil
		} else if err != nil {
			return "", err
		}
	}
}

// earlier is a report that was kept.
type earlier struct {
	name     string
	sections []*section
}

// previous finds the newest report in dir that has a section in common with this one; nil if there is none.
func previous(dir string, sections []*section) (*earlier, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var best *earlier
	var newest time.Time
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		list, err := readSections(p)
		if err != nil {
			return nil, err
		}
		common := slices.ContainsFunc(list, func(s *section) bool { return s.measured() && find(sections, s.name) != nil })
		// Reports of one day are told apart by when they were written; a fresh copy of the repository has them all at once.
		if at := info.ModTime(); common && (best == nil || day(p) > day(best.name) || day(p) == day(best.name) && at.After(newest)) {
			best, newest = &earlier{p, list}, at
		}
	}
	return best, nil
}

// day is the date that a report's name begins with.
func day(path string) string {
	name := filepath.Base(path)
	return name[:min(len(name), len(time.DateOnly))]
}

func readSections(path string) ([]*section, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := parseSections(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// measured tells sections of figures from what stands beside them.
func (s *section) measured() bool {
	return s.name != "meta" && s.name != "limits" && s.name != "difference"
}

func find(list []*section, name string) *section {
	if i := slices.IndexFunc(list, func(s *section) bool { return s.name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// difference sets the rows of two reports beside each other. Two runs of one program differ too: a change says something only if
// the samples of one report lie outside of those of the other.
func difference(old *earlier, sections []*section) (*section, error) {
	d := &section{name: "difference", lines: []string{"# to " + filepath.Base(old.name) + ": before, now, change, spread of the samples"}}
	for _, s := range sections {
		was := find(old.sections, s.name)
		if was == nil || s.name == "meta" {
			continue
		}
		before, err := was.rows()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", old.name, err)
		}
		now, err := s.rows()
		if err != nil {
			return nil, err
		}
		for _, x := range now {
			i := slices.IndexFunc(before, func(y *row) bool { return y.Name == x.Name && y.Unit == x.Unit })
			if i < 0 || before[i].Value == 0 || x.Value == 0 {
				continue
			}
			y := before[i]
			spread := max((y.Max-y.Min)/y.Value, (x.Max-x.Min)/x.Value)
			word := "within the spread"
			if x.Min > y.Max || x.Max < y.Min {
				word = "beyond the spread"
			}
			d.lines = append(d.lines, fmt.Sprintf("%s/%s\t%s\t%s\t%+.1f%%\t%.1f%%\t%s",
				s.name, x.Name, number(y.Value), number(x.Value), 100*(x.Value/y.Value-1), 100*spread, word))
		}
	}
	return d, nil
}
