package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/command"
	"github.com/multiforadb/multiforadb/engine/server"
)

// serve is the server.
type serve struct {
	directory
	Bind           []string   `default:"127.0.0.1" placeholder:"ADDRESS" help:"Addresses to listen on (${default}). There is no authentication yet: let only trusted networks reach them."`
	Port           uint16     `default:"27017" help:"Port to listen on (${default}); 0 picks a free one and logs it."`
	TTLSweepSecs   int        `name:"ttl-sweep-secs" default:"60" placeholder:"SECONDS" help:"Time between two sweeps for expired documents (${default}); 0 turns them off."`
	MaxConnections int        `default:"20000" help:"Most clients at once (${default})."`
	MaxMemory      byteSize   `placeholder:"SIZE" help:"Most memory that the process takes for itself, such as 256m or 2g; the file's cache is the system's (half of the machine's)."`
	DebugAddr      string     `placeholder:"ADDRESS:PORT" help:"Address of this machine alone, as 127.0.0.1:6060, to serve the Go runtime's profiles on (off)."`
	LogLevel       slog.Level `default:"INFO" placeholder:"LEVEL" help:"DEBUG, INFO, WARN or ERROR (${default})."`
}

// Run serves until a signal ends it.
func (c *serve) Run(out output) error {
	processors()
	tail := &logTail{out: out.stderr}
	log := slog.New(slog.NewTextHandler(tail, &slog.HandlerOptions{Level: c.LogLevel}))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	b := command.BuildInfo()
	log.Info("starting", "version", b.Version, "revision", b.Revision, "go", runtime.Version(), "pid", os.Getpid(), "db", c.DB,
		"processors", runtime.GOMAXPROCS(0))
	listeners, err := c.listen()
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // the server has closed them before, if there was one
		}
	}()
	if c.DebugAddr != "" {
		stop, err := debugServer(c.DebugAddr, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	ttl := time.Duration(c.TTLSweepSecs) * time.Second
	if ttl <= 0 {
		ttl = -1
	}
	memory, err := c.memory()
	if err != nil {
		return err
	}
	if memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
	start := time.Now()
	db, err := engine.Open(c.DB, engine.Options{Logger: log, TTLSweep: ttl, MaxMemory: memory})
	if err != nil {
		return fmt.Errorf("cannot open the database in %s: %w", c.DB, err)
	}
	log.Info("database open", "took", time.Since(start))
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	srv := server.New(db, server.Options{
		Logger: log, MaxConnections: c.MaxConnections, Warnings: warnings(log, listeners), Lines: tail.Lines,
		MessageMemory: memory / messageShare,
		Process:       command.Process{Host: host, PID: os.Getpid(), Argv: os.Args},
	})
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- srv.Serve(l) }()
		log.Info("listening", "address", l.Addr().String())
	}
	select {
	case s := <-signals:
		log.Info("stopping", "signal", s.String())
	case err = <-failed:
		log.Error("stopping", "error", err)
	}
	go func() {
		<-signals
		log.Warn("stopped without waiting: what was acknowledged is safe, and the next start recovers it from the log")
		os.Exit(1)
	}()
	err = errors.Join(err, srv.Close(), db.Close())
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// processors gives the scheduler more processors than there are, unless the environment says how many. A goroutine that comes
// back from a sync would otherwise wait up to 10 ms for one beside busy readers.
func processors() {
	if os.Getenv("GOMAXPROCS") == "" {
		n := runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(n + max(2, n/2))
	}
}

func (c *serve) listen() ([]net.Listener, error) {
	var ls []net.Listener
	for _, host := range c.Bind {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(c.Port))))
		if err != nil {
			for _, l := range ls {
				_ = l.Close()
			}
			return nil, fmt.Errorf("cannot listen: %w", err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// warnings are what a user should know, for the log and for whoever connects with mongosh.
func warnings(log *slog.Logger, listeners []net.Listener) []string {
	const open = "Access control is not enabled for the database. Read and write access to data and configuration is unrestricted"
	list := []string{mongoLine(22120, open)}
	for _, l := range listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
			text := fmt.Sprintf("ANYBODY WHO CAN REACH %s CAN READ, CHANGE AND DELETE ALL DATA: there is no authentication yet", a)
			log.Warn(text)
			list = append(list, mongoLine(22140, text))
		}
	}
	return list
}

// mongoLine is a warning as a line of MongoDB's log, which mongosh takes apart to print it.
func mongoLine(id int, text string) string {
	line, err := json.Marshal(map[string]any{
		"t": map[string]string{"$date": time.Now().Format("2006-01-02T15:04:05.000-07:00")},
		"s": "W", "c": "CONTROL", "id": id, "ctx": "initandlisten", "msg": text,
	})
	if err != nil {
		return text
	}
	return string(line)
}
