// Command sim proves the engine, or shows where it fails: it runs seeds, replays one, makes a failing one small, draws one, and
// kills mutants.
package main

import (
	"os"

	"github.com/alecthomas/kong"
)

type commandLine struct {
	Run     runCommand     `cmd:"" help:"Run seeds, and judge every crash image. Exits with 1 if one fails."`
	Replay  replayCommand  `cmd:"" help:"Run one seed again, with its trace, ending in the trace's hash."`
	Shrink  shrinkCommand  `cmd:"" help:"Find the least of a failing run that still fails in the same way."`
	Report  reportCommand  `cmd:"" help:"Write any run as a page for a browser."`
	Mutants mutantsCommand `cmd:"" help:"Put faults into the engine on purpose, and see that the tests notice each."`
}

func main() {
	var c commandLine
	k := kong.Parse(&c, kong.Name("sim"), kong.Description("Simulate, and judge, MultiforaDB's engine."), kong.UsageOnError())
	if err := k.Run(); err != nil {
		k.Errorf("%v", err)
		os.Exit(1)
	}
}
