package main

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// compare takes one kind of command after the other, by one client.
type compare struct {
	systemFlags
	Size    size `default:"1g" help:"Bytes of documents to load (${default})."`
	DocSize size `default:"16k" help:"Bytes of a document (${default})."`
	PID     int  `name:"pid" help:"The server's process, to tell its memory; that of a server on this machine is known."`
}

func (c *compare) measure(b *bench, r *report) error {
	m, err := newMaker(c.DocSize)
	if err != nil {
		return err
	}
	list, err := b.systems(&c.systemFlags)
	if err != nil {
		return err
	}
	defer func() { closeAll(list) }()
	other, err := b.mongod(&c.systemFlags)
	if err != nil {
		return err
	}
	if other != nil {
		list = append(list, other)
	}
	if c.PID != 0 {
		list[0].pid = c.PID
	}
	if err := b.withLimits(&c.systemFlags, list[0], r); err != nil {
		return err
	}
	tables := make([]report, len(list))
	for i, s := range list {
		tables[i].Limits = r.Limits
		cs := comparison{compare: c, bench: b, system: s, report: &tables[i], maker: m}
		if err := cs.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	// Side by side: under each row of the first that of the others.
	for i, x := range tables[0].Rows {
		r.Rows = append(r.Rows, x)
		for j := 1; j < len(list); j++ {
			y := *tables[j].Rows[i]
			y.Name += " (" + list[j].name + ")"
			r.Rows = append(r.Rows, y.against(list[0].name, x.Value))
		}
	}
	return nil
}

// comparison is compare under way with one system.
type comparison struct {
	*compare
	*bench
	*system
	*report
	*maker
	coll  *mongo.Collection
	count int64 // documents there are; their numbers are 0 … count-1
}

func (c *comparison) run() (err error) {
	if c.coll, err = c.fresh(c.ctx, "compare"); err != nil {
		return err
	}
	steps := []func() error{c.insertOne, c.bulk, c.index, c.reads, c.updates, c.server}
	p := c.progress("compare "+c.name, int64(len(steps)))
	defer p.end()
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
		p.add(1)
	}
	return c.coll.Drop(c.ctx)
}

// series runs one command n times and reports its time, as a multiple of a round trip or, of a write, of the two things that it
// cannot do without.
func (c *comparison) series(name string, n int, write bool, f func(i int) error) error {
	s, err := timed(n, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	x := c.add(name, "µs", s...)
	if write {
		x.against(limitSync+" + "+limitPing, c.limit(limitSync, limitPing))
	} else {
		x.against(limitPing, c.limit(limitPing))
	}
	return nil
}

func (c *comparison) insertOne() error {
	rng := newRand(c.Seed, 1)
	return c.series("insertOne", 200, true, func(int) error {
		doc := c.doc(c.count, rng)
		c.count++
		_, err := c.coll.InsertOne(c.ctx, doc)
		return err
	})
}

// bulk loads in thirds, each of which is a sample.
func (c *comparison) bulk() error {
	from, total := c.count, max(int64(c.Size)/int64(c.size), 3)
	p := c.progress("bulk insert", total)
	defer p.end()
	var s sample
	for i := range int64(3) {
		first, next := from+total*i/3, from+total*(i+1)/3
		start := time.Now()
		if err := c.load(c.ctx, c.coll, first, next, c.Seed, p); err != nil {
			return fmt.Errorf("bulk insert: %w", err)
		}
		s = append(s, rate((next-first)*int64(c.size), time.Since(start))/1e6)
		c.count = next
	}
	c.add("bulk insert", "MB/s", s...).against(limitWriteSync, c.limit(limitWriteSync))
	return nil
}

func (c *comparison) index() error {
	x := c.coll.Indexes()
	var s sample
	for i := range 3 {
		if i > 0 {
			if err := x.DropOne(c.ctx, "k_1"); err != nil {
				return err
			}
		}
		one, err := timed(1, func(int) error {
			_, err := x.CreateOne(c.ctx, mongo.IndexModel{Keys: bson.D{{Key: "k", Value: 1}}})
			return err
		})
		if err != nil {
			return fmt.Errorf("createIndex: %w", err)
		}
		s = append(s, one...)
	}
	c.add("createIndex({k: 1})", "µs", s...)
	return nil
}

func (c *comparison) reads() error {
	rng := newRand(c.Seed, 2)
	field := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
	one := func(filter bson.D) error {
		err := c.coll.FindOne(c.ctx, filter).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return fmt.Errorf("%v is not there", filter)
		}
		return err
	}
	all := func(o *options.FindOptionsBuilder) error {
		cur, err := c.coll.Find(c.ctx, bson.D{}, o)
		if err != nil {
			return err
		}
		for cur.Next(c.ctx) {
		}
		return errors.Join(cur.Err(), cur.Close(c.ctx))
	}
	number := func(filter bson.D, want int64) error {
		n, err := c.coll.CountDocuments(c.ctx, filter)
		if err == nil && want >= 0 && n != want {
			return fmt.Errorf("%d documents, and there are %d", n, want)
		}
		return err
	}
	span := bson.D{{Key: "p", Value: bson.D{{Key: "$gte", Value: pValues / 2}, {Key: "$lt", Value: pValues/2 + pValues/100}}}}
	group := mongo.Pipeline{{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$k"}, {Key: "n", Value: field("$sum", 1)}, {Key: "p", Value: field("$avg", "$p")}}}}}
	return errors.Join(
		c.series("countDocuments({})", 5, false, func(int) error { return number(bson.D{}, c.count) }),
		c.series("findOne({_id})", 500, false, func(int) error { return one(field("_id", rng.Int64N(c.count))) }),
		c.series("findOne({k}), indexed", 500, false, func(i int) error { return one(field("k", i%int(min(kValues, c.count)))) }),
		c.series("find({p: {$gte, $lt}}).count(), scan", 5, false, func(int) error { return number(span, -1) }),
		c.series("find({}).sort({_id: -1}).limit(20)", 20, false, func(int) error { return all(options.Find().SetSort(field("_id", -1)).SetLimit(20)) }),
		c.series("find({}, {k: 1}).limit(1000)", 20, false, func(int) error {
			return all(options.Find().SetProjection(field("k", 1)).SetLimit(1000))
		}),
		c.series("aggregate $group by k", 5, false, func(int) error {
			cur, err := c.coll.Aggregate(c.ctx, group)
			if err != nil {
				return err
			}
			var groups []bson.Raw
			if err := cur.All(c.ctx, &groups); err != nil || int64(len(groups)) != min(kValues, c.count) {
				return fmt.Errorf("%d groups of %d, %w", len(groups), kValues, err)
			}
			return nil
		}),
	)
}

func (c *comparison) updates() error {
	rng := newRand(c.Seed, 3)
	id := func(n int64) bson.D { return bson.D{{Key: "_id", Value: n}} }
	inc := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
	return errors.Join(
		c.series("updateOne({_id})", 50, true, func(int) error {
			_, err := c.coll.UpdateOne(c.ctx, id(rng.Int64N(c.count)), inc)
			return err
		}),
		c.series("updateMany({k: 7})", 5, true, func(int) error {
			_, err := c.coll.UpdateMany(c.ctx, bson.D{{Key: "k", Value: 7}}, inc)
			return err
		}),
		c.series("deleteOne({_id}) + insertOne", 50, true, func(int) error {
			n := rng.Int64N(c.count)
			if res, err := c.coll.DeleteOne(c.ctx, id(n)); err != nil || res.DeletedCount != 1 {
				return fmt.Errorf("document %d was not deleted: %w", n, err)
			}
			_, err := c.coll.InsertOne(c.ctx, c.doc(n, rng))
			return err
		}),
	)
}

// server takes what the server has taken of the machine.
func (c *comparison) server() error {
	now, peak := c.memory()
	if peak > 0 {
		c.add("server RSS", "MB", now/1e6)
		c.add("server RSS, most", "MB", peak/1e6)
	}
	st, err := c.status(c.ctx)
	if err != nil {
		return err
	}
	live := float64(c.count * int64(c.size))
	disk := st.own("space", "allocatedBytes")
	if disk == 0 && c.data != "" {
		disk = allocated(c.data)
	}
	if disk > 0 {
		c.add("allocated on disk", "MB", disk/1e6).against("live", live/1e6)
	}
	return nil
}
