// Command multiforadb is the server, and the tools that open its files.
//
//	multiforadb [serve] --db DIR     serve MongoDB clients until SIGTERM or SIGINT
//	multiforadb check --db DIR       prove that a database is sound, or name each fault (exit code 1)
//	multiforadb stat --db DIR        sizes, live bytes, trees, log
//
// A directory is open in one process at a time: the tools want the server stopped.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/multiforadb/multiforadb/engine/command"
	"github.com/multiforadb/multiforadb/engine/env"
)

type cli struct {
	Serve   serve            `cmd:"" default:"withargs" help:"Serve MongoDB clients (the default)."`
	Check   check            `cmd:"" help:"Prove that a database is sound, or name each fault."`
	Stat    stat             `cmd:"" help:"Tell sizes, live bytes, trees and log."`
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// directory is the flag that all commands have.
type directory struct {
	DB string `name:"db" default:"./data" placeholder:"DIR" type:"path" help:"Directory of the database (${default})."`
}

// errFaults: a check has found, and printed, what is wrong.
var errFaults = errors.New("the database is damaged")

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it gives the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	b := command.BuildInfo()
	exit := -1
	parser := kong.Must(new(cli),
		kong.Name("multiforadb"),
		kong.Description("A document database for one machine that speaks the MongoDB wire protocol."),
		kong.Vars{"version": fmt.Sprintf("multiforadb %s (%s, %s %s/%s)", b.Version, b.Revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)},
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.UsageOnError(),
	)
	ctx, err := parser.Parse(args)
	if exit >= 0 { // help and version have been printed
		return exit
	}
	if err == nil {
		err = ctx.Run(output{stdout, stderr})
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, env.ErrLocked):
		err = fmt.Errorf("another process has the database open: %w", err)
	case errors.Is(err, errFaults):
		return 1
	}
	fmt.Fprintf(stderr, "multiforadb: %v\n", err)
	return 1
}

// output is where a command writes.
type output struct{ stdout, stderr io.Writer }
