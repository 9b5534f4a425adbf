// Command sim proves the engine, or shows where it fails: it runs seeds, replays one, and kills mutants.
package main

import (
	"os"

	"github.com/alecthomas/kong"
)

type commands struct {
	Run     runCommand     `cmd:"" help:"Run seeds, and judge every crash image. Exits with 1 if one fails."`
	Replay  replayCommand  `cmd:"" help:"Run one seed again, ending in the hash of its trace."`
	Mutants mutantsCommand `cmd:"" help:"Put faults into the engine on purpose, and see that the tests notice each."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("sim"), kong.Description("Simulate, and judge, MultiforaDB's engine."), kong.UsageOnError())
	if err := k.Run(); err != nil {
		k.Errorf("%v", err)
		os.Exit(1)
	}
}
