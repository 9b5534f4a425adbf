package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

var (
	buildSeed  = flag.Uint64("build.seed", 0, "run TestIndexBuildsBesideWriters with this seed alone")
	buildSeeds = flag.Int("build.seeds", 40, "how many seeds TestIndexBuildsBesideWriters runs")
)

// builder builds indexes in a simulated world while others write and drop. Now and then a crash image of the disk is opened and checked.
type builder struct {
	r   *rand.Rand
	db  *DB
	opt Options

	built, failed, aborted, images int

	judging bool
	fault   error
}

func TestIndexBuildsBesideWriters(t *testing.T) {
	first, last := uint64(1), uint64(*buildSeeds)
	if *buildSeed != 0 {
		first, last = *buildSeed, *buildSeed
	}
	var sum builder
	for seed := first; seed <= last; seed++ {
		b := builder{r: rand.New(rand.NewPCG(seed, 11))}
		res := sim.Run(sim.Options{Seed: seed, Steps: 4_000_000, Disk: simfs.Options{}, Buggify: func(string) bool { return true }}, func(w *sim.World) {
			w.FS().SetHooks(simfs.Hooks{Watch: func(simfs.Event) { b.watch(w.FS(), seed) }})
			err := b.run(w)
			w.FS().SetHooks(simfs.Hooks{})
			if err = errors.Join(b.fault, err); err != nil {
				w.Fail(err)
			}
		})
		res.FS.Discard()
		if res.Err != nil {
			t.Fatalf("%v\nreplay: go test ./engine -run TestIndexBuildsBesideWriters -build.seed=%d", res.Err, seed)
		}
		sum.built, sum.failed, sum.aborted, sum.images = sum.built+b.built, sum.failed+b.failed, sum.aborted+b.aborted, sum.images+b.images
	}
	t.Logf("%d built, %d failed, %d aborted, %d crash images", sum.built, sum.failed, sum.aborted, sum.images)
	if *buildSeed == 0 && (sum.built == 0 || sum.failed == 0 || sum.aborted == 0 || sum.images == 0) {
		t.Error("something never happened")
	}
}

// watch crashes the disk at some of its events, on the side.
func (b *builder) watch(disk *simfs.FS, seed uint64) {
	if b.judging || b.fault != nil || b.db == nil || b.r.IntN(300) != 0 {
		return
	}
	b.judging = true
	defer func() { b.judging = false }()
	for _, choice := range append(disk.Choices(b.r.Uint64(), 1), simfs.Choice{Gen: simfs.Killed}) {
		image := disk.Crash(choice)
		res := sim.Run(sim.Options{Seed: seed, FS: image}, func(w *sim.World) {
			opt := b.opt
			opt.Env = w.Env()
			if err := checkImage(opt); err != nil {
				w.Fail(fmt.Errorf("after a crash, %v: %w", choice, err))
			}
		})
		image.Discard()
		b.images++
		if b.fault = res.Err; b.fault != nil {
			return
		}
	}
}

// checkImage opens a database that a crash has left: its indexes agree with its documents, and none is half-built.
func checkImage(opt Options) error {
	db, err := Open("/db", opt)
	if err != nil {
		return err
	}
	if err := checkAll(db); err != nil {
		return err
	}
	return db.Close()
}

func checkAll(db *DB) error {
	var faults []error
	if err := db.Check(context.Background(), func(f error) { faults = append(faults, f) }); err != nil || len(faults) > 0 {
		return fmt.Errorf("check: %v, %w", err, errors.Join(faults...))
	}
	return db.read(func(sn *storage.Snapshot) error {
		c, _, err := db.collection(sn, ns)
		if err == nil && c != nil && c.def.Ready() != len(c.def.Indexes) {
			err = fmt.Errorf("an index is being built, and nobody builds it")
		}
		return err
	})
}

func (b *builder) document(id int) bson.Raw {
	a := fmt.Sprint(b.r.IntN(400))
	if b.r.IntN(40) == 0 {
		a = "[1, 2]"
	}
	return doc(fmt.Sprintf(`{_id: %d, a: %s, b: %d}`, id, a, b.r.IntN(1_000_000)))
}

func (b *builder) run(w *sim.World) (err error) {
	ctx := context.Background()
	b.opt = Options{Env: w.Env(), TTLSweep: -1, Storage: storage.Options{SegmentSize: 256 << 10, BlockSize: 16 << 10, Reserve: 32, MapReserve: 1 << 28}}
	if b.db, err = Open("/db", b.opt); err != nil {
		return err
	}
	n := 50 + b.r.IntN(150)
	in := make([]bson.Raw, n)
	for i := range in {
		in[i] = b.document(i)
	}
	if _, err := b.db.Insert(ctx, ns, in, true); err != nil {
		return err
	}
	var fault error
	note := func(err error) {
		if fault == nil {
			fault = err
		}
	}
	specs := []string{`{key: {b: 1}, name: "b", unique: true}`, `{key: {a: 1, b: -1}, name: "ab"}`, `{key: {a: "hashed"}, name: "ah"}`, `{key: {"$**": 1}, name: "w"}`,
		`{key: {b: -1}, name: "part", partialFilterExpression: {a: {$gt: 200}}}`}
	b.r.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
	w.Parallel("client",
		func() {
			for _, spec := range specs[:3] {
				note(b.build(ctx, spec))
			}
		},
		func() { note(b.build(ctx, specs[b.r.IntN(3)])) },
		func() { note(b.write(ctx, n)) },
		func() { note(b.write(ctx, n)) },
		func() {
			if b.r.IntN(3) > 0 {
				return
			}
			for range b.r.IntN(400) {
				w.Yield("a while")
			}
			if b.r.IntN(3) == 0 {
				_, _, err := b.db.DropCollection(ctx, ns)
				note(err)
				return
			}
			_, err := b.db.DropIndexes(ctx, ns, value.String("*"))
			if !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				note(err)
			}
		})
	if fault != nil {
		return fault
	}
	if err := checkAll(b.db); err != nil {
		return err
	}
	return b.db.Close()
}

func (b *builder) build(ctx context.Context, spec string) error {
	_, err := b.db.CreateIndexes(ctx, ns, docs(spec))
	switch {
	case err == nil:
		b.built++
	case mongoerr.Is(err, mongoerr.DuplicateKey), mongoerr.Is(err, 16766):
		b.failed++
	case mongoerr.Is(err, mongoerr.IndexBuildAborted):
		b.aborted++
	default:
		return fmt.Errorf("%s: %w", spec, err)
	}
	return nil
}

// write writes documents, some of which a unique or a hashed index cannot have, and most of which it soon changes again.
func (b *builder) write(ctx context.Context, n int) error {
	for range 30 {
		id := b.r.IntN(n + 30)
		filter := doc(fmt.Sprintf(`{_id: %d}`, id))
		var err error
		switch b.r.IntN(5) {
		case 0:
			_, err = b.db.Insert(ctx, ns, []bson.Raw{b.document(n + b.r.IntN(30))}, true)
		case 1:
			_, err = b.db.Delete(ctx, ns, []Delete{{Filter: filter}}, true)
		case 2: // two with one b, for a moment
			_, err = b.db.Update(ctx, ns, []Update{{Filter: filter, Update: value.Document(doc(`{$set: {b: 5}}`))}}, true)
			if err == nil {
				_, err = b.db.Update(ctx, ns, []Update{{Filter: filter, Update: value.Document(doc(fmt.Sprintf(`{$set: {b: %d}}`, b.r.IntN(1_000_000))))}}, true)
			}
		default:
			_, err = b.db.Update(ctx, ns, []Update{{Filter: filter, Update: value.Document(b.document(id))}}, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestIndexBuildIsKilled(t *testing.T) {
	db := open(t)
	insert(t, db, `{_id: 1, a: 1}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := db.CreateIndexes(ctx, ns, docs(`{key: {a: 1}, name: "a"}`)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var p Progress
	if _, err := db.CreateIndexes(WithProgress(context.Background(), &p), ns, docs(`{key: {a: 1}, name: "a"}`)); err != nil {
		t.Fatal(err)
	}
	if what, _, _ := p.Get(); what == "" {
		t.Error("a build told of no progress")
	}
}
