package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
)

// disk is files that are counted. Number failAt cannot be written.
type disk struct {
	dir        string
	open, made int
	failAt     int
}

type diskFile struct {
	*os.File
	d      *disk
	number int
}

func (d *disk) Create() (spill.File, error) {
	f, err := os.CreateTemp(d.dir, "")
	d.open++
	d.made++
	return diskFile{f, d, d.made}, err
}

func (f diskFile) WriteAt(p []byte, off int64) (int, error) {
	if f.number == f.d.failAt {
		return 0, mongoerr.OutOfDiskSpace.Errorf("no space")
	}
	return f.File.WriteAt(p, off)
}

func (f diskFile) Close() error {
	f.d.open--
	os.Remove(f.Name())
	return f.File.Close()
}

// blocking is a stage that must hold what it is given.
func (r generator) blocking() string {
	acc := func() string {
		e := r.one(`"$a"`, `"$b"`, `"$n"`, `"$c.a"`, `{$add: ["$n", 0.1]}`)
		by := r.one(`{n: 1}`, `{a: -1, n: 1}`)
		return r.one("{$sum: "+e+"}", "{$avg: "+e+"}", "{$push: "+e+"}", "{$addToSet: "+e+"}", "{$first: "+e+"}", "{$last: "+e+"}", "{$min: "+e+"}", "{$max: "+e+"}",
			"{$stdDevPop: "+e+"}", "{$count: {}}", "{$mergeObjects: {x: "+e+"}}", "{$firstN: {n: 2, input: "+e+"}}", "{$lastN: {n: 2, input: "+e+"}}",
			"{$maxN: {n: 2, input: "+e+"}}", "{$top: {sortBy: "+by+", output: "+e+"}}", "{$bottomN: {n: 3, sortBy: "+by+", output: "+e+"}}",
			`{$median: {input: `+e+`, method: "approximate"}}`, "{$sum: {$toDecimal: \"$n\"}}", "{$concatArrays: [[\"$a\", \"$b\"]]}", "{$setUnion: [[\"$a\", 1]]}")
	}
	key := r.one(`"$a"`, `"$b"`, `"$n"`, `{$mod: ["$n", 50]}`, `{x: "$a", y: {$mod: ["$n", 20]}}`, "null")
	switch r.IntN(8) {
	case 0, 1, 2:
		return "{$group: {_id: " + key + ", x: " + acc() + ", y: " + acc() + ", z: " + acc() + "}}"
	case 3:
		return fmt.Sprintf("{$bucketAuto: {groupBy: %s, buckets: %d, output: {x: %s}}}", r.one(`"$a"`, `"$n"`, `{$mod: ["$n", 50]}`), 1+r.IntN(9), acc())
	case 4:
		return fmt.Sprintf("{$setWindowFields: {partitionBy: %s, sortBy: {n: %s}, output: {x: {$push: \"$n\", window: {documents: [-2, %d]}}, y: {$shift: {output: \"$a\", by: 1}}, z: {$rank: {}}}}}",
			key, r.one("1", "-1"), r.IntN(3))
	case 5:
		return "{$facet: {p: [{$sort: {n: -1}}, {$limit: 20}], q: [{$group: {_id: null, x: " + acc() + "}}]}}"
	case 6:
		return fmt.Sprintf(`{$densify: {field: "n", range: {step: %d, bounds: "full"}}}`, 1+r.IntN(3))
	}
	return r.one(`{$sort: {a: 1, n: -1}}`, `{$sort: {n: 1}}`, `{$sample: {size: 40}}`, fmt.Sprintf(`{$bucket: {groupBy: "$n", boundaries: [0, 10, 100, 500], default: "x", output: {x: %s}}}`, acc()))
}

// TestSpilledPipelinesGiveTheSame runs random blocking stages in memory and with little of it, and compares. No file stays open:
// neither at the end, nor when the pipeline is closed in the middle or fails.
func TestSpilledPipelinesGiveTheSame(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	seed := rand.Uint64()
	files := &disk{dir: t.TempDir()}
	tooMuch, spilled := 0, 0
	for round := range rounds {
		r := generator{rand.New(rand.NewPCG(seed, uint64(round)))}
		w := &world{collections: map[string][]bson.Raw{}}
		for n := range 50 + r.IntN(200) {
			doc := strings.TrimSuffix(r.document(1), "}")
			if doc != "{" {
				doc += ", "
			}
			w.collections["c"] = append(w.collections["c"], value.MustParseDocument(fmt.Sprintf("%sn: %d, s: %q}", doc, n*37%251, strings.Repeat("s", r.IntN(100)))))
		}
		stage := r.blocking()
		list := split(t, "["+stage+"]")
		want, err := w.run(list, w.options())
		if err != nil {
			continue
		}
		o := w.options()
		o.Memory, o.Disk = int64(4000+r.IntN(30_000)), files
		files.made, files.failAt = 0, 0
		got, err := w.run(list, o)
		if mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
			tooMuch++
		} else if err != nil || sortedLines(want) != sortedLines(got) {
			t.Fatalf("seed %d, round %d: %s, %d bytes, %d files\nin memory:\n%s\nspilled, %v:\n%s", seed, round, stage, o.Memory, files.made, sortedLines(want), err, sortedLines(got))
		}
		if files.open != 0 {
			t.Fatalf("seed %d, round %d: %s: %d files of %d are still open", seed, round, stage, files.open, files.made)
		}
		if files.made == 0 {
			continue
		}
		spilled++
		for _, failAt := range []int{0, 1 + r.IntN(files.made)} {
			files.made, files.failAt = 0, failAt
			p, err := pipeline.Parse(list, o)
			if err != nil {
				t.Fatal(err)
			}
			it := p.RunAll(pipeline.Documents(w.collections["c"]))
			for range r.IntN(30) {
				if doc, err := it.Next(); err != nil || doc == nil {
					break
				}
			}
			if err := it.Close(); err != nil || files.open != 0 {
				t.Fatalf("seed %d, round %d: %s, closed early, write %d fails: %d files of %d are still open, %v", seed, round, stage, failAt, files.open, files.made, err)
			}
		}
	}
	t.Logf("%d of %d spilled, %d could not", spilled, rounds, tooMuch)
	if spilled < rounds/4 {
		t.Errorf("only %d of %d rounds spilled", spilled, rounds)
	}
}

func sortedLines(docs []bson.Raw) string {
	list := strings.Split(lines(docs), "\n")
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestWithoutDisk holds that what does not fit the memory is error 292 if the disk is not allowed.
func TestWithoutDisk(t *testing.T) {
	w := &world{collections: map[string][]bson.Raw{}}
	for n := range 200 {
		w.collections["c"] = append(w.collections["c"], value.MustParseDocument(fmt.Sprintf("{_id: %d, n: %d, s: %q}", n, n, strings.Repeat("s", 100))))
	}
	for _, stage := range []string{`{$sort: {n: -1}}`, `{$group: {_id: "$n"}}`, `{$group: {_id: null, x: {$push: "$s"}}}`, `{$bucketAuto: {groupBy: "$n", buckets: 3}}`,
		`{$setWindowFields: {sortBy: {n: 1}, output: {x: {$sum: 1}}}}`, `{$facet: {x: [{$count: "n"}]}}`, `{$sample: {size: 1000}}`,
		`{$bucket: {groupBy: "$n", boundaries: [0, 1000], output: {x: {$push: "$s"}}}}`} {
		o := w.options()
		o.Memory = 5000
		if _, err := w.run(split(t, "[{$set: {y: 1}}, "+stage+"]"), o); !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
			t.Errorf("%s: %v", stage, err)
		}
	}
}
