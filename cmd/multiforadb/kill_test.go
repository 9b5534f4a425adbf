package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	killRounds  = 20
	killWorkers = 8
)

// item is a document of the kill test. Its parts belong together: a document that is there in part does not fit its own sum.
type item struct {
	ID      string `bson:"_id"`
	Worker  int    `bson:"worker"`
	Version int    `bson:"version"`
	Twice   int    `bson:"twice"` // 2 × version
	Pad     []byte `bson:"pad"`   // all bytes are the version's low byte
}

func newItem(worker, seq, version, size int) item {
	return item{fmt.Sprintf("%d-%d", worker, seq), worker, version, 2 * version, bytes.Repeat([]byte{byte(version)}, size)}
}

func (it item) whole() bool {
	return it.Twice == 2*it.Version && bytes.Count(it.Pad, []byte{byte(it.Version)}) == len(it.Pad)
}

const gone = -1 // the version of a document that is not there

// worker knows what it was told about its own documents: the version that was acknowledged last and, while a command is
// without an answer, the one that the command asks for.
type worker struct {
	n, seq int
	rng    *rand.Rand
	acked  map[string]int
	asked  map[string]int
}

// step runs one command. An error means that nobody knows whether it was done.
func (w *worker) step(ctx context.Context, c *mongo.Collection) error {
	ids := slices.Sorted(maps.Keys(w.acked))
	switch k := w.rng.IntN(10); {
	case k < 3 || len(ids) == 0:
		it := newItem(w.n, w.next(), 0, w.size())
		w.asked[it.ID] = 0
		_, err := c.InsertOne(ctx, it)
		return err
	case k < 5:
		var docs []any
		for range 2 + w.rng.IntN(8) {
			it := newItem(w.n, w.next(), 0, 100)
			w.asked[it.ID] = 0
			docs = append(docs, it)
		}
		_, err := c.InsertMany(ctx, docs)
		return err
	case k < 8:
		id := ids[w.rng.IntN(len(ids))]
		v := w.acked[id] + 1
		w.asked[id] = v
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "twice", Value: 2 * v}, {Key: "pad", Value: bytes.Repeat([]byte{byte(v)}, w.size())}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: 1}}}}
		res, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, set)
		if err == nil && res.ModifiedCount != 1 {
			return fmt.Errorf("%s is not there to be changed", id)
		}
		return err
	default:
		id := ids[w.rng.IntN(len(ids))]
		w.asked[id] = gone
		res, err := c.DeleteOne(ctx, bson.D{{Key: "_id", Value: id}})
		if err == nil && res.DeletedCount != 1 {
			return fmt.Errorf("%s is not there to be deleted", id)
		}
		return err
	}
}

func (w *worker) next() int { w.seq++; return w.seq }

// size is mostly small; some are large enough that checkpoints come in the middle.
func (w *worker) size() int {
	if w.rng.IntN(20) == 0 {
		return 200_000
	}
	return w.rng.IntN(3000)
}

// settle makes what was asked for what is known.
func (w *worker) settle(id string, version int) {
	if delete(w.asked, id); version == gone {
		delete(w.acked, id)
	} else {
		w.acked[id] = version
	}
}

// verify compares what is there with what the workers know, and settles what they do not.
func verify(t *testing.T, c *mongo.Collection, workers []*worker) {
	t.Helper()
	ctx := context.Background()
	found := make(map[string]item)
	read := func(hint string, into func(it item)) {
		cur, err := c.Find(ctx, bson.D{{Key: "worker", Value: bson.D{{Key: "$gte", Value: 0}}}}, options.Find().SetHint(hint))
		if err != nil {
			t.Fatal(err)
		}
		for cur.Next(ctx) {
			var it item
			if err := cur.Decode(&it); err != nil {
				t.Fatal(err)
			}
			into(it)
		}
		if cur.Err() != nil {
			t.Fatal(cur.Err())
		}
	}
	read("_id_", func(it item) {
		if !it.whole() {
			t.Errorf("%s is there in part: version %d, twice %d", it.ID, it.Version, it.Twice)
		}
		found[it.ID] = it
	})
	n := 0
	read("worker_1_version_1", func(it item) {
		if n++; found[it.ID].Version != it.Version {
			t.Errorf("%s: the index finds another document", it.ID)
		}
	})
	if n != len(found) {
		t.Errorf("%d documents by _id, %d by the index", len(found), n)
	}
	for _, w := range workers {
		for id, v := range w.acked {
			it, ok := found[id]
			asked, open := w.asked[id]
			switch {
			case ok && it.Version == v, open && ok && it.Version == asked, open && !ok && asked == gone:
			case !ok:
				t.Errorf("%s was acknowledged as version %d, and is gone", id, v)
			default:
				t.Errorf("%s was acknowledged as version %d, and is %d", id, v, it.Version)
			}
		}
		// An insert of many that was cut off is there up to some document.
		var cut []string
		for id := range w.asked {
			if _, known := w.acked[id]; !known {
				cut = append(cut, id)
			}
		}
		slices.SortFunc(cut, func(a, b string) int { return seqOf(a) - seqOf(b) })
		for i := 1; i < len(cut); i++ {
			if _, before := found[cut[i-1]]; !before {
				if _, ok := found[cut[i]]; ok {
					t.Errorf("%s is there, and %s, which comes before it, is not", cut[i], cut[i-1])
				}
			}
		}
		for id := range w.asked {
			if it, ok := found[id]; ok {
				w.settle(id, it.Version)
			} else {
				w.settle(id, gone)
			}
		}
	}
	for id, it := range found {
		if _, known := workers[it.Worker].acked[id]; !known {
			t.Errorf("%s is there, and nobody wrote it", id)
		}
	}
}

func seqOf(id string) int {
	var w, seq int
	if _, err := fmt.Sscanf(id, "%d-%d", &w, &seq); err != nil {
		panic(err) // we made it
	}
	return seq
}

// A server that is killed in the middle of concurrent writes loses nothing that it acknowledged, and has no write in part.
func TestKillLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	args := []string{"--db", dir, "--port", "0"}
	workers := make([]*worker, killWorkers)
	for i := range workers {
		workers[i] = &worker{n: i, rng: rand.New(rand.NewPCG(seed, uint64(i+1))), acked: map[string]int{}, asked: map[string]int{}}
	}
	total := 0
	for round := range killRounds {
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
		if round%4 == 3 { // killed while it starts, too
			p, _ := launch(t, args...)
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			_ = p.end(t, syscall.SIGKILL)
		}
		p := start(t, args...)
		c := p.connect(t).Database("test").Collection("c")
		index := mongo.IndexModel{Keys: bson.D{{Key: "worker", Value: 1}, {Key: "version", Value: 1}}}
		if _, err := c.Indexes().CreateOne(context.Background(), index); err != nil {
			t.Fatal(err)
		}
		verify(t, c, workers)

		var done atomic.Int64
		var killed atomic.Bool
		target, enough := int64(50+rng.IntN(600)), make(chan struct{})
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() {
				for {
					err := w.step(context.Background(), c)
					if err != nil {
						// An answer with a code, or a connection that ends by itself, is not what a killed server does.
						if ce, ok := errors.AsType[mongo.CommandError](err); ok && ce.Code != 0 || !killed.Load() {
							t.Errorf("seed %d, round %d: %v", seed, round, err)
						}
						return
					}
					for id, v := range w.asked {
						w.settle(id, v)
					}
					if done.Add(1) == target {
						close(enough)
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(20 * time.Second):
			t.Errorf("seed %d, round %d: %d of %d commands in 20 s", seed, round, done.Load(), target)
		}
		killed.Store(true)
		_ = p.end(t, syscall.SIGKILL)
		wg.Wait()
		total += int(done.Load())
		if code, out := tool("check", "--db", dir); code != 0 {
			t.Errorf("seed %d, round %d: check gives %d: %s", seed, round, code, out)
		}
	}
	p := start(t, args...)
	verify(t, p.connect(t).Database("test").Collection("c"), workers)
	t.Logf("seed %d: %d kills, %d commands acknowledged", seed, killRounds, total)
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}
