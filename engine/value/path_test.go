package value_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

func TestWalk(t *testing.T) {
	for _, c := range []struct{ doc, path, want string }{
		// Each value as text, with @ and its array position if it has one.
		{"{a: 1}", "a", "1"},
		{"{a: 1}", "b", "missing"},
		{"{a: 1}", "a.b", "missing"},
		{"{a: {b: 2}}", "a.b", "2"},
		{"{a: [1, 2]}", "a", "1@0 2@1 [1, 2]"},
		{"{a: []}", "a", "[]"},
		{"{a: []}", "a.b", ""},
		{"{a: [1, 2]}", "a.b", ""},
		{"{a: [{b: 1}, {c: 2}, 3]}", "a.b", "1@0 missing@1"},
		{"{a: [{b: [1, 2]}, {b: 3}]}", "a.b", "1@0 2@0 [1, 2]@0 3@1"},
		{"{a: [[{b: 1}]]}", "a.b", ""},
		{"{a: [[{b: 1}]]}", "a.0.b", "1@0"},
		{"{a: [5, 7, 3]}", "a.1", "7"},
		{"{a: [5, [2, 4], 3]}", "a.1", "[2, 4]"},
		{"{a: [5, {1: 4}]}", "a.1", "4@1 {1: 4}"},
		{"{a: [5, {1: 4}]}", "a.01", "missing@1"},
		{"{a: [{b: 1}, {b: 2}]}", "a.1.b", "missing@0 missing@1 2"},
		{"{a: {0: {b: 1}}}", "a.0.b", "1"},
		{"{a: [{b: [{c: 1}, {c: 2}]}]}", "a.b.c", "1@0 2@0"},
		{"{a: [{b: [{c: 1}, {c: 2}]}]}", "a.0.b.c", "missing@0 1@0 2@1"},
		{"{a: [[1, 2], 3]}", "a", "[1, 2]@0 3@1 [[1, 2], 3]"},
		{"{a: [[[7]]]}", "a.0.0", "[7]"},
		{"{'': {'': 1}}", ".", "1"},
	} {
		var got []string
		value.Walk(value.MustParseDocument(c.doc), value.ParsePath(c.path), value.LeafBoth, func(v bson.RawValue, index int) bool {
			s := value.Text(v)
			if index >= 0 {
				s += fmt.Sprintf("@%d", index)
			}
			got = append(got, s)
			return false
		})
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s of %s: %s, want %s", c.path, c.doc, s, c.want)
		}
	}
}

func TestWalkStopsAndKeepsArraysWhole(t *testing.T) {
	doc := value.MustParseDocument("{a: [{b: [1, 2]}, {b: 3}]}")
	n := 0
	if !value.Walk(doc, value.ParsePath("a.b"), value.LeafArray, func(v bson.RawValue, index int) bool {
		n++
		return v.Type == bson.TypeArray && index == 0
	}) || n != 1 {
		t.Fatalf("stopped after %d", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		value.Walk(doc, benchPath, value.LeafBoth, func(v bson.RawValue, index int) bool { return false })
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

var benchPath = value.ParsePath("a.b")

func TestGet(t *testing.T) {
	doc := value.MustParseDocument("{a: {b: [1, {c: 2}, [3]]}}")
	for path, want := range map[string]string{"a.b.1.c": "2", "a.b.2.0": "3", "a.b.c": "missing", "a.b.3": "missing",
		"a.b.0.x": "missing", "x": "missing", "a.b.01": "missing"} {
		if got := value.Text(value.Get(doc, value.ParsePath(path))); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
