package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// concurrent takes durable operations a second, by the number of clients that wait for one each.
type concurrent struct {
	systemFlags
	Clients     []int   `default:"1,4,8,16,32" help:"Numbers of clients (${default})."`
	Seconds     float64 `default:"5" help:"Time for each number of clients (${default})."`
	Collections string  `default:"1" placeholder:"1|N" help:"Collections to write to; N is one a client (${default})."`
	ReadShare   float64 `default:"0" help:"Part of the operations that are findOne by _id, 0 to 1 (${default})."`
	DocSize     size    `default:"1k" help:"Bytes of a document (${default})."`
}

func (c *concurrent) Validate() error {
	for _, n := range c.Clients {
		if n < 1 || n > 1000 {
			return fmt.Errorf("%d clients: 1 to 1000 are possible", n)
		}
	}
	if n, err := strconv.Atoi(c.Collections); c.Collections != "N" && (err != nil || n < 1) {
		return fmt.Errorf("--collections is a number or N, not %q", c.Collections)
	}
	if c.ReadShare < 0 || c.ReadShare > 1 || c.Seconds <= 0 {
		return errors.New("--read-share is between 0 and 1, and --seconds is positive")
	}
	return nil
}

func (c *concurrent) measure(b *bench, r *report) error {
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
	p := b.progress("concurrent", int64(len(c.Clients)))
	defer p.end()
	ops := make([]float64, len(c.Clients))
	for i, n := range c.Clients {
		if ops[i], err = c.clients(b, s, m, n, r); err != nil {
			return err
		}
		p.add(1)
	}
	if last := len(ops) - 1; last > 0 {
		r.add(fmt.Sprintf("%d clients / %d", c.Clients[last], c.Clients[0]), "×", ops[last]/ops[0])
	}
	return s.client.Database(database).Drop(b.ctx)
}

// client is one of many, with what its operations took.
type client struct {
	coll          *mongo.Collection
	from, next    int64 // numbers of its own documents
	writes, reads sample
}

// clients lets n of them work, and gives their operations a second.
func (c *concurrent) clients(b *bench, s *system, m *maker, n int, r *report) (ops float64, err error) {
	colls, err := c.collections(b, s, n)
	if err != nil {
		return 0, err
	}
	list := make([]*client, n)
	for i := range list {
		from := int64(i) << 32
		list[i] = &client{coll: colls[i%len(colls)], from: from, next: from}
	}
	// Every client has its connection, and a document to read, before the clock starts.
	err = parallel(b.ctx, n, func(ctx context.Context, i int) error {
		return list[i].insert(ctx, m.doc(list[i].from, newRand(c.Seed, uint64(i))))
	})
	if err != nil {
		return 0, err
	}
	before, err := s.status(b.ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	var late atomic.Bool
	timer := time.AfterFunc(time.Duration(c.Seconds*float64(time.Second)), func() { late.Store(true) })
	defer timer.Stop()
	err = parallel(b.ctx, n, func(ctx context.Context, i int) error {
		return c.work(ctx, list[i], m, newRand(c.Seed, uint64(n)<<32|uint64(i)), &late)
	})
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	after, err := s.status(b.ctx)
	if err != nil {
		return 0, err
	}
	var writes, reads sample
	for _, x := range list {
		writes, reads = append(writes, x.writes...), append(reads, x.reads...)
	}
	at := "@" + strconv.Itoa(n)
	add := func(kind string, s sample) float64 {
		ops := rate(int64(len(s)), took)
		if len(s) > 0 {
			r.add(kind+at, "ops/s", ops).against("1 / ("+limitSync+" + "+limitPing+")", 1e6/max(r.limit(limitSync, limitPing), 1e-9))
			r.add(kind+" p50"+at, "µs", s.percentile(50))
			r.add(kind+" p99"+at, "µs", s.percentile(99))
		}
		return ops
	}
	ops = add("writes", writes) + add("reads", reads)
	if syncs := after.own("commit", "syncs") - before.own("commit", "syncs"); syncs > 0 {
		r.add("commits per fsync"+at, "×", (after.own("commit", "writes")-before.own("commit", "writes"))/syncs)
	}
	return ops, nil
}

func (c *concurrent) collections(b *bench, s *system, clients int) (list []*mongo.Collection, err error) {
	n := clients
	if c.Collections != "N" {
		n, _ = strconv.Atoi(c.Collections) // Validate has seen it
	}
	for i := range n {
		coll, err := s.fresh(b.ctx, "concurrent"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		list = append(list, coll)
	}
	return list, nil
}

func (c *concurrent) work(ctx context.Context, x *client, m *maker, rng *rand.Rand, late *atomic.Bool) error {
	for !late.Load() {
		if rng.Float64() < c.ReadShare {
			start := time.Now()
			err := x.coll.FindOne(ctx, bson.D{{Key: "_id", Value: x.from + rng.Int64N(x.next-x.from)}}).Err()
			if err != nil {
				return err
			}
			x.reads = append(x.reads, micros(time.Since(start)))
			continue
		}
		doc := m.doc(x.next, rng)
		start := time.Now()
		if err := x.insert(ctx, doc); err != nil {
			return err
		}
		x.writes = append(x.writes, micros(time.Since(start)))
	}
	return nil
}

func (x *client) insert(ctx context.Context, doc bson.Raw) error {
	_, err := x.coll.InsertOne(ctx, doc)
	x.next++
	return err
}
