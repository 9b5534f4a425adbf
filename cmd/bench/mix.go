package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// mix takes scans and durable inserts of one collection: each alone, then both at once. What either keeps is its rate beside the
// other as a part of what the processors that the other leaves would allow, by its rate alone.
type mix struct {
	systemFlags
	Readers int     `default:"8" help:"Clients that scan (${default})."`
	Writers int     `default:"8" help:"Clients that insert (${default})."`
	Seconds float64 `default:"5" help:"Time for each of the three (${default})."`
	Docs    int64   `default:"50000" help:"Documents to begin with (${default})."`
	DocSize size    `default:"1k" help:"Bytes of a document (${default})."`
}

func (c *mix) Validate() error {
	if c.Readers < 1 || c.Writers < 1 || c.Docs < 1 || c.Seconds <= 0 {
		return errors.New("--readers, --writers, --docs and --seconds are positive")
	}
	return nil
}

func (c *mix) measure(b *bench, r *report) error {
	m, err := newMaker(c.DocSize)
	if err != nil {
		return err
	}
	s, err := b.one(&c.systemFlags)
	if err != nil {
		return err
	}
	defer s.close()
	if err := b.withLimits(&c.systemFlags, s, r); err != nil {
		return err
	}
	coll, err := s.fresh(b.ctx, "mix")
	if err != nil {
		return err
	}
	p := b.progress("load", c.Docs)
	err = m.load(b.ctx, coll, 0, c.Docs, c.Seed, p)
	p.end()
	if err != nil {
		return err
	}
	x := &mixed{mix: c, bench: b, system: s, maker: m, coll: coll}
	x.there.Store(c.Docs)
	writers, err := x.phase(0, c.Writers)
	if err != nil {
		return err
	}
	readers, err := x.phase(c.Readers, 0)
	if err != nil {
		return err
	}
	both, err := x.phase(c.Readers, c.Writers)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		phase
	}{{"alone", writers}, {"alone", readers}, {"beside each other", both}} {
		if f.writes > 0 {
			r.add("inserts, "+f.name, "ops/s", f.writes)
			r.add("insert p99, "+f.name, "µs", f.times.percentile(99))
		}
		if f.scanned > 0 {
			r.add("scans, "+f.name, "documents/s", f.scanned)
			r.add("scan p99, "+f.name, "µs", f.scans.percentile(99))
		}
		r.add("processors, "+f.name, "", f.busy)
	}
	cores := float64(runtime.NumCPU())
	// What one operation costs alone tells what of the processors the other kind has taken in the mix.
	part := func(alone, cost, rate, other, otherCost float64) float64 {
		left := max(cores-other*otherCost, 0)
		return rate / (alone * min(1, left/(alone*cost)))
	}
	writeCost, readCost := writers.busy/writers.writes, readers.busy/readers.scanned
	r.add("inserts keep, of what is left to them", "%", 100*part(writers.writes, writeCost, both.writes, both.scanned, readCost))
	r.add("scans keep, of what is left to them", "%", 100*part(readers.scanned, readCost, both.scanned, both.writes, writeCost))
	return coll.Drop(b.ctx)
}

// mixed is mix under way.
type mixed struct {
	*mix
	*bench
	*system
	*maker
	coll  *mongo.Collection
	there atomic.Int64 // documents
}

// phase is what some readers and writers have reached.
type phase struct {
	writes, scanned float64 // inserts, and documents that scans have seen, a second
	busy            float64 // processors, of server and clients
	times, scans    sample  // of inserts and scans
}

func (x *mixed) phase(readers, writers int) (phase, error) {
	var scanned atomic.Int64
	samples := make([]sample, readers+writers)
	var late atomic.Bool
	p := x.progress(fmt.Sprintf("%d readers, %d writers", readers, writers), 1)
	defer p.end()
	busy := x.processorTime()
	start := time.Now()
	timer := time.AfterFunc(time.Duration(x.Seconds*float64(time.Second)), func() { late.Store(true) })
	defer timer.Stop()
	err := parallel(x.ctx, readers+writers, func(ctx context.Context, i int) error {
		rng := newRand(x.Seed, uint64(readers)<<32|uint64(i))
		for !late.Load() {
			start := time.Now()
			if i < readers {
				n := x.there.Load()
				if _, err := x.coll.CountDocuments(ctx, bson.D{{Key: "p", Value: -1}}); err != nil {
					return err
				}
				scanned.Add(n)
			} else if _, err := x.coll.InsertOne(ctx, x.doc(x.there.Add(1), rng)); err != nil {
				return err
			}
			samples[i] = append(samples[i], micros(time.Since(start)))
		}
		return nil
	})
	took := time.Since(start)
	out := phase{busy: (x.processorTime() - busy) / took.Seconds(), scanned: rate(scanned.Load(), took)}
	for i, s := range samples {
		if i < readers {
			out.scans = append(out.scans, s...)
		} else {
			out.times = append(out.times, s...)
		}
	}
	out.writes = rate(int64(len(out.times)), took)
	return out, err
}

// processorTime is what server and clients have had, in seconds.
func (x *mixed) processorTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return x.busy()
	}
	return x.busy() + time.Duration(u.Utime.Nano()+u.Stime.Nano()).Seconds()
}
