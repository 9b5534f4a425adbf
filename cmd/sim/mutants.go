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
	if all, err = chosen(all, c.Only); err != nil {
		return err
	}
	began := time.Now()
	controls := mutants.Controls(all)
	green := c.each(runner, controls, func(r mutants.Result) {
		if r.Verdict == mutants.Survived {
			r.Verdict = "green"
		}
		fmt.Println(r)
	})
	if green < len(controls) {
		return errors.New("the engine without a mutant fails, so mutants prove nothing")
	}
	killed := c.each(runner, all, func(r mutants.Result) { fmt.Println(r) })
	fmt.Printf("killed %d of %d\n", killed, len(all))
	fmt.Fprintf(os.Stderr, "in %v\n", time.Since(began).Round(time.Second))
	if killed < len(all) {
		return errors.New("a mutant was not killed")
	}
	return nil
}

func chosen(all []mutants.Mutant, pattern string) (out []mutants.Mutant, err error) {
	for _, m := range all {
		ok, err := filepath.Match(pattern, m.Name)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// each runs mutants, and counts those that became what they should: those without a fault survive, all others are killed. While the
// tests of one run, the next are built.
func (c *mutantsCommand) each(runner mutants.Runner, all []mutants.Mutant, show func(mutants.Result)) (right int) {
	queue := make(chan mutants.Mutant)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range max(c.Jobs, 1) {
		wg.Go(func() {
			for m := range queue {
				r := runner.Run(m)
				mu.Lock()
				want := mutants.Killed
				if m.File == "" {
					want = mutants.Survived
				}
				if r.Verdict == want {
					right++
				}
				show(r)
				if c.Verbose || r.Verdict != want && r.Verdict != mutants.Survived {
					fmt.Println(r.Output)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		queue <- m
	}
	close(queue)
	wg.Wait()
	return right
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
