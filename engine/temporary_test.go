package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/simfs"
)

// tight is a database whose sorts and stages hold 10 000 bytes, with 300 documents of 200 bytes.
func tight(t *testing.T, disk *simfs.FS, o Options) *DB {
	t.Helper()
	o.Env, o.TTLSweep, o.SortMemory = disk.Env(1), -1, 10_000
	db, err := Open("/db", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeChecked(t, db) })
	pad := strings.Repeat("x", 180)
	var in []string
	for i := range 300 {
		in = append(in, fmt.Sprintf(`{_id: %d, n: %d, pad: "%s"}`, i, i*37%300, pad))
	}
	insert(t, db, in...)
	return db
}

// blocking are pipelines that cannot do with the memory.
var blocking = [][]string{
	{`{$sort: {n: -1}}`},
	{`{$set: {y: 1}}`, `{$sort: {n: -1}}`},
	{`{$group: {_id: "$n", x: {$push: "$pad"}}}`},
	{`{$bucketAuto: {groupBy: "$n", buckets: 2}}`, `{$unwind: "$count"}`},
	{`{$setWindowFields: {partitionBy: {$mod: ["$n", 10]}, sortBy: {n: 1}, output: {x: {$sum: 1, window: {documents: [-1, 1]}}}}}`},
	{`{$facet: {a: [{$sort: {n: 1}}, {$limit: 20}]}}`, `{$unwind: "$a"}`},
	{`{$unionWith: "things"}`}, // what comes behind the first batch
	{`{$lookup: {from: "things", as: "l", pipeline: [{$sort: {n: 1}}, {$limit: 290}, {$project: {n: 1}}]}}`},
}

// TestTemporaryFilesEndWithTheirCommand runs what spills to its end, closes it in the middle, cancels it, and lets the disk fill up. No
// file is left each time.
func TestTemporaryFilesEndWithTheirCommand(t *testing.T) {
	disk := simfs.New(simfs.Options{})
	db := tight(t, disk, Options{})
	used := func(when string, stages []string) {
		t.Helper()
		if files, bytes := db.temp.usage(); files != 0 || bytes != 0 {
			t.Errorf("%v, %s: %d files of %d bytes are open", stages, when, files, bytes)
		}
	}
	ctx := context.Background()
	all := func(bson.Raw) bool { return true }
	for _, stages := range blocking {
		want := 0
		before := db.temp.number
		a := aggregate(t, db, stages...)
		for more := true; more; {
			var err error
			if more, err = a.Batch(ctx, 7, func(bson.Raw) bool { want++; return true }); err != nil {
				t.Fatalf("%v: %v", stages, err)
			}
		}
		if db.temp.number == before {
			t.Errorf("%v: nothing was spilled", stages)
		}
		used("at the end", stages)

		a = aggregate(t, db, stages...)
		if _, err := a.Batch(ctx, 1, all); err != nil {
			t.Fatalf("%v: %v", stages, err)
		}
		if err := a.Close(); err != nil {
			t.Errorf("%v: %v", stages, err)
		}
		used("closed in the middle", stages)

		for _, after := range []int{1, 20} {
			cancelled := &countdown{Context: ctx, left: after}
			a, err := db.Aggregate(cancelled, ns, Aggregate{Stages: docs(stages...)})
			if err != nil {
				t.Fatal(err)
			}
			for more := true; more && err == nil; {
				more, err = a.Batch(cancelled, 1, all)
			}
			if after == 1 && !errors.Is(err, context.Canceled) {
				t.Errorf("%v, cancelled: %v", stages, err)
			}
			used("cancelled", stages)
		}

		_, err := run(db, Aggregate{Stages: docs(stages...), MemoryOnly: true})
		if !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
			t.Errorf("%v, in memory only: %v", stages, err)
		}
		used("in memory only", stages)

		db.temp.max = 3000
		_, err = run(db, Aggregate{Stages: docs(stages...)})
		if !mongoerr.Is(err, mongoerr.OutOfDiskSpace) {
			t.Errorf("%v, more than temporary files may have: %v", stages, err)
		}
		db.temp.max = temporaryDefault
		used("too large", stages)

		disk.SetCapacity(1)
		_, err = run(db, Aggregate{Stages: docs(stages...)})
		disk.SetCapacity(0)
		if !mongoerr.Is(err, mongoerr.OutOfDiskSpace) {
			t.Errorf("%v, with a full disk: %v", stages, err)
		}
		used("disk full", stages)
		if n, err := run(db, Aggregate{Stages: docs(stages...)}); n != want || err != nil {
			t.Errorf("%v: %d documents afterwards, %v, want %d", stages, n, err, want)
		}
	}
}

// countdown is a context that is cancelled when it was asked so often.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func run(db *DB, a Aggregate) (n int, err error) {
	it, err := db.Aggregate(context.Background(), ns, a)
	for more := true; more && err == nil; {
		more, err = it.Batch(context.Background(), 50, func(bson.Raw) bool { n++; return true })
	}
	return n, err
}

func TestFindSortsOnTheDisk(t *testing.T) {
	db := tight(t, simfs.New(simfs.Options{}), Options{})
	f := Find{Sort: doc("{n: 1}"), Projection: doc("{_id: 0, n: 1}")}
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprintf("{n: %d}", i))
	}
	expect(t, find(t, db, f), want...)
	f.MemoryOnly = true
	if _, err := tryFind(db, f, 10); !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Errorf("in memory only: %v", err)
	}
	f.MemoryOnly = false
	c, err := db.Find(context.Background(), ns, f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Batch(context.Background(), 1, func(bson.Raw) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if files, _ := db.temp.usage(); files == 0 {
		t.Error("the cursor has no files")
	}
	c.Close()
	if files, bytes := db.temp.usage(); files != 0 || bytes != 0 {
		t.Errorf("%d files of %d bytes are open", files, bytes)
	}
}

// TestOpenRemovesTemporaryFiles crashes in the middle of a pipeline that spills, at many calls, and opens what is left.
func TestOpenRemovesTemporaryFiles(t *testing.T) {
	disk := simfs.New(simfs.Options{})
	db := tight(t, disk, Options{})
	events, images, named, off := 0, 0, 0, false
	disk.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) {
		if off || !strings.Contains(e.Path, temporaryDir+"/") {
			return
		}
		if events++; events%4 != 1 && e.Op != simfs.OpCreate {
			return
		}
		off = true
		defer func() { off = false }()
		image := disk.Crash(simfs.Choice{Gen: simfs.Killed})
		defer image.Discard()
		env := image.Env(2)
		if names, _ := env.FS.List("/db/" + temporaryDir); len(names) > 0 {
			named++
		}
		after, err := Open("/db", Options{Env: env, TTLSweep: -1})
		if err != nil {
			t.Fatal(err)
		}
		if names, err := env.FS.List("/db/" + temporaryDir); len(names) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s %v: %v are left, %v", e.When, e.Call, names, err)
		}
		images++
		after.Close()
	}})
	if n, err := run(db, Aggregate{Stages: docs(`{$group: {_id: "$n", x: {$push: "$pad"}}}`)}); n != 300 || err != nil {
		t.Error(n, err)
	}
	disk.SetHooks(simfs.Hooks{})
	if images < 20 || named == 0 {
		t.Errorf("%d images, %d with temporary files", images, named)
	}
}
