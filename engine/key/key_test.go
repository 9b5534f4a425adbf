package key_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/engine/value/generate"
)

func source(t *rapid.T) generate.Source {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

func pattern(s string) key.Pattern {
	p, err := key.ParsePattern(value.MustParseDocument(s))
	if err != nil {
		panic(err)
	}
	return p
}

func TestOrderOfKeysIsOrderOfValues(t *testing.T) {
	seed := rand.Uint64()
	s := generate.Source(rand.New(rand.NewPCG(seed, 0)).IntN)
	for i := range 60000 {
		a, b := s.Value(3), s.Value(3)
		if i%2 == 0 {
			a, b = s.Number(), s.Number()
		}
		ka, kb := key.Append(nil, a), key.Append(nil, b)
		if got, want := bytes.Compare(ka, kb), value.Compare(a, b); got != want {
			t.Fatalf("seed %d: keys of %s and %s: %d, want %d\n% x\n% x", seed, value.Text(a), value.Text(b), got, want, ka, kb)
		}
		if !bytes.Equal(ka, kb) && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
			t.Fatalf("seed %d: the key of one is a prefix of the other's: %s and %s", seed, value.Text(a), value.Text(b))
		}
	}
}

func TestDecodeGivesBackWhatWasEncoded(t *testing.T) {
	seed := rand.Uint64()
	s := generate.Source(rand.New(rand.NewPCG(seed, 0)).IntN)
	p := pattern("{a: 1, b: -1, c: 1}")
	var set key.Set
	for range 30000 {
		var doc bson.Raw
		var want []bson.RawValue
		b := []byte{0, 0, 0, 0}
		for _, name := range []string{"a", "b", "c"} {
			v := s.Value(3)
			if v.Type == bson.TypeArray || s(8) == 0 {
				want = append(want, value.Missing)
				continue
			}
			want = append(want, v)
			b = append(append(append(append(b, byte(v.Type)), name...), 0), v.Value...)
		}
		doc = append(b, 0)
		doc[0], doc[1] = byte(len(doc)), byte(len(doc)>>8)
		if err := p.Keys(&set, doc); err != nil {
			t.Fatal(err)
		}
		entry := key.AppendRecordID(bytes.Clone(set.Key(0)), 7)
		got, err := p.Decode(nil, entry, set.Trailer(0))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, value.Text(value.Document(doc)), err)
		}
		for i := range want {
			if value.Text(got[i]) != value.Text(want[i]) {
				t.Fatalf("seed %d: field %d of %s came back as %s", seed, i, value.Text(value.Document(doc)), value.Text(got[i]))
			}
		}
		ends, err := p.FieldEnds(nil, entry)
		if k, id, ok := key.CutRecordID(entry); err != nil || !ok || id != 7 || ends[2] != len(k) || set.Len() != 1 {
			t.Fatalf("seed %d: ends %v of %d, %v", seed, ends, len(k), err)
		}
		entry[s(len(entry))] ^= byte(1 + s(255))
		p.Decode(nil, entry[:s(len(entry)+1)], set.Trailer(0)) // no panic
	}
}

func TestTrailersAreEmptyForCommonTypes(t *testing.T) {
	p := pattern("{a: 1}")
	var set key.Set
	for _, doc := range []string{"{a: 1}", "{a: 1.5}", `{a: "x"}`, "{a: NumberLong(5000000000)}", "{a: null}",
		"{a: true}", `{a: {b: [1, "x"]}}`, "{a: 1e300}"} {
		if err := p.Keys(&set, value.MustParseDocument(doc)); err != nil || len(set.Trailer(0)) != 0 {
			t.Errorf("%s: % x, %v", doc, set.Trailer(0), err)
		}
	}
	for doc, n := range map[string]int{"{a: 1}": 2, "{a: 200}": 3, "{a: 1.5}": 9, `{a: "ab"}`: 4} {
		if p.Keys(&set, value.MustParseDocument(doc)); len(set.Key(0)) != n {
			t.Errorf("the key of %s has %d bytes, want %d", doc, len(set.Key(0)), n)
		}
	}
}

// fromWalk is what an index of one path must hold by the rules of value.Walk: every value reached, and of an array at the end
// its elements, or undefined if it has none. Missing is null.
func fromWalk(doc bson.Raw, path string) [][]byte {
	var want [][]byte
	value.Walk(doc, value.ParsePath(path), value.LeafArray, func(v bson.RawValue, index int) bool {
		switch {
		case v.Type == bson.TypeArray && value.Count(v.Value) == 0:
			want = append(want, key.Append(nil, bson.RawValue{Type: bson.TypeUndefined}))
		case v.Type == bson.TypeArray:
			for it := value.Elements(v.Value); it.Next(); {
				want = append(want, key.Append(nil, it.Value()))
			}
		case v.Type == 0:
			want = append(want, key.Append(nil, value.Null))
		default:
			want = append(want, key.Append(nil, v))
		}
		return false
	})
	return want
}

func TestKeysHoldWhatFiltersReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := source(t).Document(4)
		path := rapid.SampledFrom([]string{"a", "a.b", "a.b.c", "b.a", "a.a"}).Draw(t, "path")
		p := pattern("{'" + path + "': 1}")
		var set key.Set
		if err := p.Keys(&set, doc); err != nil {
			t.Fatal(err)
		}
		null := key.Append(nil, value.Null)
		have := map[string]bool{}
		for i := range set.Len() {
			have[string(set.Key(i))] = true
		}
		want := fromWalk(doc, path)
		for _, k := range want {
			if !have[string(k)] {
				t.Fatalf("%s of %s lacks % x", path, value.Text(value.Document(doc)), k)
			}
			delete(have, string(k))
		}
		delete(have, string(null)) // an array without the path is null in the index and nothing to a filter
		for _, k := range want {
			delete(have, string(k))
		}
		if len(have) != 0 {
			t.Fatalf("%s of %s has more: %v", path, value.Text(value.Document(doc)), have)
		}
	})
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ pattern, doc, want string }{
		{"{a: 1}", "{}", "[null]"},
		{"{a: 1}", "{a: [3, 1, 1]}", "[1] [3]"},
		{"{a: -1}", "{a: [3, 1]}", "[3] [1]"},
		{"{a: 1}", "{a: []}", "[undefined]"},
		{"{'a.b': 1}", "{a: []}", "[null]"},
		{"{'a.b': 1}", "{a: [1, {b: 2}]}", "[null] [2]"},
		{"{'a.b': 1}", "{a: 5}", "[null]"},
		{"{a: 1}", "{a: [[1, 2], 3]}", "[3] [[1, 2]]"},
		{"{'a.b': 1}", "{a: [[{b: 1}]]}", "[null]"},
		{"{'a.b': 1, 'a.c': -1}", "{a: [{b: 1, c: 2}, {b: 1, c: 3}, {}]}", "[null, null] [1, 3] [1, 2]"},
		{"{a: 1, b: 1}", "{a: [1, 2], b: 3}", "[1, 3] [2, 3]"},
		{"{a: 1, 'a.b': 1}", "{a: [{b: 1}, 2]}", "[2, null] [{b: 1}, 1]"},
		{"{a: 1, b: 1}", "{a: [1], b: [2]}", "171"},
		{"{'a.b': 1, 'a.c': 1}", "{a: [{b: [1], c: [2]}]}", "171"},
		{"{'a.0': 1}", "{a: [5, 6]}", "[5]"},
		{"{'a.0': 1}", "{a: [[5, 6]]}", "[5] [6]"},
		{"{'a.0.b': 1}", "{a: [{b: 5}, {b: 6}]}", "[5]"},
		{"{'a.0': 1, 'a.1': 1}", "{a: [5, 6]}", "[5, 6]"},
		{"{'a.1': 1}", "{a: [{1: 4}]}", "[4]"},
		{"{'a.0': 1}", "{a: [{0: 4}]}", "16746"},
		{"{a: 'hashed'}", "{a: 1}", "[NumberLong(5902408780260971510)]"},
		{"{a: 'hashed'}", "{a: [1]}", "16766"},
	} {
		p := pattern(c.pattern)
		var set key.Set
		got := ""
		if err := p.Keys(&set, value.MustParseDocument(c.doc)); err != nil {
			got = strconv.Itoa(int(mongoerr.From(err).Code))
		}
		for i := range set.Len() {
			values, err := p.Decode(nil, set.Key(i), nil)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				got += " "
			}
			got += "["
			for j, v := range values {
				if j > 0 {
					got += ", "
				}
				got += value.Text(v)
			}
			got += "]"
		}
		if got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.pattern, c.doc, got, c.want)
		}
	}
}

func TestSparseLeavesOutKeysOfNothing(t *testing.T) {
	p := pattern("{'a.b': 1, c: 1}")
	p.Sparse = true
	var set key.Set
	for doc, want := range map[string]int{"{}": 0, "{a: {b: null}}": 1, "{a: [{b: 1}, {}]}": 1, "{c: 1}": 1, "{a: [{}, {}]}": 0} {
		if err := p.Keys(&set, value.MustParseDocument(doc)); err != nil || set.Len() != want || set.Exists != (want > 0) {
			t.Errorf("%s: %d keys, exists %v, %v", doc, set.Len(), set.Exists, err)
		}
	}
}

func TestSortKeyIsTheLeast(t *testing.T) {
	var set key.Set
	asc, desc := pattern("{a: 1}"), pattern("{a: -1}")
	doc := value.MustParseDocument("{a: [5, 1, 9]}")
	low, _ := asc.SortKey(nil, &set, doc)
	high, _ := desc.SortKey(nil, &set, doc)
	if !bytes.Equal(low, key.Append(nil, value.Int32(1))) || !bytes.Equal(high, desc.AppendField(nil, 0, value.Int32(9))) {
		t.Errorf("% x, % x", low, high)
	}
	if _, err := pattern("{a: 1, b: 1}").SortKey(nil, &set, value.MustParseDocument("{a: [1], b: [1]}")); !mongoerr.Is(err, mongoerr.BadValue) {
		t.Error(err)
	}
}

// TestRangesHoldWhatLiesBetween compares membership by bytes with membership by value, for every kind of bound and direction.
func TestRangesHoldWhatLiesBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := source(t)
		p := pattern(rapid.SampledFrom([]string{"{a: 1, b: 1}", "{a: -1, b: -1}", "{a: 1, b: -1}"}).Draw(t, "pattern"))
		prefix, v, low, high := s.Value(2), s.Value(2), s.Value(2), s.Value(2)
		other := s.Value(2)
		from, fromIn := key.After(low), value.Compare(v, low) > 0
		switch s(3) {
		case 0:
			from, fromIn = key.Before(low), value.Compare(v, low) >= 0
		case 1:
			from, fromIn = key.BeforeType(low.Type), value.RankOf(v.Type) >= value.RankOf(low.Type)
		}
		to, toIn := key.Before(high), value.Compare(v, high) < 0
		switch s(4) {
		case 0:
			to, toIn = key.After(high), value.Compare(v, high) <= 0
		case 1:
			to, toIn = key.AfterType(high.Type), value.RankOf(v.Type) <= value.RankOf(high.Type)
		case 2:
			to, toIn = key.End(), true
		}
		r := p.Range(key.Point(prefix), key.Interval{From: from, To: to})
		entry := key.AppendRecordID(p.AppendField(p.AppendField(nil, 0, prefix), 1, v), uint64(s(2))*^uint64(0))
		in := bytes.Compare(entry, r.Low) >= 0 && (r.High == nil || bytes.Compare(entry, r.High) < 0)
		if in != (fromIn && toIn) {
			t.Fatalf("%s: %s between %s and %s: %v, want %v", p.Name(), value.Text(v), value.Text(low), value.Text(high), in, fromIn && toIn)
		}
		if empty := (key.Interval{From: from, To: to}).Empty(); empty && in {
			t.Fatal("not empty")
		}
		entry = key.AppendRecordID(p.AppendField(p.AppendField(nil, 0, other), 1, v), 0)
		in = bytes.Compare(entry, r.Low) >= 0 && (r.High == nil || bytes.Compare(entry, r.High) < 0)
		if in && !value.Equal(other, prefix) {
			t.Fatalf("%s is in the range of %s", value.Text(other), value.Text(prefix))
		}
	})
}

func TestCutsCompareAsTheirPlaces(t *testing.T) {
	one, two := value.Int32(1), value.Int32(2)
	cuts := []key.Cut{key.Start(), key.BeforeType(bson.TypeInt32), key.Before(one), key.After(one), key.Before(two),
		key.After(two), key.AfterType(bson.TypeDouble),
		key.BeforeType(bson.TypeString), key.Before(value.String("")), key.After(value.String("")), key.AfterType(bson.TypeString), key.End()}
	for i, c := range cuts {
		for j, d := range cuts {
			if got := c.Compare(d); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("cuts %d and %d: %d", i, j, got)
			}
		}
	}
	if !key.Point(one).IsPoint() || key.All().IsPoint() || (key.Interval{From: key.BeforeType(bson.TypeString),
		To: key.AfterType(bson.TypeString)}).IsPoint() {
		t.Error("IsPoint")
	}
}

func TestParsePatternRefuses(t *testing.T) {
	for _, spec := range []string{"{}", "{a: 0}", "{a: NaN}", "{a: 'foo'}", "{a: true}", "{'': 1}", "{'a.': 1}",
		"{'a..b': 1}", "{$a: 1}", "{'a.$b': 1}", "{a: {}}"} {
		if _, err := key.ParsePattern(value.MustParseDocument(spec)); !mongoerr.Is(err, mongoerr.CannotCreateIndex) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if p := pattern("{a: 1, 'b.c': -1.0, d: 'hashed', 'e.$id': 1}"); p.Name() != "a_1_b.c_-1_d_hashed_e.$id_1" {
		t.Error(p.Name())
	}
}

func BenchmarkKeys(b *testing.B) {
	doc := value.MustParseDocument(`{_id: ObjectId("0123456789abcdef01234567"), name: "somebody", n: 5, tags: ["a", "b", "c"], sub: {x: 1.5, d: NumberDecimal("19.99")}}`)
	for _, spec := range []string{"{_id: 1}", "{n: 1}", "{name: 1, n: -1}", "{'sub.x': 1}", "{'sub.d': 1}", "{tags: 1}"} {
		p := pattern(spec)
		var set key.Set
		b.Run(p.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Keys(&set, doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
