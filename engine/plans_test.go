package engine

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

var (
	planSeed  = flag.Uint64("plan.seed", 0, "run TestPlansAgree with this seed alone")
	planSeeds = flag.Int("plan.seeds", 8, "how many seeds TestPlansAgree runs")
)

// generator makes documents, filters, indexes and sorts that meet often: few paths, few values, every shape of array. A narrow one
// has three values and the paths below one array, so that what is true of two elements is seldom true of one.
type generator struct {
	*rand.Rand
	narrow bool
	flat   bool // paths on which there are no arrays
}

// scalarOrObject is no array.
func (g generator) scalarOrObject() string {
	for {
		if s := g.scalar(); s[0] != '[' {
			return s
		}
	}
}

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) scalar() string {
	if g.narrow {
		return g.pick("1", "2", "3")
	}
	return g.pick("1", "2", "3", "1.0", "2.5", "NumberLong(3)", `NumberDecimal("2.5")`, `"x"`, `"xy"`, `"y"`, `"X"`, `"Xy"`, "null", "true", "false", "NaN", "-0.0", "MinKey", "MaxKey",
		"{}", "{x: 1}", "{x: 2, y: 1}", "{y: null}", "[]", "[1]", "[1, 2]", "undefined", "/x/", "ISODate(\"2020-01-01T00:00:00Z\")")
}

func (g generator) value(depth int) string {
	switch n := g.IntN(10); {
	case depth > 0 && n < 2:
		return "[" + g.list(func() string { return g.value(depth - 1) }, 3) + "]"
	case depth > 0 && n < 4:
		return g.object(depth - 1)
	case depth > 0 && n < 5:
		return "[" + g.list(func() string { return g.object(depth - 1) }, 3) + "]"
	}
	return g.scalar()
}

func (g generator) object(depth int) string {
	fields := []string{}
	for _, name := range []string{"x", "y"} {
		if g.IntN(3) > 0 {
			fields = append(fields, name+": "+g.value(depth))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (g generator) list(f func() string, most int) string {
	out := make([]string, g.IntN(most+1))
	for i := range out {
		out[i] = f()
	}
	return strings.Join(out, ", ")
}

func (g generator) document(id int) string {
	fields := []string{fmt.Sprintf("_id: %d", id)}
	if g.narrow {
		elements := g.list(func() string { return g.object(0) }, 3)
		if g.IntN(4) == 0 {
			elements = g.list(func() string { return g.value(1) }, 2)
		}
		return fmt.Sprintf("{_id: %d, a: [%s]}", id, elements)
	}
	for _, name := range []string{"a", "b", "c"} {
		if g.IntN(4) > 0 {
			fields = append(fields, name+": "+g.value(2))
		}
	}
	for _, name := range []string{"h", "k"} {
		if g.IntN(4) > 0 {
			fields = append(fields, name+": "+g.scalarOrObject())
		}
	}
	switch g.IntN(6) {
	case 0:
	case 1:
		fields = append(fields, "n: "+g.scalarOrObject())
	default:
		fields = append(fields, fmt.Sprintf("n: {x: %s, y: %s}", g.scalarOrObject(), g.scalarOrObject()))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (g generator) path() string {
	if g.flat {
		return g.pick("h", "k", "n.x", "n.y", "_id")
	}
	if g.narrow {
		return g.pick("a.x", "a.y", "a.x", "a.y", "a", "a.0", "a.1")
	}
	return g.pick("a", "a", "b", "c", "h", "h", "a.x", "a.y", "b.x", "a.x.y", "a.0", "b.1.x")
}

// test is what may stand behind a path.
func (g generator) test(depth int) string {
	switch g.IntN(13) {
	case 0, 1:
		return g.pick("$gt", "$gte", "$lt", "$lte") + ": " + g.scalar()
	case 2:
		return g.pick("$gt", "$gte") + ": " + g.scalar() + ", " + g.pick("$lt", "$lte") + ": " + g.scalar()
	case 3:
		return g.pick("$in", "$nin") + ": [" + g.list(g.scalar, 4) + "]"
	case 4:
		return "$ne: " + g.scalar()
	case 5:
		return "$exists: " + g.pick("true", "false")
	case 6:
		return "$type: " + g.pick(`"number"`, `"string"`, `"array"`, `"null"`, `"object"`)
	case 7:
		return "$size: " + g.pick("0", "1", "2")
	case 8:
		if depth > 0 {
			return "$elemMatch: {" + g.test(depth-1) + "}"
		}
	case 9:
		if depth > 0 {
			return "$elemMatch: {x: {" + g.test(depth-1) + "}, y: {" + g.test(depth-1) + "}}"
		}
	case 10:
		if depth > 0 {
			return "$not: {" + g.test(depth-1) + "}"
		}
	case 11:
		return "$regex: " + g.pick(`"^x"`, `"y"`, `"^xy?"`, `"^x|y"`)
	case 12:
		return "$all: [" + g.list(g.scalar, 2) + "]"
	}
	return "$eq: " + g.scalar()
}

func (g generator) filter(depth int) string {
	if depth > 0 && g.IntN(3) == 0 {
		n := make([]string, 1+g.IntN(3))
		for i := range n {
			n[i] = g.filter(depth - 1)
		}
		return "{" + g.pick("$and", "$or", "$or", "$nor") + ": [" + strings.Join(n, ", ") + "]}"
	}
	fields := map[string]string{}
	for range 1 + g.IntN(2) {
		fields[g.path()] = "{" + g.test(2) + "}"
	}
	var list []string
	for path, test := range fields {
		list = append(list, fmt.Sprintf("%q: %s", path, test))
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ", ") + "}"
}

func (g generator) pattern(most int) string {
	g.flat = g.flat || !g.narrow && g.IntN(3) == 0
	var list []string
	seen := map[string]bool{}
	for range 1 + g.IntN(most) {
		if p := g.path(); !seen[p] {
			seen[p] = true
			list = append(list, fmt.Sprintf("%q: %s", p, g.pick("1", "1", "-1")))
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (g generator) index(n int) string {
	option := ""
	if g.IntN(4) == 0 {
		option = ", collation: " + caseless
	}
	switch g.IntN(8) {
	case 0:
		return fmt.Sprintf("{key: {%q: %s}, name: \"i%d\"%s}", g.pick("$**", "$**", "a.$**", "a.x.$**"), g.pick("1", "-1"), n, option)
	case 1:
		option = ", wildcardProjection: {" + g.pick("a: 1", "a: 0", `"a.x": 1, b: 1`, `"a.x": 0`, "a: {x: 1}, _id: 1", "_id: 1", "b: 0, _id: 1") + "}"
		return fmt.Sprintf("{key: {\"$**\": 1}, name: \"i%d\"%s}", n, option)
	case 2:
		if !g.narrow {
			return fmt.Sprintf("{key: {%s}, name: \"i%d\"%s}", g.pick(`h: "hashed"`, `h: "hashed"`, `a: 1, h: "hashed"`, `h: "hashed", b: -1`), n, option)
		}
	}
	switch g.IntN(6) {
	case 0:
		option += ", sparse: true"
	case 1:
		option += ", partialFilterExpression: {" + g.pick(`a: {$gt: 1}`, `a: {$exists: true}`, `b: {$lte: 2}`, `"a.x": {$gte: 1}`, `a: 1`) + "}"
	}
	return fmt.Sprintf("{key: %s, name: \"i%d\"%s}", g.pattern(3), n, option)
}

// caseless takes x and X for the same.
const caseless = `{locale: "en", strength: 2}`

// For every query the result is the same with whatever index, in whatever batches.
func TestPlansAgree(t *testing.T) {
	seeds := []uint64{*planSeed}
	if *planSeed == 0 {
		seeds = nil
		for i := range *planSeeds {
			seeds = append(seeds, uint64(i+1))
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { comparePlans(t, seed) })
		if t.Failed() {
			t.Fatalf("replay: go test ./engine -run TestPlansAgree -plan.seed=%d", seed)
		}
	}
}

func comparePlans(t *testing.T, seed uint64) {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 7)), narrow: seed%2 == 0}
	db := open(t)
	ctx := context.Background()
	for i := range 3 { // before there are documents, and after
		db.CreateIndexes(ctx, ns, docs(g.index(i)))
	}
	in := make([]bson.Raw, 60+g.IntN(100))
	for i := range in {
		in[i] = doc(g.document(i))
	}
	if _, err := db.Insert(ctx, ns, in, false); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		db.CreateIndexes(ctx, ns, docs(g.index(3+i)))
	}
	indexes, err := db.ListIndexes(ctx, ns)
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for range 150 {
		g := g
		g.flat = !g.narrow && g.IntN(3) == 0
		filter := doc(g.filter(2))
		var sort, projection bson.Raw
		switch g.IntN(3) {
		case 0:
			sort = doc(g.pattern(2))
		case 1:
			projection = doc(strings.Replace(g.pattern(3), "-1", "1", 3))
			if g.IntN(2) == 0 && projection.Lookup("_id").Type == 0 {
				projection = appendField(projection, "_id", value.Int32(0))
			}
		}
		var coll bson.Raw
		if g.IntN(3) == 0 {
			coll = doc(caseless)
		}
		batch := 1 + g.IntN(40)
		want, err := tryFind(db, Find{Filter: filter, Sort: sort, Projection: projection, Collation: coll, Hint: value.Document(doc(`{$natural: 1}`))}, batch)
		if err != nil {
			if mongoerr.Is(err, mongoerr.BadValue) || mongoerr.Is(err, mongoerr.NotImplemented) || mongoerr.Is(err, 16746) || mongoerr.Is(err, 31249) || mongoerr.Is(err, 31250) {
				continue // parallel arrays cannot be sorted by, and so on
			}
			t.Fatalf("filter %s: %v", show(filter), err)
		}
		hints := []bson.RawValue{{}}
		for _, x := range indexes {
			if sparse, _ := x.Lookup("sparse").BooleanOK(); !sparse {
				hints = append(hints, x.Lookup("name"))
			}
		}
		for _, hint := range hints {
			got, err := tryFind(db, Find{Filter: filter, Sort: sort, Projection: projection, Collation: coll, Hint: hint}, batch)
			if mongoerr.Is(err, mongoerr.NoQueryExecutionPlans) {
				continue
			}
			if err != nil {
				t.Fatalf("filter %s, sort %s, hint %v: %v", show(filter), show(sort), hint, err)
			}
			used++
			if projection != nil { // of an index the fields come in the order of its key
				got, want = sortFields(got), sortFields(want)
			}
			if sortLines(got) != sortLines(want) {
				t.Fatalf("filter %s, sort %s, projection %s, collation %s, hint %v:\n%s", show(filter), show(sort), show(projection), show(coll), hint, lineDiff(want, got))
			}
			if n, err := db.Count(ctx, ns, Count{Filter: filter, Hint: hint, Collation: coll}); err != nil || n != int64(strings.Count(want, "\n")) {
				t.Fatalf("filter %s, hint %v: count %d, %v; want %d", show(filter), hint, n, err, strings.Count(want, "\n"))
			}
			if sort != nil && coll == nil && !inOrder(t, got, sort) {
				t.Fatalf("filter %s, sort %s, hint %v: not in order:\n%s", show(filter), show(sort), hint, got)
			}
		}
	}
	if used < 100 {
		t.Errorf("only %d queries were compared", used)
	}
}

func show(doc bson.Raw) string { return value.Text(value.Document(doc)) }

// sortFields sorts the fields of the documents in s, a line each, and of those in them.
func sortFields(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(value.Text(sortedFields(value.Document(doc(line)))) + "\n")
	}
	return b.String()
}

func sortedFields(v bson.RawValue) bson.RawValue {
	if v.Type != bson.TypeEmbeddedDocument {
		return v
	}
	fields := map[string]bson.RawValue{}
	for it := value.Elements(v.Value); it.Next(); {
		fields[string(it.Name())] = sortedFields(it.Value())
	}
	out := noFields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = appendField(out, name, fields[name])
	}
	return value.Document(out)
}

func sortLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// lineDiff tells which lines one result has more than the other.
func lineDiff(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if i := slices.Index(g, line); i >= 0 {
			g = slices.Delete(g, i, i+1)
		} else {
			b.WriteString("lacks " + line + "\n")
		}
	}
	for _, line := range g {
		b.WriteString("should not have " + line + "\n")
	}
	return b.String()
}

func inOrder(t *testing.T, lines string, sort bson.Raw) bool {
	p, err := key.ParsePattern(sort)
	if err != nil {
		t.Fatal(err)
	}
	var set key.Set
	var last []byte
	for line := range strings.Lines(lines) {
		k, err := p.SortKey(nil, &set, doc(line))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Compare(last, k) > 0 {
			return false
		}
		last = k
	}
	return true
}
