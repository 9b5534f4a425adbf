package match_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
)

func marshal(tb testing.TB, v any) bson.Raw {
	raw, err := bson.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// nested is {$and: [{$and: [... {a: 1} ...]}]}, built as bytes: the driver would recurse.
func nested(depth int) bson.Raw {
	core := []byte{12, 0, 0, 0, 0x10, 'a', 0, 1, 0, 0, 0, 0}
	const array, document = 4 + 1 + 2 + 1, 4 + 1 + 5 + 1 // what wrapping in an array, and in a document, adds
	var doc []byte
	for left := depth; left > 0; left-- {
		size := len(core) + left*(array+document)
		doc = append(binary.LittleEndian.AppendUint32(doc, uint32(size)), "\x04$and\x00"...)
		doc = append(binary.LittleEndian.AppendUint32(doc, uint32(size-document)), "\x030\x00"...)
	}
	return append(append(doc, core...), make([]byte, 2*depth)...)
}

func TestDeepFilterIsRefused(t *testing.T) {
	for depth, want := range map[int]mongoerr.Code{20: 0, 85: 0, 95: mongoerr.Overflow, 10_000: mongoerr.Overflow} {
		_, err := match.Parse(nested(depth), match.Options{})
		if want == 0 && err != nil || want != 0 && !mongoerr.Is(err, want) {
			t.Errorf("%d levels: %v, want %v", depth, err, want)
		}
	}
	not := "{$gt: 1}"
	for range 101 {
		not = "{$not: " + not + "}"
	}
	if _, err := match.Parse(parse("{a: "+not+"}"), match.Options{}); !mongoerr.Is(err, mongoerr.BadValue) {
		t.Errorf("101 times $not: %v", err)
	}
}

func TestHugeRegexIsRefused(t *testing.T) {
	for _, pattern := range []string{strings.Repeat("a", 1<<20), strings.Repeat("(", 30_000)} {
		_, err := match.Parse(marshal(t, bson.D{{Key: "a", Value: bson.Regex{Pattern: pattern}}}), match.Options{})
		if !mongoerr.Is(err, mongoerr.BadValue) && !mongoerr.Is(err, mongoerr.LocationRegexInvalid) {
			t.Errorf("%d bytes: %v", len(pattern), err)
		}
	}
	// A few bytes that unroll to very much: many of them must not add up.
	var list bson.A
	for i := range 100_000 {
		list = append(list, bson.Regex{Pattern: fmt.Sprintf("((a{99}){9}){9}%d", i)})
	}
	start := time.Now()
	if _, err := match.Parse(marshal(t, bson.D{{Key: "a", Value: bson.D{{Key: "$in", Value: list}}}}), match.Options{}); err == nil {
		t.Error("100 000 patterns of 8 000 instructions are accepted")
	}
	t.Logf("refused after %v", time.Since(start))
}

func TestCatastrophicRegexGivesUp(t *testing.T) {
	f, err := match.Parse(parse(`{a: {$regex: "^(?=((a|aa|b)+)+c)"}}`), match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Match(marshal(t, bson.D{{Key: "a", Value: strings.Repeat("a", 60) + "!"}}))
	if !mongoerr.Is(err, 51156) {
		t.Errorf("%v", err)
	}
}

func TestHundredThousandClauses(t *testing.T) {
	var equal, mixed bson.A
	for i := range 100_000 {
		equal = append(equal, bson.D{{Key: "a", Value: i}})
		mixed = append(mixed, bson.D{{Key: fmt.Sprintf("f%d", i), Value: bson.D{{Key: "$gt", Value: i}}}})
	}
	for _, list := range []bson.A{equal, mixed} {
		f, err := match.Parse(marshal(t, bson.D{{Key: "$or", Value: list}}), match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for doc, want := range map[string]bool{`{a: 99999, f7: 7}`: len(list) == len(equal) && &list[0] == &equal[0], `{f99999: 1000000}`: &list[0] == &mixed[0]} {
			if ok, err := f.Match(parse(doc)); ok != want || err != nil {
				t.Errorf("%s: %v %v, want %v", doc, ok, err, want)
			}
		}
	}
}

// A path of zeros takes every element of nested arrays as an index and as a field; without memory the ways double at each level.
func TestForkingPathIsBounded(t *testing.T) {
	doc := bson.D{{Key: "x", Value: 1}}
	for range 80 {
		doc = bson.D{{Key: "0", Value: bson.A{doc, doc[:0]}}}
	}
	f, err := match.Parse(marshal(t, bson.D{{Key: strings.Repeat("0.", 120) + "0", Value: 2}}), match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f.Match(marshal(t, doc)); ok || err != nil {
		t.Error(ok, err)
	}
}

// Whatever the bytes: an answer or an error.
func TestBrokenDocumentsDoNotPanic(t *testing.T) {
	doc := kilobyte(t)
	f, err := match.Parse(parse(`{"sub5.x": {$gt: 1}, name3: /x/, n9: {$in: [1, 2]}, z: {$elemMatch: {a: 1}}, $jsonSchema: {required: ["q"]}}`),
		match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc {
		for _, b := range []byte{0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff} {
			broken := append(bson.Raw(nil), doc...)
			broken[i] = b
			f.Match(broken)
			f.Match(broken[:i])
			match.Parse(broken, match.Options{})
		}
	}
}
