package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// big loads much, kills the server in the middle of writes, and looks at what there is after it, and how soon.
type big struct {
	systemFlags
	Size    size `default:"20g" help:"Bytes of documents to load (${default})."`
	DocSize size `default:"16k" help:"Bytes of a document (${default})."`
	Clients int  `default:"2" help:"Clients that load (${default})."`
	Keep    bool `help:"Keep the directory."`
}

// ackedWrites is how many writes are acknowledged before the second kill.
const ackedWrites = 200

func (c *big) Validate() error {
	if len(c.URI) > 0 {
		return errors.New("big kills the server: it starts its own, and takes no --uri")
	}
	if c.Clients < 1 {
		return errors.New("--clients is at least 1")
	}
	return nil
}

func (c *big) measure(b *bench, r *report) error {
	m, err := newMaker(c.DocSize)
	if err != nil {
		return err
	}
	s, err := b.start(&c.systemFlags)
	if err != nil {
		return err
	}
	x := &loaded{big: c, bench: b, system: s, report: r, maker: m, count: max(int64(c.Size)/int64(c.DocSize), int64(c.Clients))}
	defer func() {
		if c.Keep {
			fmt.Fprintf(b.stderr, "kept: %s\n", x.data)
			x.dir = ""
		}
		x.close()
	}()
	if err := b.withLimits(&c.systemFlags, s, r); err != nil {
		return err
	}
	for _, step := range []func() error{x.empty, x.fill, x.killAndReopen, x.killAcknowledged} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// loaded is big under way.
type loaded struct {
	*big
	*bench
	*system // another after each start
	*report
	*maker
	count int64 // documents
}

func (x *loaded) coll(name string) *mongo.Collection {
	return x.client.Database(database).Collection(name)
}

func (x *loaded) live() float64 { return float64(x.count) * float64(x.size) }

func (x *loaded) empty() error {
	now, _ := x.memory()
	x.add("RSS, empty", "MB", now/1e6)
	return nil
}

// fill loads.
func (x *loaded) fill() error {
	p := x.progress("load", x.count)
	defer p.end()
	written := x.written()
	start := time.Now()
	n := int64(x.Clients)
	err := parallel(x.ctx, x.Clients, func(ctx context.Context, i int) error {
		return x.load(ctx, x.coll("big"), x.count*int64(i)/n, x.count*int64(i+1)/n, x.Seed, p)
	})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	x.add("load", "MB/s", rate(int64(x.live()), time.Since(start))/1e6).against(limitWriteSync, x.limit(limitWriteSync))
	_, peak := x.memory()
	x.add("RSS, most during load", "MB", peak/1e6).against("live", x.live()/1e6)
	x.add("write amplification of load", "×", (x.written()-written)/x.live())
	data := usageOf(x.data, dataFile)
	x.add("data file / live", "×", data.apparent/x.live())
	x.add("data allocated / live", "×", data.allocated/x.live())
	x.add("log after load", "MB", usageOf(x.data, logFile).allocated/1e6)
	return nil
}

// killAndReopen kills the server while a client writes and another scans.
func (x *loaded) killAndReopen() error {
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	busy := make(chan error, 2)
	go func() {
		rng := newRand(x.Seed, 1<<40)
		for i := int64(0); ; i++ {
			if _, err := x.coll("during").InsertOne(ctx, x.doc(i, rng)); err != nil {
				busy <- err
				return
			}
		}
	}()
	go func() {
		for {
			if _, err := x.coll("big").CountDocuments(ctx, bson.D{{Key: "p", Value: -1}}); err != nil {
				busy <- err
				return
			}
		}
	}()
	select {
	case err := <-busy:
		return fmt.Errorf("a client beside the kill: %w", err)
	case <-time.After(time.Second):
	}
	took, err := x.crash()
	if err != nil {
		return err
	}
	cancel()
	<-busy
	<-busy
	x.add("reopen after kill -9", "s", took)
	now, _ := x.memory()
	x.add("RSS after reopen", "MB", now/1e6).against("live", x.live()/1e6)
	x.add("RSS after reopen / live", "%", 100*now/x.live())
	last, err := timed(1, func(int) error { return x.intact(x.coll("big"), x.count-1) })
	if err != nil {
		return err
	}
	x.add("first read after reopen", "µs", last...)
	n, err := x.coll("big").EstimatedDocumentCount(x.ctx)
	if err != nil || n != x.count {
		return fmt.Errorf("%d documents after the kill, %d were acknowledged: %w", n, x.count, err)
	}
	x.add("documents after kill -9", "", float64(n))
	return nil
}

// killAcknowledged kills the server right after the last of some acknowledged writes.
func (x *loaded) killAcknowledged() error {
	rng := newRand(x.Seed, 2<<40)
	for i := range int64(ackedWrites) {
		if _, err := x.coll("acknowledged").InsertOne(x.ctx, x.doc(i, rng)); err != nil {
			return err
		}
	}
	took, err := x.crash()
	if err != nil {
		return err
	}
	x.add("reopen after kill -9, again", "s", took)
	for i := range int64(ackedWrites) {
		if err := x.intact(x.coll("acknowledged"), i); err != nil {
			return fmt.Errorf("a write that was acknowledged: %w", err)
		}
	}
	x.add("acknowledged writes after kill -9", "", ackedWrites)
	return nil
}

// intact reads a document and looks whether it is the whole one that was written; its text is any.
func (x *loaded) intact(c *mongo.Collection, id int64) error {
	raw, err := c.FindOne(x.ctx, bson.D{{Key: "_id", Value: id}}).Raw()
	if err != nil {
		return fmt.Errorf("document %d: %w", id, err)
	}
	if len(raw) != x.size || raw.Validate() != nil || raw.Lookup("k").Int64() != id%kValues {
		return fmt.Errorf("document %d is damaged: %v", id, raw)
	}
	return nil
}

// crash kills the server and starts it anew; it gives the seconds from the start to the first answer.
func (x *loaded) crash() (float64, error) {
	old := x.system
	old.proc.kill()
	s, err := x.serveAt(old.proc.address, old.name, old.proc.cmd.Path, old.proc.cmd.Args[1:]...)
	if err != nil {
		return 0, err
	}
	s.dir, s.data = old.dir, old.data
	old.dir = ""
	x.system = s
	old.close()
	return s.proc.ready.Seconds(), nil
}
