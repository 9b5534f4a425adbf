package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// TestOptimisedPipelinesGiveTheSame runs random pipelines over random documents as they are written, and optimised with the prefix in a
// find.
func TestOptimisedPipelinesGiveTheSame(t *testing.T) {
	rounds := 4000
	if testing.Short() {
		rounds = 400
	}
	seed := rand.Uint64()
	for round := range rounds {
		r := generator{rand.New(rand.NewPCG(seed, uint64(round)))}
		w := &world{collections: map[string][]bson.Raw{}, views: map[string]view{}}
		for _, name := range []string{"c", "o"} {
			for range r.IntN(12) {
				w.collections[name] = append(w.collections[name], value.MustParseDocument(r.document(2)))
			}
		}
		w.indexed = r.IntN(2) == 0
		var stages []string
		for range 1 + r.IntN(5) {
			stages = append(stages, r.stage())
		}
		text := "[" + strings.Join(stages, ", ") + "]"
		list := split(t, text)
		o := w.options()
		o.Plain = true
		want, err1 := w.run(list, o)
		got, err2 := w.run(list, w.options())
		// Moving a condition forward may spare a document that another stage would have failed on.
		if err1 != nil {
			continue
		}
		if err2 != nil || lines(want) != lines(got) {
			t.Fatalf("seed %d, round %d: %s\nover %s\nas written:\n%s\noptimised, %v:\n%s", seed, round, text, lines(w.collections["c"]), lines(want), err2, lines(got))
		}
	}
}

type generator struct{ *rand.Rand }

func (r generator) one(of ...string) string { return of[r.IntN(len(of))] }

func (r generator) name() string { return r.one("a", "b", "c") }

func (r generator) path() string {
	if r.IntN(3) == 0 {
		return r.name() + "." + r.name()
	}
	return r.name()
}

func (r generator) scalar() string { return r.one("0", "1", "2", "1.0", "null", `"x"`, `"y"`, "true") }

func (r generator) value(depth int) string {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		return r.document(depth - 1)
	case n == 1 && depth > 0:
		var list []string
		for range r.IntN(4) {
			list = append(list, r.value(depth-1))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	return r.scalar()
}

func (r generator) document(depth int) string {
	var fields []string
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(3) > 0 {
			fields = append(fields, name+": "+r.value(depth))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (r generator) filter() string {
	test := func() string {
		p := r.path()
		return r.one(
			fmt.Sprintf("{%q: %s}", p, r.scalar()),
			fmt.Sprintf("{%q: {$gt: %s}}", p, r.scalar()),
			fmt.Sprintf("{%q: {$ne: %s}}", p, r.scalar()),
			fmt.Sprintf("{%q: {$exists: %s}}", p, r.one("true", "false")),
			fmt.Sprintf("{%q: {$in: [%s, %s]}}", p, r.scalar(), r.scalar()),
			fmt.Sprintf("{%q: {$elemMatch: {%s: %s}}}", p, r.name(), r.scalar()),
			fmt.Sprintf("{$expr: {$eq: [\"$%s\", %s]}}", p, r.scalar()),
			fmt.Sprintf("{$or: [{%q: %s}, {%q: %s}]}", p, r.scalar(), r.path(), r.scalar()))
	}
	if r.IntN(3) == 0 {
		return "{$and: [" + test() + ", " + test() + "]}"
	}
	return test()
}

func (r generator) expression() string {
	return r.one(`"$`+r.path()+`"`, r.scalar(), fmt.Sprintf(`{$ifNull: ["$%s", %s]}`, r.path(), r.scalar()), fmt.Sprintf(`{$type: "$%s"}`, r.path()),
		fmt.Sprintf(`{$cond: [{$gt: ["$%s", %s]}, "$%s", "$$REMOVE"]}`, r.path(), r.scalar(), r.path()))
}

func (r generator) stage() string {
	switch r.IntN(19) {
	case 0, 1, 2, 3:
		return "{$match: " + r.filter() + "}"
	case 4:
		return fmt.Sprintf("{$sort: {%s: %s, %q: 1}}", r.name(), r.one("1", "-1"), r.name()+".z")
	case 5:
		return fmt.Sprintf("{$skip: %d}", r.IntN(4))
	case 6:
		return fmt.Sprintf("{$limit: %d}", 1+r.IntN(8))
	case 7:
		return fmt.Sprintf("{$addFields: {%q: %s}}", r.path(), r.expression())
	case 8:
		return fmt.Sprintf("{$project: {%q: 1}}", r.path())
	case 9:
		return fmt.Sprintf("{$project: {%q: 0}}", r.path())
	case 10:
		return fmt.Sprintf("{$project: {a: 1, b: %s}}", r.expression())
	case 11:
		return fmt.Sprintf("{$unwind: {path: \"$%s\", preserveNullAndEmptyArrays: %s%s}}", r.path(), r.one("true", "false"), r.one("", `, includeArrayIndex: "c"`))
	case 12:
		return fmt.Sprintf("{$group: {_id: %s, a: {$push: %s}, b: {$first: %s}, c: {$sum: 1}}}", r.expression(), r.expression(), r.expression())
	case 13:
		return fmt.Sprintf("{$lookup: {from: \"o\", localField: %q, foreignField: %q, as: %q}}", r.path(), r.path(), r.path())
	case 14:
		return fmt.Sprintf("{$lookup: {from: \"o\", localField: %q, foreignField: %q, as: %q, let: {v: \"$%s\"}, pipeline: [{$match: {$expr: {%s: [\"$%s\", \"$$v\"]}}}, %s]}}",
			r.path(), r.path(), r.name(), r.path(), r.one("$gte", "$eq", "$eq"), r.path(), r.one("{$limit: 2}", "{$project: {a: 1}}", "{$match: "+r.filter()+"}"))
	}
	switch r.IntN(3) {
	case 0: // a $lookup that takes in a $unwind
		p := r.path()
		return fmt.Sprintf("{$lookup: {from: \"o\", localField: %q, foreignField: %q, as: %q}}, {$unwind: {path: \"$%s\", preserveNullAndEmptyArrays: %s%s}}",
			r.path(), r.path(), p, p, r.one("true", "false"), r.one("", `, includeArrayIndex: "c"`))
	case 1: // a condition on groups that moves before them
		return fmt.Sprintf("{$group: {_id: \"$%s\", a: {$sum: 1}}}, {$match: {_id: %s, a: {$gte: %s}}}", r.path(),
			r.one(r.scalar(), "{$gt: "+r.scalar()+"}", "{$in: ["+r.scalar()+", "+r.scalar()+"]}", "{$exists: true}", "{$ne: "+r.scalar()+"}"), r.one("0", "1", "2"))
	}
	return fmt.Sprintf("{$replaceWith: {a: %s, b: \"$$ROOT\"}}", r.expression())
}
