package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// plan gives a query's stages from the outside in, with an index scan's name, direction and bounds.
func plan(t *testing.T, db *DB, f Find) string {
	t.Helper()
	raw, err := db.Explain(context.Background(), ns, f, ExecutionStats)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for stage := raw.Lookup("queryPlanner", "winningPlan").Document(); stage != nil; {
		name := stage.Lookup("stage").StringValue()
		out += " " + name
		if name == "IXSCAN" {
			out += fmt.Sprintf("(%s %s %s)", stage.Lookup("indexName").StringValue(), stage.Lookup("direction").StringValue(), value.Text(stage.Lookup("indexBounds")))
		}
		next, ok := stage.Lookup("inputStage").DocumentOK()
		if !ok {
			break
		}
		stage = next
	}
	return out[1:]
}

func TestPlanIsChosen(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1, b: -1}, name: "ab"}`)
	createIndex(t, db, `{key: {c: 1}, name: "c", sparse: true}`)
	createIndex(t, db, `{key: {m: 1}, name: "m"}`)
	createIndex(t, db, `{key: {u: 1}, name: "u", unique: true, partialFilterExpression: {u: {$gt: 0}}}`)
	var in []bson.Raw
	for i := range 500 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, a: %d, b: %d, c: %d, m: [%d, %d], u: %d}`, i, i%10, i%50, i%250, i, i+1, i+1)))
	}
	if r, err := db.Insert(context.Background(), ns, in, true); err != nil || r.N != 500 {
		t.Fatal(r, err)
	}
	for _, c := range []struct{ filter, sort, want string }{
		{`{_id: 5}`, ``, `IDHACK`},
		{`{_id: {$gt: 5}}`, ``, `FETCH IXSCAN(_id_ forward {_id: ["(5, Infinity]"]})`},
		{`{x: 5}`, ``, `COLLSCAN`},
		{`{x: 5}`, `{y: 1}`, `SORT COLLSCAN`},
		{`{a: 5}`, ``, `FETCH IXSCAN(ab forward {a: ["[5, 5]"], b: ["[MinKey, MaxKey]"]})`},
		{`{a: 5}`, `{b: 1}`, `FETCH IXSCAN(ab backward {a: ["[5, 5]"], b: ["[MinKey, MaxKey]"]})`},
		{`{a: 5}`, `{b: -1}`, `FETCH IXSCAN(ab forward {a: ["[5, 5]"], b: ["[MinKey, MaxKey]"]})`},
		{`{a: {$in: [1, 3]}, b: {$gte: 2, $lt: 9}}`, ``, `FETCH IXSCAN(ab forward {a: ["[1, 1]", "[3, 3]"], b: ["[2, 9)"]})`},
		{`{a: {$gt: 1}}`, `{a: -1, b: 1}`, `FETCH IXSCAN(ab backward {a: ["(1, Infinity]"], b: ["[MinKey, MaxKey]"]})`},
		{`{}`, `{a: 1, b: 1}`, `SORT COLLSCAN`},
		{`{}`, `{a: 1}`, `FETCH IXSCAN(ab forward {a: ["[MinKey, MaxKey]"], b: ["[MinKey, MaxKey]"]})`},
		{`{a: 3, c: 3}`, ``, `FETCH IXSCAN(c forward {c: ["[3, 3]"]})`},
		{`{c: null}`, ``, `COLLSCAN`},
		{`{c: {$exists: true}}`, `{c: 1}`, `FETCH IXSCAN(c forward {c: ["[MinKey, MaxKey]"]})`},
		{`{m: {$gt: 5, $lt: 7}}`, ``, `FETCH IXSCAN(m forward {m: ["(5, Infinity]"]})`},
		{`{m: {$elemMatch: {$gt: 5, $lt: 7}}}`, ``, `FETCH IXSCAN(m forward {m: ["(5, 7)"]})`},
		{`{u: 7}`, ``, `FETCH IXSCAN(u forward {u: ["[7, 7]"]})`},
		{`{u: {$lt: 7}}`, ``, `COLLSCAN`},
		{`{u: {$gt: 3, $lt: 7}}`, ``, `FETCH IXSCAN(u forward {u: ["(3, 7)"]})`},
		{`{$or: [{a: 1}, {c: 2}]}`, ``, `FETCH OR`},
		{`{$or: [{a: 1}, {x: 2}]}`, ``, `COLLSCAN`},
		{`{a: {$in: []}}`, ``, `EOF`},
	} {
		f := Find{Filter: doc(c.filter)}
		if c.sort != "" {
			f.Sort = doc(c.sort)
		}
		if got := plan(t, db, f); got != c.want {
			t.Errorf("%s, sort %s:\ngot  %s\nwant %s", c.filter, c.sort, got, c.want)
		}
	}
	stats, err := db.Explain(context.Background(), ns, Find{Filter: doc(`{a: {$in: [1, 3]}, b: {$gte: 2, $lt: 9}}`)}, ExecutionStats)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"nReturned": "NumberLong(10)", "totalDocsExamined": "10"} {
		if got := value.Text(stats.Lookup("executionStats", field)); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	if keys := stats.Lookup("executionStats", "totalKeysExamined").AsInt64(); keys > 16 {
		t.Errorf("%d keys were examined", keys)
	}
}

func TestIndexCoversQueries(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1, "n.x": -1}, name: "an"}`)
	createIndex(t, db, `{key: {h: "hashed"}, name: "h"}`)
	createIndex(t, db, `{key: {"$**": 1}, name: "w", wildcardProjection: {w: 1}}`)
	insert(t, db, `{_id: 1, n: {x: NumberLong(5), y: 1}, a: 1.0, h: 1, w: {v: 3}}`, `{_id: 2, a: 2, n: {}}`, `{_id: 3, a: 2}`, `{_id: 4, a: 3, n: {x: null}, h: 2.5, w: {v: {u: 1}}}`)
	for _, c := range []struct{ filter, sort, projection, plan, want string }{
		{`{a: {$lt: 2}}`, ``, `{a: 1, "n.x": 1, _id: 0}`, `PROJECTION_COVERED IXSCAN(an forward {a: ["(NaN, 2)"], n.x: ["[MinKey, MaxKey]"]})`, `{a: 1.0, n: {x: NumberLong(5)}}`},
		{`{a: {$gte: 2}}`, ``, `{"n.x": 1, _id: 0}`, `PROJECTION_COVERED IXSCAN(an forward {a: ["[2, Infinity]"], n.x: ["[MinKey, MaxKey]"]})`, `{n: {}}
{}
{n: {x: null}}`},
		{`{a: {$gte: 2}}`, ``, `{a: 1}`, `PROJECTION_SIMPLE FETCH IXSCAN(an forward {a: ["[2, Infinity]"], n.x: ["[MinKey, MaxKey]"]})`, `{_id: 2, a: 2}
{_id: 3, a: 2}
{_id: 4, a: 3}`},
		{`{a: {$in: [1, 3]}}`, `{"n.x": 1}`, `{a: 1}`, `PROJECTION_SIMPLE FETCH SORT_MERGE`, `{_id: 4, a: 3}
{_id: 1, a: 1.0}`},
		{`{h: 2.5}`, ``, `{h: 1, _id: 0}`, `PROJECTION_SIMPLE FETCH IXSCAN(h forward {h: ["[NumberLong(848411777775835583), NumberLong(848411777775835583)]"]})`, `{h: 2.5}`},
		{`{h: {$gt: 1}}`, ``, `{h: 1, _id: 0}`, `PROJECTION_SIMPLE COLLSCAN`, `{h: 2.5}`},
		{`{"w.v": 3}`, ``, `{"w.v": 1, _id: 0}`, `PROJECTION_COVERED IXSCAN(w forward {$_path: ["[\"w.v\", \"w.v\"]"], w.v: ["[3, 3]"]})`, `{w: {v: 3}}`},
		{`{"w.v": {$exists: true}}`, ``, `{_id: 1}`, `PROJECTION_SIMPLE FETCH IXSCAN(w forward {$_path: ["[\"w.v\", \"w.v\"]", "[\"w.v.\", \"w.v/\")"], w.v: ["[MinKey, MaxKey]"]})`, `{_id: 1}
{_id: 4}`},
		{`{"w.v": null}`, ``, `{_id: 1}`, `PROJECTION_SIMPLE COLLSCAN`, `{_id: 2}
{_id: 3}`},
	} {
		f := Find{Filter: doc(c.filter), Projection: doc(c.projection)}
		if c.sort != "" {
			f.Sort = doc(c.sort)
		}
		if got := plan(t, db, f); got != c.plan {
			t.Errorf("%s:\ngot  %s\nwant %s", c.filter, got, c.plan)
		}
		if got := strings.TrimSpace(find(t, db, f)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.filter, got, c.want)
		}
	}
	stats, err := db.Explain(context.Background(), ns, Find{Filter: doc(`{a: {$lt: 2}}`), Projection: doc(`{a: 1, _id: 0}`)}, ExecutionStats)
	if err != nil {
		t.Fatal(err)
	}
	if n := stats.Lookup("executionStats", "totalDocsExamined").AsInt64(); n != 0 {
		t.Errorf("%d documents were examined by a query that an index covers", n)
	}
}

// Two indexes have a thousand entries each for the filter; one meets the document that passes with its first, the other with its last.
func TestTrialDecidesWhereEstimatesTie(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		db := open(t)
		for _, name := range order {
			createIndex(t, db, fmt.Sprintf(`{key: {%s: 1}, name: %q}`, name, name))
		}
		var in []bson.Raw
		for i := range 3000 {
			in = append(in, doc(fmt.Sprintf(`{_id: %d, a: %v, b: %v}`, i, i < 1000, i >= 999 && i < 1999)))
		}
		if r, err := db.Insert(context.Background(), ns, in, true); err != nil || r.N != len(in) {
			t.Fatal(r, err)
		}
		want := `LIMIT FETCH IXSCAN(b forward {b: ["[true, true]"]})`
		if got := plan(t, db, Find{Filter: doc(`{a: true, b: true}`), Limit: 1}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		// It is remembered: what a trial would find now does not count.
		if _, err := db.Delete(context.Background(), ns, []Delete{{Filter: doc(`{_id: 999}`)}}, true); err != nil {
			t.Fatal(err)
		}
		insert(t, db, `{_id: 5000, a: true, b: true}`)
		if got := plan(t, db, Find{Filter: doc(`{a: true, b: true}`), Limit: 1}); got != want {
			t.Errorf("again:\ngot  %s\nwant %s", got, want)
		}
	}
}

func TestEntriesAreSiftedBeforeTheFetch(t *testing.T) {
	db := open(t)
	createIndex(t, db, `{key: {a: 1, b: 1}, name: "ab"}`)
	var in []bson.Raw
	for i := range 100 {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, a: %d, b: "s%d", c: %d}`, i, i%10, i, i%2)))
	}
	if _, err := db.Insert(context.Background(), ns, in, true); err != nil {
		t.Fatal(err)
	}
	f := Find{Filter: doc(`{a: 5, b: /5$/, c: 1, $or: [{b: "s15"}, {a: 7}, {b: /^s[67]/}]}`)}
	stats, err := db.Explain(context.Background(), ns, f, ExecutionStats)
	if err != nil {
		t.Fatal(err)
	}
	if n := stats.Lookup("executionStats", "totalDocsExamined").AsInt64(); n != 3 {
		t.Errorf("%d documents were examined, want 3:\n%s", n, value.Text(value.Document(stats)))
	}
	expect(t, find(t, db, f), `{_id: 15, a: 5, b: "s15", c: 1}`, `{_id: 65, a: 5, b: "s65", c: 1}`, `{_id: 75, a: 5, b: "s75", c: 1}`)
}

// A plan that counts on an index without arrays goes on in a collection in which there are some.
func TestCoveredCursorMeetsArrays(t *testing.T) {
	for _, filter := range []string{`{a: {$gt: 0}}`, `{a: {$gt: 0, $mod: [1, 0]}}`} {
		db := open(t)
		ctx := context.Background()
		createIndex(t, db, `{key: {a: 1}, name: "a"}`)
		insert(t, db, `{_id: 1, a: 1}`, `{_id: 2, a: 2}`, `{_id: 3, a: 3}`, `{_id: 4, a: 9}`)
		c, err := db.Find(ctx, ns, Find{Filter: doc(filter), Projection: doc(`{a: 1, _id: 0}`)})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		emit := func(doc bson.Raw) bool { got += value.Text(value.Document(doc)) + " "; return true }
		if _, err := c.Batch(ctx, 2, emit); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Update(ctx, ns, []Update{{Filter: doc(`{_id: 3}`), Update: value.Document(doc(`{$set: {a: [5, 6]}}`))}}, true); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Batch(ctx, 10, emit); err != nil {
			t.Fatal(err)
		}
		if want := "{a: 1} {a: 2} {a: [5, 6]} {a: 9} "; got != want {
			t.Errorf("%s: got %s, want %s", filter, got, want)
		}
	}
}
