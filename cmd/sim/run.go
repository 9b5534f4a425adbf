package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/multiforadb/multiforadb/sim/workload"
)

type runCommand struct {
	Seeds   uint64        `help:"How many seeds, of each profile." default:"100"`
	Seed    uint64        `help:"The first." default:"1"`
	For     time.Duration `help:"Go on with new seeds for this long, whatever --seeds says."`
	Profile string        `help:"Which faults: recoverable, errors, damage or all." enum:"recoverable,errors,damage,all" default:"all"`
	Jobs    int           `help:"How many at once." default:"1"`
}

// totals are what all runs together did.
type totals struct {
	seeds, images, operations, faults, failures int
}

func (t totals) String() string {
	return fmt.Sprintf("seeds %d  crash images %d  operations %d  faults %d  failures %d", t.seeds, t.images, t.operations, t.faults, t.failures)
}

type job struct {
	seed    uint64
	profile workload.Profile
}

func (c *runCommand) Run() error {
	profiles := workload.Profiles
	if c.Profile != "all" {
		profiles = []workload.Profile{workload.Profile(c.Profile)}
	}
	began := time.Now()
	queue := make(chan job)
	go func() {
		defer close(queue)
		for n := uint64(0); c.For == 0 && n < c.Seeds || c.For > 0 && time.Since(began) < c.For; n++ {
			for _, p := range profiles {
				queue <- job{c.Seed + n, p}
			}
		}
	}()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var sum totals
	live := terminal()
	for range max(c.Jobs, 1) {
		wg.Go(func() {
			for j := range queue {
				r := workload.Run(j.seed, j.profile)
				mu.Lock()
				sum.seeds++
				sum.images += r.Images
				sum.operations += r.Operations
				sum.faults += r.Faults
				if live {
					fmt.Print("\r\x1b[K")
				}
				if r.Err != nil {
					sum.failures++
					report(r)
				}
				if live {
					fmt.Printf("%v  %v", sum, time.Since(began).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if live {
		fmt.Print("\r\x1b[K")
	}
	minutes := time.Since(began).Minutes()
	fmt.Printf("%v\n", sum)
	fmt.Fprintf(os.Stderr, "%.0f crash images a minute, in %v\n", float64(sum.images)/minutes, time.Since(began).Round(time.Second))
	if sum.failures > 0 {
		return errors.New("the engine failed")
	}
	return nil
}

// report prints a failure, and how to see it again. Its error names the choice of the crash image.
func report(r workload.Result) {
	fmt.Printf("FAILED  seed %d  profile %s\n  config: %s\n  %v\n  replay: %s\n", r.Seed, r.Profile, r.Config, r.Err, r.Replay())
}

// terminal reports whether someone is watching.
func terminal() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

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
