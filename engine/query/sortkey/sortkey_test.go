package sortkey_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/query/spill"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

var seed = flag.Uint64("seed", 0, "the seed of the random cases; 0 draws one")

// TestScripts runs testdata/*.txt: "sort" gives the documents below in order, "top" the first three, "collated" without regard to
// case, "parse" only reads the sort.
func TestScripts(t *testing.T) { script.Run(t, answer) }

type caseless struct{}

func (caseless) AppendKey(dst, text []byte) []byte {
	return append(dst, strings.ToLower(string(text))...)
}

func answer(_ *testing.T, c script.Case) string {
	command, arg, _ := strings.Cut(c.Lines[0], " ")
	var opts sortkey.Options
	if command == "collated" {
		opts.Collation = caseless{}
	}
	spec, err := sortkey.Parse(value.MustParseDocument(arg), opts)
	switch {
	case err != nil:
		return "error " + err.Error()
	case spec == nil:
		return "none"
	case command == "parse":
		return fmt.Sprintf("%v natural %d", spec.Fields(), spec.Natural())
	}
	o := sortkey.SorterOptions{}
	if command == "top" {
		o.Keep = 3
	}
	s := spec.Sorter(o)
	for i, l := range c.Lines[1:] {
		if err := s.Add(uint64(i), value.MustParseDocument(l)); err != nil {
			return "error " + err.Error()
		}
	}
	var docs []string
	for _, item := range drain(s) {
		docs = append(docs, value.Text(value.Document(item.Doc)))
	}
	return strings.Join(docs, "\n")
}

func drain(s *sortkey.Sorter) (items []sortkey.Item) {
	if err := s.Sort(); err != nil {
		panic(err)
	}
	for {
		left := s.Left()
		item, ok, err := s.Next()
		if err != nil {
			panic(err)
		}
		if ok != (left > 0) {
			panic(fmt.Sprintf("%d left, and there is another: %v", left, ok))
		}
		if !ok {
			return items
		}
		items = append(items, sortkey.Item{Key: slices.Clone(item.Key), ID: item.ID, Doc: slices.Clone(item.Doc)})
	}
}

// disk counts its files.
type disk struct {
	dir        string
	open, made int
}

type diskFile struct {
	*os.File
	d *disk
}

func (d *disk) Create() (spill.File, error) {
	f, err := os.CreateTemp(d.dir, "")
	d.open++
	d.made++
	return diskFile{f, d}, err
}

func (f diskFile) Close() error {
	f.d.open--
	os.Remove(f.Name())
	return f.File.Close()
}

// naive is the value by which a document is placed, found from decoded values.
func naive(doc bson.Raw, f sortkey.Field) bson.RawValue {
	values := naiveValues(value.Document(doc), strings.Split(f.Path, "."))
	return slices.MinFunc(values, func(a, b bson.RawValue) int {
		if f.Descending {
			a, b = b, a
		}
		return value.Compare(a, b)
	})
}

func naiveValues(v bson.RawValue, parts []string) (out []bson.RawValue) {
	undefined := bson.RawValue{Type: bson.TypeUndefined}
	switch {
	case v.Type == bson.TypeArray:
		for it := value.Elements(v.Value); it.Next(); {
			switch {
			case len(parts) == 0:
				out = append(out, it.Value())
			case it.Value().Type == bson.TypeEmbeddedDocument:
				out = append(out, naiveValues(it.Value(), parts)...)
			default:
				out = append(out, value.Null)
			}
		}
		if out == nil {
			out = append(out, map[bool]bson.RawValue{true: undefined, false: value.Null}[len(parts) == 0])
		}
		return out
	case len(parts) == 0 && v.Type == 0:
		return []bson.RawValue{value.Null}
	case len(parts) == 0:
		return []bson.RawValue{v}
	case v.Type != bson.TypeEmbeddedDocument:
		return []bson.RawValue{value.Null}
	}
	return naiveValues(value.Lookup(v.Value, parts[0]), parts[1:])
}

// TestAgainstNaive sorts random documents with limits, tiny memories and spills, and compares with a stable sort by naive values.
func TestAgainstNaive(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	g := rand.New(rand.NewPCG(s, 0))
	compared, spilled := 0, 0
	files := &disk{dir: t.TempDir()}
	for range 4000 {
		var spec bson.D
		for _, path := range []string{"x", "a", "a.b", "y"} {
			// Two fields with arrays could not be compared one after the other.
			if g.IntN(3) > 0 || path == "y" {
				continue
			}
			if len(spec) > 0 && strings.HasPrefix(spec[len(spec)-1].Key, "a") && path[0] == 'a' {
				continue
			}
			spec = append(spec, bson.E{Key: path, Value: int32(1 - 2*g.IntN(2))})
		}
		spec = append(spec, bson.E{Key: "y", Value: int32(1)})
		raw, _ := bson.Marshal(spec)
		p, err := sortkey.Parse(raw, sortkey.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := sortkey.SorterOptions{Keep: int64(g.IntN(3) * g.IntN(12)), Memory: int64(300 + g.IntN(20_000))}
		files.made = 0
		o.Disk = files
		sorter := p.Sorter(o)
		var want []sortkey.Item
		for range g.IntN(60) {
			doc, err := bson.Marshal(bson.D{{Key: "x", Value: scalar(g)}, {Key: "a", Value: random(g, 2)}, {Key: "y", Value: g.IntN(3)}})
			if err != nil {
				t.Fatal(err)
			}
			id := uint64(g.IntN(1000))<<16 + uint64(len(want))
			want = append(want, sortkey.Item{ID: id, Doc: doc})
			if err := sorter.Add(id, doc); err != nil {
				t.Fatalf("-seed %d: %v", s, err)
			}
		}
		slices.SortFunc(want, func(a, b sortkey.Item) int {
			for _, f := range p.Fields() {
				c := value.Compare(naive(a.Doc, f), naive(b.Doc, f))
				if f.Descending {
					c = -c
				}
				if c != 0 {
					return c
				}
			}
			return int(a.ID) - int(b.ID)
		})
		if o.Keep > 0 && int(o.Keep) < len(want) {
			want = want[:o.Keep]
		}
		got := drain(sorter)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i].ID != want[i].ID {
				t.Fatalf("-seed %d: sort %s, %+v: position %d of %d and %d is wrong", s, value.Text(value.Document(raw)), o, i, len(got), len(want))
			}
		}
		compared += len(want)
		spilled += sorter.Spilled()
		if err := sorter.Close(); err != nil || files.open != 0 {
			t.Fatalf("-seed %d: %d files of %d are still open, %v", s, files.open, files.made, err)
		}
	}
	t.Logf("%d documents, %d runs on the disk", compared, spilled)
}

func scalar(g *rand.Rand) any {
	values := []any{nil, int32(g.IntN(3)), int64(g.IntN(3)), float64(g.IntN(5)) / 2, math.NaN(), "", "a", "a\x00b", "ab", true, false, bson.MinKey{},
		bson.MaxKey{}, bson.DateTime(g.IntN(3)), bson.Undefined{}, bson.D{}, bson.D{{Key: "b", Value: int32(g.IntN(2))}}}
	return values[g.IntN(len(values))]
}

func random(g *rand.Rand, depth int) any {
	if depth > 0 && g.IntN(3) == 0 {
		a := bson.A{}
		for range g.IntN(3) {
			a = append(a, random(g, depth-1))
		}
		return a
	}
	if depth > 0 && g.IntN(3) == 0 {
		return bson.D{{Key: "b", Value: random(g, depth-1)}}
	}
	return scalar(g)
}

func TestMemoryLimit(t *testing.T) {
	p, err := sortkey.Parse(value.MustParseDocument("{a: 1}"), sortkey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	doc := value.MustParseDocument(`{a: 1, b: "` + strings.Repeat("x", 1000) + `"}`)
	s := p.Sorter(sortkey.SorterOptions{Memory: 10_000})
	for i := range 20 {
		if err = s.Add(uint64(i), doc); err != nil {
			break
		}
	}
	if !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Errorf("20 KB in 10: %v", err)
	}
	s = p.Sorter(sortkey.SorterOptions{Memory: 10_000, Keep: 5})
	for i := range 1000 {
		if err := s.Add(uint64(i), doc); err != nil {
			t.Fatalf("the first 5 need no more memory: %v", err)
		}
	}
}

// TestManyRuns sorts what makes so many runs that they are merged on the way.
func TestManyRuns(t *testing.T) {
	p, err := sortkey.Parse(value.MustParseDocument("{a: 1}"), sortkey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := &disk{dir: t.TempDir()}
	s := p.Sorter(sortkey.SorterOptions{Memory: 1000, Disk: files})
	const n = 20_000
	for i := range n {
		doc, _ := bson.Marshal(bson.D{{Key: "a", Value: i * 7919 % n}})
		if err := s.Add(uint64(i), doc); err != nil {
			t.Fatal(err)
		}
		if files.open > 100 {
			t.Fatalf("%d files are open", files.open)
		}
	}
	for i, item := range drain(s) {
		if got := value.Lookup(item.Doc, "a").Int32(); int(got) != i {
			t.Fatalf("number %d of %d runs is %d", i, s.Spilled(), got)
		}
	}
	if err := s.Close(); err != nil || files.open != 0 {
		t.Errorf("%d files are still open, %v", files.open, err)
	}
}

func BenchmarkSorter(b *testing.B) {
	p, err := sortkey.Parse(value.MustParseDocument("{a: -1, b: 1}"), sortkey.Options{})
	if err != nil {
		b.Fatal(err)
	}
	g := rand.New(rand.NewPCG(1, 2))
	var docs []bson.Raw
	for i := range 10_000 {
		doc, _ := bson.Marshal(bson.D{{Key: "_id", Value: i}, {Key: "a", Value: g.IntN(1000)}, {Key: "b", Value: fmt.Sprint(g.IntN(100))},
			{Key: "rest", Value: strings.Repeat("x", 900)}})
		docs = append(docs, doc)
	}
	for _, keep := range []int64{0, 20} {
		b.Run(fmt.Sprintf("keep=%d", keep), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := p.Sorter(sortkey.SorterOptions{Keep: keep})
				for i, doc := range docs {
					if err := s.Add(uint64(i), doc); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Sort(); err != nil {
					b.Fatal(err)
				}
				for _, ok, _ := s.Next(); ok; _, ok, _ = s.Next() {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(docs)), "ns/doc")
		})
	}
}
