package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/sim/workload"
)

type runCommand struct {
	Seeds   uint64        `help:"How many seeds, of each profile." default:"100"`
	Seed    uint64        `help:"The first." default:"1"`
	For     time.Duration `help:"Go on with new seeds for this long, whatever --seeds says."`
	Profile string        `help:"Which faults: recoverable, errors, damage or all." enum:"recoverable,errors,damage,all" default:"all"`
	Program string        `help:"Over which layer: storage, commands, or any, each with every second seed." enum:"storage,commands,any" default:"any"`
	Jobs    int           `help:"How many at once; 0 is one for each processor." default:"0"`
}

// twice is how many seeds there are for two that run twice, one of each program: the hashes of the traces must be equal.
const twice = 100

// totals are what all runs together did.
type totals struct {
	seeds, images, operations, faults, failures int
}

func (t totals) String() string {
	hit, all := 0, probe.All()
	for _, p := range all {
		if p.Hits > 0 {
			hit++
		}
	}
	return fmt.Sprintf("seeds %d  crash images %d  operations %d  faults %d  probes hit %d/%d  failures %d",
		t.seeds, t.images, t.operations, t.faults, hit, len(all), t.failures)
}

// Run runs seeds until they or the time are used up.
func (c *runCommand) Run() error {
	profiles := workload.Profiles
	if c.Profile != "all" {
		profiles = []workload.Profile{workload.Profile(c.Profile)}
	}
	probe.Count()
	began := time.Now()
	queue := make(chan workload.Case)
	go func() {
		defer close(queue)
		for n := uint64(0); c.For == 0 && n < c.Seeds || c.For > 0 && time.Since(began) < c.For; n++ {
			for _, p := range profiles {
				queue <- workload.Case{Seed: c.Seed + n, Profile: p, Program: programOf(c.Program)}
			}
		}
	}()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var sum totals
	live := terminal()
	if c.Jobs <= 0 {
		c.Jobs = runtime.GOMAXPROCS(0)
	}
	for range c.Jobs {
		wg.Go(func() {
			for one := range queue {
				r := run(one)
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
					fmt.Printf("FAILED  seed %d  profile %s\n  config: %s\n  %v\n  replay: %s\n  shrink: %s --out DIR\n",
						r.Seed, r.Profile, r.Config, r.Err, r.Replay(), strings.Replace(r.Replay(), " replay ", " shrink ", 1))
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
	took := time.Since(began)
	fmt.Printf("%v\n", sum)
	fmt.Fprintf(os.Stderr, "%.0f crash images a minute, in %v\n", float64(sum.images)/took.Minutes(), took.Round(100*time.Millisecond))
	if missed := missed(); len(missed) > 0 {
		fmt.Fprintf(os.Stderr, "probes not hit: %s\n", strings.Join(missed, ", "))
	}
	if sum.failures > 0 {
		return errors.New("the engine failed")
	}
	return nil
}

// run runs a seed; one in so many twice.
func run(c workload.Case) workload.Result {
	r := play(c, workload.Watch{})
	if r.Err != nil || c.Seed%twice > 1 {
		return r
	}
	if again := play(c, workload.Watch{}); again.Hash != r.Hash || again.Images != r.Images {
		r.Err = fmt.Errorf("the same seed ran in two ways: hash %x, then %x; %d images, then %d", r.Hash, again.Hash, r.Images, again.Images)
	}
	return r
}

// missed names the probes that were not hit.
func missed() (names []string) {
	for _, p := range probe.All() {
		if p.Hits == 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// terminal reports whether someone is watching.
func terminal() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
