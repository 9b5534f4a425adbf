package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/multiforadb/multiforadb/sim/commands"
	"github.com/multiforadb/multiforadb/sim/workload"
)

// which says which run: one that a seed draws, or one that lies in a file.
type which struct {
	Seed    uint64 `help:"Which." default:"1"`
	Profile string `help:"Of which profile: recoverable, errors or damage." enum:"recoverable,errors,damage" default:"recoverable"`
	Program string `help:"Over which layer: storage, commands, or whichever is the seed's." enum:"storage,commands,any" default:"any"`
	Case    string `help:"Read all that from this file instead, with what shrink has left out." type:"existingfile"`
}

func (w *which) read() (workload.Case, error) {
	c := workload.Case{Seed: w.Seed, Profile: workload.Profile(w.Profile), Program: programOf(w.Program)}
	if w.Case == "" {
		return c, nil
	}
	b, err := os.ReadFile(w.Case)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", w.Case, err)
	}
	return c, nil
}

// command replays the run.
func (w *which) command() string {
	if w.Case != "" {
		return "go run ./cmd/sim replay --case " + w.Case
	}
	return workload.Result{Seed: w.Seed, Profile: workload.Profile(w.Profile), Program: programOf(w.Program)}.Replay()
}

// programOf is a flag's value as a case has it.
func programOf(flag string) string {
	if flag == "any" {
		return ""
	}
	return flag
}

// play runs a case.
func play(c workload.Case, told workload.Watch) workload.Result { return commands.Play(c, told) }
