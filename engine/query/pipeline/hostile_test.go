package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/engine/value/generate"
)

func TestTablesAreSorted(t *testing.T) {
	for i := 1; i < len(stageTable); i++ {
		if stageTable[i-1].name >= stageTable[i].name {
			t.Errorf("%s stands before %s", stageTable[i-1].name, stageTable[i].name)
		}
	}
	for i := 1; i < len(accumulators); i++ {
		if accumulators[i-1].name >= accumulators[i].name {
			t.Errorf("%s stands before %s", accumulators[i-1].name, accumulators[i].name)
		}
	}
	for i := 1; i < len(windows); i++ {
		if windows[i-1].name >= windows[i].name {
			t.Errorf("%s stands before %s", windows[i-1].name, windows[i].name)
		}
	}
}

// nowhere is a world, a sink and statistics that have nothing.
type nowhere struct{}

func (nowhere) Find(Namespace, Find) (Iterator, error) {
	return Documents([]bson.Raw{value.MustParseDocument("{_id: 1, a: [1, {b: 2}], b: 3}")}), nil
}
func (nowhere) View(ns Namespace) (Namespace, []bson.Raw, error) { return ns, nil, nil }
func (nowhere) Indexed(Namespace, string) bool                   { return false }
func (nowhere) CheckMerge(Namespace, []string) error             { return nil }
func (nowhere) Out(_ Namespace, docs Iterator) error {
	return each(docs, func(bson.Raw) error { return nil })
}
func (nowhere) Merge(_ Namespace, _ []string, doc bson.Raw, f func(bson.Raw) (bson.Raw, error)) error {
	_, err := f(doc)
	return err
}
func (nowhere) Statistics(string, Namespace, bson.RawValue) (Iterator, error) {
	return Documents(nil), nil
}

var optionNames = []string{"_id", "a", "b.c", "from", "as", "localField", "foreignField", "let", "pipeline", "into", "on", "whenMatched", "whenNotMatched", "path",
	"includeArrayIndex", "preserveNullAndEmptyArrays", "newRoot", "groupBy", "boundaries", "default", "output", "buckets", "granularity", "size", "startWith",
	"connectFromField", "connectToField", "maxDepth", "depthField", "restrictSearchWithMatch", "coll", "field", "range", "step", "bounds", "unit", "partitionBy",
	"partitionByFields", "sortBy", "window", "documents", "n", "input", "p", "method", "value", "by", "N", "alpha"}

var optionWords = []string{"$a", "$b", "$a.b", "a", "a.b", "x", "$$ROOT", "full", "partition", "unbounded", "current", "day", "month", "R5", "POWERSOF2", "replace", "merge",
	"insert", "linear", "locf", "approximate"}

type breaker struct {
	*rand.Rand
	g generate.Source
}

func (b breaker) operator() string {
	switch b.IntN(3) {
	case 0:
		return windows[b.IntN(len(windows))].name
	case 1:
		return accumulators[b.IntN(len(accumulators))].name
	}
	return []string{"$add", "$type", "$eq", "$gt", "$in"}[b.IntN(5)]
}

func (b breaker) argument(depth int) bson.RawValue {
	switch b.IntN(9) {
	case 0, 1:
		return value.String(optionWords[b.IntN(len(optionWords))])
	case 2, 3:
		if depth == 0 {
			break
		}
		d := newDocument()
		for _, i := range b.Perm(len(optionNames))[:b.IntN(5)] {
			d.field(optionNames[i], b.argument(depth-1))
		}
		return value.Document(d.raw())
	case 4:
		if depth == 0 {
			break
		}
		d := newDocument()
		d.field(b.operator(), b.argument(depth-1))
		return value.Document(d.raw())
	case 5:
		var list []bson.RawValue
		for range b.IntN(4) {
			if depth > 0 {
				list = append(list, b.argument(depth-1))
			}
		}
		return arrayOf(list)
	case 6:
		return value.Int32(int32(b.IntN(7)) - 1)
	case 7:
		if depth > 0 {
			return value.Document(b.stage(depth - 1))
		}
	}
	return b.g.Value(1)
}

// needs are options without which some stages say nothing but that they are missing.
var needs = map[string]string{
	"$lookup":          `{from: "o", as: "x", localField: "a", foreignField: "b"}`,
	"$graphLookup":     `{from: "o", startWith: "$a", connectFromField: "a", connectToField: "b", as: "x"}`,
	"$bucket":          `{groupBy: "$b", boundaries: [0, 10]}`,
	"$bucketAuto":      `{groupBy: "$b", buckets: 2}`,
	"$setWindowFields": `{sortBy: {b: 1}, output: {x: {$sum: "$b", window: {documents: [-1, 1]}}}}`,
	"$densify":         `{field: "b", range: {step: 1, bounds: [0, 5]}}`,
	"$fill":            `{sortBy: {b: 1}, output: {z: {method: "locf"}}}`,
	"$merge":           `{into: "x"}`,
	"$group":           `{_id: "$a", x: {$sum: "$b"}, y: {$push: "$a"}}`,
	"$match":           `{a: 1, b: {$gt: 0}}`,
	"$project":         `{a: 1, x: "$b"}`,
	"$addFields":       `{x: "$a", "b.c": 1}`,
	"$sort":            `{a: 1, b: -1}`,
	"$facet":           `{x: [{$limit: 1}], y: [{$count: "n"}]}`,
	"$replaceRoot":     `{newRoot: {x: "$a"}}`,
	"$sample":          `{size: 2}`,
	"$unwind":          `{path: "$a", includeArrayIndex: "i"}`,
}

func (b breaker) stage(depth int) bson.Raw {
	s := stageTable[b.IntN(len(stageTable))]
	arg := b.argument(depth)
	if base, ok := needs[s.name]; ok && b.IntN(4) > 0 && depth > 0 {
		d := newDocument()
		for it := value.Elements(value.MustParse(base).Value); it.Next(); {
			v := it.Value()
			if b.IntN(4) == 0 {
				v = b.argument(depth - 1)
			}
			d.field(string(it.Name()), v)
		}
		if b.IntN(2) == 0 {
			d.field(optionNames[b.IntN(len(optionNames))], b.argument(depth-1))
		}
		arg = value.Document(d.raw())
	}
	d := newDocument()
	d.field(s.name, arg)
	return d.raw()
}

// TestNothingBreaksTheStages feeds stages what they do not expect. Every error must have a code, and every document must be one.
func TestNothingBreaksTheStages(t *testing.T) {
	rounds := 40_000
	if testing.Short() {
		rounds = 4_000
	}
	seed := rand.Uint64()
	ran := 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		b := breaker{r, func(n int) int { return r.IntN(n) }}
		var stages []bson.Raw
		for range 1 + r.IntN(3) {
			stages = append(stages, b.stage(4))
		}
		docs := []bson.Raw{b.g.Document(2), value.MustParseDocument("{_id: 1, a: 1, b: 2}"), value.MustParseDocument("{_id: 2, a: [3, {b: 1}], b: 4.5}"), b.g.Document(2)}
		at := func() string { return fmt.Sprintf("seed %d, round %d: %v", seed, round, stages) }
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("%s: panic: %v", at(), p)
				}
			}()
			o := Options{Namespace: Namespace{"db", "c"}, Context: &expr.Context{Rand: r.Uint64}, World: nowhere{}, Sink: nowhere{}, Statistics: nowhere{}}
			p, err := Parse(stages, o)
			if err == nil {
				ran++
				it := p.RunAll(Documents(docs))
				err = each(it, func(doc bson.Raw) error {
					if value.Size(bson.TypeEmbeddedDocument, doc) != len(doc) {
						t.Fatalf("%s: malformed result", at())
					}
					return nil
				})
				if e := it.Close(); e != nil {
					t.Fatalf("%s: closing: %v", at(), e)
				}
			}
			var coded *mongoerr.Error
			if err != nil && !errors.As(err, &coded) {
				t.Fatalf("%s: an error without a code: %v", at(), err)
			}
		}()
	}
	if ran < rounds/20 {
		t.Errorf("only %d of %d were well formed", ran, rounds)
	}
}
