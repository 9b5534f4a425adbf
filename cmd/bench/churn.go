package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// churn takes what the data file takes beside the documents that are live in it, round after round of changes. A database whose
// space does not come back grows with the rounds; here the rows should stay where they are.
type churn struct {
	systemFlags
	DBPath  string `name:"db-path" type:"existingdir" help:"Directory of the server's files, to see what they take of the disk; that of a server that is started here is known."`
	Docs    int64  `default:"10000" help:"Documents (${default})."`
	DocSize size   `default:"16k" help:"Bytes of a document (${default})."`
	Index   bool   `help:"Keep an index beside that of _id."`
	Mode    string `enum:"delete-refill,update" default:"delete-refill" help:"A round deletes a random half and fills up again, or gives as many documents as there are, drawn at random, other contents (${enum})."`
	Rounds  int    `default:"6" help:"Rounds (${default})."`
	Clients int    `default:"4" help:"Clients that work at once (${default})."`
}

func (c *churn) Validate() error {
	if c.Docs < 2 || c.Rounds < 1 || c.Clients < 1 || int64(c.Clients) > c.Docs {
		return fmt.Errorf("--docs is at least 2, --rounds and --clients at least 1")
	}
	return nil
}

func (c *churn) measure(b *bench, r *report) error {
	m, err := newMaker(c.DocSize)
	if err != nil {
		return err
	}
	s, err := b.one(&c.systemFlags)
	if err != nil {
		return err
	}
	defer s.close()
	if c.DBPath != "" {
		s.data = c.DBPath
	}
	if err := b.withLimits(&c.systemFlags, s, r); err != nil {
		return err
	}
	coll, err := s.fresh(b.ctx, "churn")
	if err != nil {
		return err
	}
	if c.Index {
		if _, err := coll.Indexes().CreateOne(b.ctx, mongo.IndexModel{Keys: bson.D{{Key: "k", Value: 1}}}); err != nil {
			return err
		}
	}
	x := &churning{churn: c, bench: b, system: s, report: r, maker: m, coll: coll}
	for i := range c.Clients {
		part := &churner{rng: newRand(c.Seed, uint64(i))}
		part.next, part.step = int64(i), int64(c.Clients)
		part.want = int((c.Docs + part.step - 1 - part.next) / part.step)
		x.parts = append(x.parts, part)
	}
	for round := range c.Rounds + 1 {
		if err := x.round(round); err != nil {
			return err
		}
	}
	last := x.after[len(x.after)-1]
	r.add("allocated/live", "×", last)
	return nil
}

// churning is churn under way.
type churning struct {
	*churn
	*bench
	*system
	*report
	*maker
	coll  *mongo.Collection
	parts []*churner
	sent  atomic.Int64 // bytes of documents, in this round
	after []float64    // allocated/live after each round
}

// churner is a client, and the documents that it alone changes.
type churner struct {
	rng        *rand.Rand
	ids        []int64
	next, step int64 // the next document's number, and how far the one after it is
	want       int   // how many documents it keeps
}

// round 0 loads.
func (c *churning) round(n int) error {
	before, err := c.status(c.ctx)
	if err != nil {
		return err
	}
	written := c.written()
	c.sent.Store(0)
	name := fmt.Sprintf("%s, round %d", c.Mode, n)
	if n == 0 {
		name = "load"
	}
	p := c.progress(name, c.Docs)
	err = parallel(c.ctx, c.Clients, func(ctx context.Context, i int) error {
		part := c.parts[i]
		if n > 0 && c.Mode == "update" {
			return c.update(ctx, part, p)
		}
		if n > 0 {
			if err := c.remove(ctx, part, p); err != nil {
				return err
			}
		}
		return c.fill(ctx, part, p)
	})
	p.end()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.figures(n, before, written)
}

// figures adds the rows of a round that has just ended. Nothing waits for the server to tidy up.
func (c *churning) figures(n int, before status, written float64) error {
	st, err := c.status(c.ctx)
	if err != nil {
		return err
	}
	at := "@" + strconv.Itoa(n)
	live := float64(c.Docs) * float64(c.size)
	u := usage{st.own("space", "allocatedBytes"), st.own("space", "apparentBytes")}
	if c.data != "" {
		u = usageOf(c.data, dataFile)
		if u.apparent == 0 { // another server's
			u = usageOf(c.data, func(string) bool { return true })
		}
		c.add("log"+at, "MB", usageOf(c.data, logFile).allocated/1e6)
	}
	c.after = append(c.after, u.allocated/live)
	c.add("allocated/live"+at, "×", u.allocated/live)
	c.add("apparent/live"+at, "×", u.apparent/live)
	for _, x := range []struct{ name, figure string }{
		{"dead", "deadBytes"}, {"pending", "pendingBytes"}, {"free, ready", "freeReadyBytes"}, {"free at the end", "allocTailBytes"},
	} {
		c.add(x.name+at, "MB", st.own("space", x.figure)/1e6)
	}
	for _, x := range []struct{ name, figure string }{{"reclaimed", "reclaimedBytes"}, {"cleaned", "cleanedBytes"}} {
		c.add(x.name+at, "MB", (st.own("space", x.figure)-before.own("space", x.figure))/1e6)
	}
	if now := c.written(); now > 0 {
		c.add("write amplification"+at, "×", (now-written)/float64(c.sent.Load()))
	}
	return nil
}

// fill inserts until the client has its documents.
func (c *churning) fill(ctx context.Context, part *churner, p *progress) error {
	for len(part.ids) < part.want {
		var docs []any
		for len(part.ids) < part.want && len(docs) < c.batch() {
			docs = append(docs, c.doc(part.next, part.rng))
			part.ids = append(part.ids, part.next)
			part.next += part.step
		}
		if _, err := c.coll.InsertMany(ctx, docs); err != nil {
			return err
		}
		c.sent.Add(int64(len(docs)) * int64(c.size))
		p.add(int64(len(docs)))
	}
	return nil
}

// manyIDs is how many documents one deleteMany takes by their numbers.
const manyIDs = 500

// remove deletes a random half.
func (c *churning) remove(ctx context.Context, part *churner, p *progress) error {
	part.rng.Shuffle(len(part.ids), func(i, j int) { part.ids[i], part.ids[j] = part.ids[j], part.ids[i] })
	for half := len(part.ids) / 2; len(part.ids) > half; {
		n := min(len(part.ids)-half, manyIDs)
		gone := part.ids[len(part.ids)-n:]
		res, err := c.coll.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: gone}}}})
		if err != nil {
			return err
		}
		if res.DeletedCount != int64(n) {
			return fmt.Errorf("%d of %d documents were there to be deleted", res.DeletedCount, n)
		}
		part.ids = part.ids[:len(part.ids)-n]
		p.add(int64(n))
	}
	return nil
}

// update gives documents other contents, as many as there are.
func (c *churning) update(ctx context.Context, part *churner, p *progress) error {
	for done := 0; done < len(part.ids); {
		var models []mongo.WriteModel
		for ; done < len(part.ids) && len(models) < c.batch(); done++ {
			set := bson.D{{Key: "$set", Value: bson.D{{Key: "pad", Value: c.pad(part.rng)}, {Key: "k", Value: part.rng.Int64N(kValues)}}}}
			id := part.ids[part.rng.IntN(len(part.ids))]
			models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: id}}).SetUpdate(set))
		}
		res, err := c.coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
		if err != nil {
			return err
		}
		if res.MatchedCount != int64(len(models)) {
			return fmt.Errorf("%d of %d documents were there to be updated", res.MatchedCount, len(models))
		}
		c.sent.Add(int64(len(models)) * int64(c.size))
		p.add(int64(len(models)))
	}
	return nil
}
