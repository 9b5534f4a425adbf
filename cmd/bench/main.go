// Command bench measures a database that speaks the MongoDB protocol, through the official driver, and shows what it reaches
// beside what the machine itself can do.
//
//	bench compare     one command after the other: what each kind takes
//	bench concurrent  durable operations a second, by the number of clients
//	bench mix         scans and inserts alone, and beside each other
//	bench churn       what a file takes beside what is live in it, round after round of changes
//	bench big         a load, a kill, what there is after it and how soon
//	bench limits      the machine: disk, memory, compression, loopback
//	bench run         a plan of the above, each several times, kept in spec/bench
//	bench plot        such reports as pictures
//
// Where no --uri is given, it builds and starts a server of its own, in a fresh directory that it removes again. All writes are
// durable (w: 1, j: true).
//
// A figure is a row of TSV: name, value, unit; then, where there are, the least and the greatest sample (the value is their median
// then), and the figure as a multiple of a limit of the machine that was measured in the same run, and the limit's name. A row of
// a series is called series@x: plot draws those.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Compare    compare    `cmd:"" help:"Measure one command after the other."`
	Concurrent concurrent `cmd:"" help:"Measure durable operations a second, by the number of clients."`
	Mix        mix        `cmd:"" help:"Measure scans and inserts alone, and beside each other."`
	Churn      churn      `cmd:"" help:"Measure what the file takes, round after round of changes."`
	Big        big        `cmd:"" help:"Load, kill, and see what is there after it and how soon."`
	Limits     limits     `cmd:"" help:"Measure the machine: disk, memory, compression, loopback."`
	Run        planRun    `cmd:"" help:"Run a plan of measurements, each several times, and keep the report."`
	Plot       plot       `cmd:"" help:"Draw reports as SVG."`
}

// measurement is a command that adds its figures to a report.
type measurement interface {
	measure(b *bench, r *report) error
}

// bench is what all commands work with.
type bench struct {
	ctx            context.Context
	stdout, stderr io.Writer
	built          string // the server's program, once it was built
	temp           string // removed at the end
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it gives the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{ctx: ctx, stdout: stdout, stderr: stderr}
	defer b.clean()
	exit := -1
	k, err := parse(args, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }), kong.UsageOnError())
	if exit >= 0 { // help has been printed
		return exit
	}
	if err == nil {
		if m, ok := chosen(k).(measurement); ok {
			err = b.show(m)
		} else {
			err = k.Run(b)
		}
	}
	if err == nil {
		return 0
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	return 1
}

func parse(args []string, o ...kong.Option) (*kong.Context, error) {
	o = append(o, kong.Name("bench"), kong.Description("Measure a database that speaks the MongoDB protocol, beside what the machine can do."))
	return kong.Must(new(cli), o...).Parse(args)
}

// chosen is the command that was given, with its flags.
func chosen(k *kong.Context) any {
	if n := k.Selected(); n != nil {
		return n.Target.Addr().Interface()
	}
	return nil
}

// show takes a measurement and prints it.
func (b *bench) show(m measurement) error {
	var r report
	if err := m.measure(b, &r); err != nil {
		return err
	}
	if j, ok := m.(interface{ json() bool }); ok && j.json() {
		return r.writeJSON(b.stdout)
	}
	return r.write(b.stdout)
}

func (b *bench) clean() {
	if b.temp != "" {
		_ = os.RemoveAll(b.temp)
	}
}
