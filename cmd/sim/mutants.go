package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/multiforadb/multiforadb/sim/mutants"
)

// allTests are those that kill mutants, for the engine without one.
const allTests = "TestStoreFollowsModel|TestStoreSurvivesCrashes|TestEveryCallFailsInTurn|TestFullDisk|TestScheduledClients|TestFailedSyncIsFinal"

type mutantsCommand struct {
	Only    string        `help:"Only the mutants whose names match this pattern." default:"*"`
	Jobs    int           `help:"How many at once." default:"1"`
	Start   uint64        `help:"The first seed." default:"1"`
	Timeout time.Duration `help:"For the tests of one mutant; a mutant that hangs is killed by it." default:"3m"`
	Verbose bool          `help:"Print what the tests said of each mutant."`
}

func (c *mutantsCommand) Run() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := mutants.Load(filepath.Join(root, "sim/mutants"))
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	runner := mutants.Runner{Root: root, Temp: temp, Start: c.Start, Timeout: c.Timeout}
	if c.Only == "*" {
		r := runner.Run(mutants.Unmutated(allTests, 2))
		if r.Verdict != mutants.Survived {
			return fmt.Errorf("the engine without a mutant fails, so mutants prove nothing:\n%s", r.Output)
		}
		fmt.Printf("%-9s %-28s %26.1fs\n", "green", r.Name, r.Took.Seconds())
	}

	queue := make(chan mutants.Mutant)
	var mu sync.Mutex
	var wg sync.WaitGroup
	killed, count := 0, 0
	for range max(c.Jobs, 1) {
		wg.Go(func() {
			for m := range queue {
				r := runner.Run(m)
				mu.Lock()
				count++
				if r.Verdict == mutants.Killed {
					killed++
				}
				fmt.Println(r)
				if c.Verbose || r.Verdict == mutants.Stale || r.Verdict == mutants.Broken {
					fmt.Println(r.Output)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		if ok, err := filepath.Match(c.Only, m.Name); err != nil {
			return err
		} else if ok {
			queue <- m
		}
	}
	close(queue)
	wg.Wait()
	fmt.Printf("killed %d of %d\n", killed, count)
	if killed < count {
		return errors.New("a mutant was not killed")
	}
	return nil
}

// moduleRoot is the directory above here that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("run this inside of the module's source")
		}
		dir = up
	}
}
