package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/multiforadb/multiforadb/sim/report"
	"github.com/multiforadb/multiforadb/sim/workload"
)

type replayCommand struct {
	which
	Quiet bool `help:"Without the trace."`
}

// Run runs the case again, prints what happens, and ends in the hash of the trace.
func (c *replayCommand) Run() error {
	which, err := c.read()
	if err != nil {
		return err
	}
	var r workload.Result
	if c.Quiet {
		r = play(which, workload.Watch{})
	} else {
		rec := report.Record(which, play)
		if err := rec.Trace(os.Stdout); err != nil {
			return err
		}
		r = rec.Result
	}
	fmt.Printf("seed %d  profile %s\nconfig: %s\nsteps %d  crash images %d  operations %d  faults %d\njudged: %+v\n", r.Seed, r.Profile, r.Config,
		r.Steps, r.Images, r.Operations, r.Faults, r.Judged)
	if r.Err != nil {
		fmt.Printf("FAILED: %v\n", r.Err)
	}
	fmt.Printf("hash %x\n", r.Hash)
	if r.Err != nil {
		return errors.New("the run fails")
	}
	return nil
}

type reportCommand struct {
	which
	Out string `help:"The file to write." required:"" placeholder:"FILE.html"`
}

// Run records the case and writes the page.
func (c *reportCommand) Run() error {
	which, err := c.read()
	if err != nil {
		return err
	}
	return writeReport(report.Record(which, play), c.Out, c.command())
}

func writeReport(rec *report.Recording, file, command string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(rec.WriteHTML(f, command), f.Close())
}
