package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/multiforadb/multiforadb/sim/report"
	"github.com/multiforadb/multiforadb/sim/shrink"
	"github.com/multiforadb/multiforadb/sim/workload"
)

type shrinkCommand struct {
	which
	Out string        `help:"The directory to write to." required:"" placeholder:"DIR"`
	For time.Duration `help:"How long it may take." default:"2m"`
}

// Run shrinks the case, and writes what is left.
func (c *shrinkCommand) Run() error {
	which, err := c.read()
	if err != nil {
		return err
	}
	live := terminal()
	s, err := shrink.Shrink(which, shrink.Options{Run: play, For: c.For, Progress: func(what string) {
		if live {
			fmt.Printf("\r\x1b[K%s", what)
		}
	}})
	if live {
		fmt.Print("\r\x1b[K")
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	file := filepath.Join(c.Out, "case.json")
	command := "go run ./cmd/sim replay --case " + file
	rec := report.Record(s.Case, play)
	files := map[string]string{
		"operations.txt": operations(s.Result.Ops),
		"schedule.txt":   schedule(rec),
		"failure.txt":    s.Result.Err.Error() + "\n",
		"replay.txt":     command + "\n",
	}
	if cut := s.Case.Edit.Cut; cut != nil && s.Lost != "" {
		files["crash.txt"] = fmt.Sprintf("at event %d of the disk, choice %v\n%s", cut.At, cut.Choice, s.Lost)
	}
	b, err := json.MarshalIndent(s.Case, "", "  ")
	if err != nil {
		return err
	}
	files["case.json"] = string(b) + "\n"
	var errs []error
	for name, text := range files {
		errs = append(errs, os.WriteFile(filepath.Join(c.Out, name), []byte(text), 0o666))
	}
	errs = append(errs, writeReport(rec, filepath.Join(c.Out, "report.html"), command))
	fmt.Printf("failure: %s\nbefore: %v\nafter:  %v\nruns: %d\nreplay: %s\nreport: %s\n", s.Result.Class, s.Before, s.After, s.Runs, command,
		filepath.Join(c.Out, "report.html"))
	return errors.Join(errs...)
}

// operations lists what clients did, in the order in which they began.
func operations(ops []workload.Op) string {
	var b strings.Builder
	for _, op := range ops {
		outcome := "no answer"
		if op.End > 0 {
			outcome = op.Outcome
		}
		fmt.Fprintf(&b, "%7d  %-10s #%d  %s: %s\n", op.Begin, op.Client, op.Index, op.Text, outcome)
	}
	return b.String()
}

// schedule lists the tasks in turn, each with the steps that it made before another one went on.
func schedule(rec *report.Recording) string {
	var b strings.Builder
	for i, begin := 0, 0; i < len(rec.Steps); i++ {
		if i+1 < len(rec.Steps) && rec.Steps[i+1].Task == rec.Steps[begin].Task {
			continue
		}
		fmt.Fprintf(&b, "%7d  %-20s %4d steps, to %q\n", rec.Steps[begin].N, rec.Steps[begin].Task, i+1-begin, rec.Steps[i].Point)
		begin = i + 1
	}
	return b.String()
}
