package match_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// kilobyte is a document of about 1 KiB with fields of every common type; n0 to n9 are spread over it.
func kilobyte(tb testing.TB) bson.Raw {
	d := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	for i := range 10 {
		d = append(d, bson.E{Key: fmt.Sprintf("n%d", i), Value: int32(i)},
			bson.E{Key: fmt.Sprintf("name%d", i), Value: "a string of some forty-eight characters, more or less"},
			bson.E{Key: fmt.Sprintf("sub%d", i), Value: bson.D{{Key: "x", Value: 1.5}}})
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func benchmark(b *testing.B, filter string) {
	doc := kilobyte(b)
	f, err := match.Parse(value.MustParseDocument(filter), match.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := f.Match(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTwoFields(b *testing.B)  { benchmark(b, `{n4: 4, n9: {$gt: 5}}`) }
func BenchmarkFirstField(b *testing.B) { benchmark(b, `{n0: 1, n9: {$gt: 5}}`) }
func BenchmarkNested(b *testing.B)     { benchmark(b, `{"sub5.x": 1.5, "sub9.x": {$lt: 2}}`) }
func BenchmarkString(b *testing.B) {
	benchmark(b, `{name3: "a string of some forty-eight characters, more or less", name8: {$gt: "a"}}`)
}
func BenchmarkRegex(b *testing.B) { benchmark(b, `{name5: /^a string/, n9: 9}`) }
func BenchmarkIn(b *testing.B) {
	benchmark(b, `{n7: {$in: [1, 3, 5, 7, 9, 11, 13]}, n8: {$nin: [1, 2]}}`)
}
func BenchmarkAbsent(b *testing.B) { benchmark(b, `{absent: {$exists: false}, missing: null}`) }
