package main

import (
	"errors"
	"fmt"

	"github.com/multiforadb/multiforadb/sim/workload"
)

type replayCommand struct {
	Seed    uint64 `help:"Which." required:""`
	Profile string `help:"Of which profile: recoverable, errors or damage." enum:"recoverable,errors,damage" default:"recoverable"`
}

func (c *replayCommand) Run() error {
	r := workload.Run(c.Seed, workload.Profile(c.Profile))
	fmt.Printf("seed %d  profile %s\nconfig: %s\nsteps %d  crash images %d  operations %d  faults %d\njudged: %+v\n", r.Seed, r.Profile, r.Config,
		r.Steps, r.Images, r.Operations, r.Faults, r.Judged)
	if r.Err != nil {
		fmt.Printf("FAILED: %v\n", r.Err)
	}
	fmt.Printf("hash %x\n", r.Hash)
	if r.Err != nil {
		return errors.New("the seed fails")
	}
	return nil
}
