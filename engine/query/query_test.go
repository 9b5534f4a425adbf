package query

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// entries is an index as a sorted list, and counts how often it was sought in.
type entries struct {
	keys  [][]byte
	at    int
	seeks int
}

func (e *entries) Seek(k []byte) bool {
	e.seeks++
	e.at, _ = slices.BinarySearchFunc(e.keys, k, bytes.Compare)
	return e.at < len(e.keys)
}

func (e *entries) SeekBefore(k []byte) bool {
	e.Seek(k)
	return e.Prev()
}

func (e *entries) SeekLast() bool {
	e.at = len(e.keys) - 1
	return e.at >= 0
}

func (e *entries) Next() bool {
	e.at++
	return e.at < len(e.keys)
}

func (e *entries) Prev() bool {
	e.at--
	return e.at >= 0
}

func (e *entries) Key() []byte { return e.keys[e.at] }
func (*entries) Value() []byte { return nil }
func (e *entries) Err() error  { return nil }

// indexSource is a Source of one index without records.
type indexSource struct{ *entries }

func (s indexSource) Records(uint64, bool) RecordIter      { panic("there are no records") }
func (s indexSource) Record(uint64) ([]byte, error)        { return nil, errors.New("there are no records") }
func (s indexSource) Entries(uint32) (EntryIter, bool)     { return s.entries, true }
func (indexSource) Estimate(uint32, string, string) uint64 { return 0 }
func noTick() error                                        { return nil }

// A scan of bounds visits exactly the entries whose fields all are inside, in order, forward and in reverse, also when it is stopped
// and goes on.
func TestScanVisitsWhatIsInside(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		fields := make([]key.Field, 1+r.IntN(3))
		for i := range fields {
			fields[i].Kind = key.Kind(r.IntN(2))
		}
		pattern := key.Pattern{Fields: fields}
		x := &Index{Name: "x"}
		for i, f := range fields {
			x.Fields = append(x.Fields, Field{fmt.Sprint("f", i), f.Kind})
		}
		sets := make([]set, len(fields))
		for i := range sets {
			sets[i] = randomSet(r)
		}
		src := &entries{}
		var inside [][]byte
		for id := range uint64(400) {
			var k []byte
			in := true
			for i := range fields {
				v := value.Int32(int32(r.IntN(12)))
				k = pattern.AppendField(k, i, v)
				in = in && set{key.Point(v)}.within(sets[i])
			}
			k = binary.BigEndian.AppendUint64(k, id)
			src.keys = append(src.keys, k)
			if in {
				inside = append(inside, k)
			}
		}
		slices.SortFunc(src.keys, bytes.Compare)
		slices.SortFunc(inside, bytes.Compare)
		for _, reverse := range []bool{false, true} {
			want := slices.Clone(inside)
			if reverse {
				slices.Reverse(want)
			}
			s := scan{kind: scanIndex, index: x, bounds: boundsOf(x, sets), reverse: reverse}
			a := access{scan: &s}
			var got [][]byte
			for more := true; more; {
				a.attach(indexSource{src}, noTick)
				for range 1 + r.IntN(20) {
					_, _, ok, err := a.next()
					if err != nil {
						t.Fatal(err)
					}
					if more = ok; !ok {
						break
					}
					got = append(got, slices.Clone(src.Key()))
				}
				a.detach()
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("seed %d, reverse %v: %d entries, want %d; sets %v", seed, reverse, len(got), len(want), sets)
			}
		}
	}
}

func randomSet(r *rand.Rand) set {
	if r.IntN(4) == 0 {
		return setAll
	}
	var s set
	for range r.IntN(5) {
		a, b := value.Int32(int32(r.IntN(12))), value.Int32(int32(r.IntN(12)))
		switch r.IntN(5) {
		case 0:
			s = append(s, key.Point(a))
		case 1:
			s = append(s, key.Interval{From: key.After(a), To: key.Before(b)})
		case 2:
			s = append(s, key.Interval{From: key.Before(a), To: key.After(b)})
		case 3:
			s = append(s, key.Interval{From: key.Start(), To: key.Before(b)})
		case 4:
			s = append(s, key.Interval{From: key.After(a), To: key.AfterType(bson.TypeInt32)})
		}
	}
	return normal(s)
}

// Sets behave as sets of numbers do.
func TestSetsAreSets(t *testing.T) {
	has := func(s set, n int) bool { return set{key.Point(value.Int32(int32(n)))}.within(s) }
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		a, b := randomSet(r), randomSet(r)
		union, both, not := a.union(b), a.intersect(b), a.complement()
		subset := true
		for n := range 12 {
			if has(union, n) != (has(a, n) || has(b, n)) || has(both, n) != (has(a, n) && has(b, n)) || has(not, n) == has(a, n) {
				t.Fatalf("seed %d: %d in %v and %v", seed, n, a, b)
			}
			subset = subset && (!has(a, n) || has(b, n))
		}
		if a.within(b) && !subset || !both.within(a) || !a.within(union) {
			t.Fatalf("seed %d: %v within %v", seed, a, b)
		}
		for i := 1; i < len(union); i++ {
			if union[i-1].To.Compare(union[i].From) >= 0 {
				t.Fatalf("seed %d: %v is not in normal form", seed, union)
			}
		}
	}
}

func TestManyValuesOfInCostASeekEach(t *testing.T) {
	x := &Index{Name: "x", Fields: []Field{{Path: "a"}}}
	src := &entries{}
	for i := range 100_000 {
		src.keys = append(src.keys, binary.BigEndian.AppendUint64(key.Append(nil, value.Int32(int32(i))), uint64(i)))
	}
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprint(i*100))
	}
	f, err := match.Parse(value.MustParseDocument("{a: {$in: ["+strings.Join(list, ", ")+"]}}"), match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Query{Filter: f}, []*Index{x}, indexSource{src}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := access{scan: &p.scan}
	a.attach(indexSource{src}, noTick)
	n := 0
	for {
		_, _, ok, err := a.next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
	}
	if n != 1000 || src.seeks > 1001 || a.keys > 2001 {
		t.Fatalf("%d found with %d seeks and %d keys", n, src.seeks, a.keys)
	}
}

func TestLiteralPrefixIsWhatEveryMatchBeginsWith(t *testing.T) {
	for _, c := range []struct{ pattern, options, want string }{
		{"^abc", "", "abc"}, {"^abc.*", "", "abc"}, {"^abc", "i", ""}, {"abc", "", ""}, {"^abc?", "", "ab"}, {"^a*", "", ""}, {"^ab{2}", "", "a"},
		{"^ab+c", "", "ab"}, {"^a|b", "", ""}, {"^(a|b)", "", ""}, {"^ab(c|d)", "", ""}, {`^a\.b`, "", "a"}, {"^äö?", "", "ä"}, {"^", "", ""}, {"^é*", "", ""},
	} {
		if got := literalPrefix(c.pattern, c.options); got != c.want {
			t.Errorf("%s/%s: %q, want %q", c.pattern, c.options, got, c.want)
		}
	}
}

func TestCutShortKeysEndAScan(t *testing.T) {
	x := &Index{Name: "x", Fields: []Field{{Path: "a"}, {Path: "b"}}}
	sets := []set{{key.Point(value.Int32(1))}, {key.Point(value.Int32(2))}}
	whole := binary.BigEndian.AppendUint64(key.Append(key.Append(nil, value.Int32(1)), value.Int32(2)), 7)
	for n := range whole {
		for _, reverse := range []bool{false, true} {
			s := scan{kind: scanIndex, index: x, bounds: boundsOf(x, sets), reverse: reverse}
			a := access{scan: &s}
			a.attach(indexSource{&entries{keys: [][]byte{whole[:n]}}}, noTick)
			a.next() // an error, nothing, or a record that is not there: but no panic and an end
		}
	}
}
