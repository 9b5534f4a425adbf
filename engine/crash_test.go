package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

var (
	crashSeed  = flag.Uint64("crash.seed", 0, "run TestCrashLeavesUnits with this seed alone")
	crashSeeds = flag.Int("crash.seeds", 6, "how many seeds TestCrashLeavesUnits runs")
)

// crasher runs statements of one client, and takes crash images of the disk while they run. Each image must open, have indexes that
// agree with the documents, and hold each document as it was before or as it is after the statement under way.
type crasher struct {
	t      *testing.T
	r      *rand.Rand
	disk   *simfs.FS
	opt    Options
	db     *DB
	before map[string]string // documents by _id as of the last statement that was answered; nil: no collection
	after  map[string]string // as the statement under way will leave them
	images int
	off    bool
	failed string
}

func TestCrashLeavesUnits(t *testing.T) {
	first, last := uint64(1), uint64(*crashSeeds)
	if *crashSeed != 0 {
		first, last = *crashSeed, *crashSeed
	}
	images := 0
	for seed := first; seed <= last; seed++ {
		r := rand.New(rand.NewPCG(seed, 3))
		c := &crasher{t: t, r: r, disk: simfs.New(simfs.Options{}), before: map[string]string{}, after: map[string]string{}}
		c.opt = Options{Env: c.disk.Env(seed), TTLSweep: -1, Storage: storage.Options{
			Manual: true, SegmentSize: 64 << 10, BlockSize: 16 << 10, Reserve: 32, MapReserve: 1 << 28,
			Geometry: page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8}, Tree: btree.Config{MaxEntries: 4 * r.IntN(2)},
		}}
		c.run()
		images += c.images
		if c.failed != "" {
			t.Fatalf("%s\nreplay: go test ./engine -run TestCrashLeavesUnits -crash.seed=%d", c.failed, seed)
		}
	}
	t.Logf("%d images", images)
	if *crashSeed == 0 && images < 20**crashSeeds {
		t.Errorf("only %d images were judged", images)
	}
}

func (c *crasher) run() {
	var err error
	if c.db, err = Open("/db", c.opt); err != nil {
		c.t.Fatal(err)
	}
	c.disk.SetHooks(simfs.Hooks{Watch: c.watch})
	for range 40 {
		if c.failed != "" {
			break
		}
		c.statement()
		c.before = c.after
	}
	c.disk.SetHooks(simfs.Hooks{})
	closeChecked(c.t, c.db)
}

func (c *crasher) watch(e simfs.Event) {
	if c.off || c.failed != "" || c.r.IntN(12) != 0 {
		return
	}
	c.off = true
	defer func() { c.off = false }()
	for _, choice := range append(c.disk.Choices(c.r.Uint64(), 1), simfs.Choice{Gen: simfs.Killed}) {
		image := c.disk.Crash(choice)
		if err := c.judge(image); err != nil {
			c.failed = fmt.Sprintf("crash %s %v, choice %v: %v", e.When, e.Call, choice, err)
		}
		image.Discard()
	}
}

func (c *crasher) judge(image *simfs.FS) error {
	c.images++
	opt := c.opt
	opt.Env = image.Env(1)
	db, err := Open("/db", opt)
	if err != nil {
		return fmt.Errorf("does not open: %w", err)
	}
	var faults []error
	if err := db.Check(context.Background(), func(fault error) { faults = append(faults, fault) }); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("check: %v", errors.Join(faults...))
	}
	got, err := contents(db)
	if err != nil {
		return err
	}
	for id, doc := range got {
		if doc != c.before[id] && doc != c.after[id] {
			return fmt.Errorf("_id %s: %s, and it was %q and should become %q", id, doc, c.before[id], c.after[id])
		}
	}
	for id, doc := range c.before {
		if _, ok := got[id]; !ok && c.after[id] != "" {
			return fmt.Errorf("_id %s is gone: it was %s and should become %s", id, doc, c.after[id])
		}
	}
	// There is life after it.
	if _, err := db.CreateIndexes(context.Background(), ns, docs(`{key: {n: 1, _id: 1}, name: "after"}`)); err != nil && !mongoerr.Is(err, mongoerr.IndexOptionsConflict) {
		return fmt.Errorf("an index afterwards: %w", err)
	}
	return db.Close()
}

// contents gives the documents by their _id.
func contents(db *DB) (map[string]string, error) {
	text, err := tryFind(db, Find{}, 1000)
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		out[value.Text(doc(line).Lookup("_id"))] = line
	}
	return out, err
}

// statement runs one statement, after it has foretold what it will do.
func (c *crasher) statement() {
	ctx := context.Background()
	c.after = map[string]string{}
	for id, doc := range c.before {
		c.after[id] = doc
	}
	var err error
	switch n := c.r.IntN(20); {
	case n < 8:
		in := make([]bson.Raw, 1+c.r.IntN(30))
		for i := range in {
			id := c.r.IntN(1 << 30)
			in[i] = doc(fmt.Sprintf(`{_id: %d, n: %d, a: [%d, %d], pad: "%s"}`, id, c.r.IntN(10), c.r.IntN(5), c.r.IntN(5), strings.Repeat("x", c.r.IntN(300))))
			c.after[fmt.Sprint(id)] = show(in[i])
		}
		_, err = c.db.Insert(ctx, ns, in, true)
	case n < 11:
		k := c.r.IntN(10)
		c.each(k, func(id string, d bson.Raw) { c.after[id] = strings.Replace(show(d), "n: ", "n: 10", 1) }) // 5 becomes 105
		_, err = c.db.Update(ctx, ns, []Update{{Filter: doc(fmt.Sprintf(`{n: %d}`, k)), Update: updateDoc(`{$inc: {n: 100}}`), Multi: true}}, true)
	case n < 14:
		k := c.r.IntN(10)
		c.each(k, func(id string, _ bson.Raw) { delete(c.after, id) })
		_, err = c.db.Delete(ctx, ns, []Delete{{Filter: doc(fmt.Sprintf(`{n: %d}`, k)), Multi: true}}, true)
	case n < 16:
		_, err = c.db.CreateIndexes(ctx, ns, docs(fmt.Sprintf(`{key: {%s: %d}, name: "x%d"}`, []string{"n", "a", "pad"}[c.r.IntN(3)], 1-2*c.r.IntN(2), c.r.IntN(4))))
	case n < 17:
		_, err = c.db.DropIndexes(ctx, ns, value.String("*"))
	case n < 18:
		c.after = map[string]string{}
		_, _, err = c.db.DropCollection(ctx, ns)
	case n < 19:
		err = c.db.store.Checkpoint()
	default:
		_, err = c.db.store.ClearStep()
	}
	if err != nil && !mongoerr.Is(err, mongoerr.IndexOptionsConflict) && !mongoerr.Is(err, mongoerr.IndexKeySpecsConflict) && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		c.t.Fatal(err)
	}
}

func (c *crasher) each(n int, f func(id string, d bson.Raw)) {
	for id, text := range c.before {
		if d := doc(text); d.Lookup("n").AsInt64() == int64(n) {
			f(id, d)
		}
	}
}
