package update_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/engine/value/generate"
)

func parse(t testing.TB, spec string) *update.Update {
	u, err := update.Parse(value.MustParse(spec), update.Options{Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestResultsAreHeldToTheLargestSize(t *testing.T) {
	doc := value.MustParseDocument(`{_id: 1, a: "` + strings.Repeat("x", value.SizeMax-40) + `"}`)
	before := bytes.Clone(doc)
	if _, _, err := parse(t, `{$set: {b: "`+strings.Repeat("y", 100)+`"}}`).Apply(doc,
		update.Context{}); !mongoerr.Is(err, mongoerr.LocationTransformedTooLarge) {
		t.Error(err)
	}
	if _, changed, err := parse(t, `{$set: {b: "y"}}`).Apply(doc, update.Context{}); err != nil || !changed {
		t.Error(err)
	}
	if !bytes.Equal(doc, before) {
		t.Error("the old document was written to")
	}
}

func TestResultsAreHeldToTheDeepestNesting(t *testing.T) {
	path := func(parts int) string { return strings.Repeat("a.", parts-1) + "a" }
	deep := func(levels int) string { return strings.Repeat("{a: ", levels) + "1" + strings.Repeat("}", levels) }
	if _, err := update.Parse(value.MustParse("{$set: {'"+path(value.DepthMax)+"': 1}}"), update.Options{}); err != nil {
		t.Error(err)
	}
	for _, spec := range []string{
		"{$set: {'" + path(value.DepthMax+1) + "': 1}}",
		"{$set: {'" + path(100) + "': " + deep(81) + "}}",
	} {
		if _, err := update.Parse(value.MustParse(spec), update.Options{}); !mongoerr.Is(err, mongoerr.Overflow) {
			t.Errorf("%.80s: %v", spec, err)
		}
	}
	u := parse(t, "{$rename: {b: '"+path(100)+"'}}")
	if _, _, err := u.Apply(value.MustParseDocument("{b: "+deep(81)+"}"), update.Context{}); !mongoerr.Is(err, mongoerr.Overflow) {
		t.Error(err)
	}
}

func TestPipelineIsTheHooks(t *testing.T) {
	u, err := update.Parse(value.MustParse("[{$set: {a: 1}}]"), update.Options{Pipeline: func(stages bson.Raw) (update.Transform, error) {
		return func(doc bson.Raw) (bson.Raw, error) { return value.MustParseDocument("{a: 1}"), nil }, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	doc, changed, err := u.Apply(value.MustParseDocument("{_id: 5}"), update.Context{})
	if err != nil || !changed || value.Text(value.Document(doc)) != "{_id: 5, a: 1}" {
		t.Fatal(value.Text(value.Document(doc)), err)
	}
}

var errModel = errors.New("refused")

// place applies f at a path of a decoded document, as the manual says: documents and array positions on the way are made if f makes
// something, a removed element becomes null.
func place(v any, exists bool, path []string, f func(any, bool) (any, bool, error)) (any, bool, error) {
	if len(path) == 0 {
		return f(v, exists)
	}
	if !exists {
		v = bson.D{}
	}
	switch w := v.(type) {
	case bson.D:
		i := slices.IndexFunc(w, func(e bson.E) bool { return e.Key == path[0] })
		var old any
		if i >= 0 {
			old = w[i].Value
		}
		made, ok, err := place(old, i >= 0, path[1:], f)
		w = slices.Clone(w)
		switch {
		case err != nil:
			return nil, false, err
		case ok && i >= 0:
			w[i].Value = made
		case ok:
			w = append(w, bson.E{Key: path[0], Value: made})
		case i >= 0:
			w = slices.Delete(w, i, i+1)
		default:
			return v, exists, nil
		}
		return w, true, nil
	case bson.A:
		i, err := strconv.Atoi(path[0])
		in := err == nil && i < len(w)
		var old any
		if in {
			old = w[i]
		}
		made, ok, err2 := place(old, in, path[1:], f)
		switch {
		case err2 != nil:
			return nil, false, err2
		case err != nil && ok:
			return nil, false, errModel
		case !ok && in:
			made = nil
		case !ok:
			return v, true, nil
		}
		w = slices.Clone(w)
		for len(w) <= i {
			w = append(w, nil)
		}
		w[i] = made
		return w, true, nil
	}
	if _, ok, err := place(nil, false, path, f); err != nil || !ok {
		return v, true, err
	}
	return nil, false, errModel
}

// TestOperatorsAgreeWithModel compares single operators with a model on decoded documents, which shares no code with them.
func TestOperatorsAgreeWithModel(t *testing.T) {
	seed := rand.Uint64()
	s := generate.Source(rand.New(rand.NewPCG(seed, 0)).IntN)
	paths := []string{"a", "b", "a.b", "a.0", "a.1.b", "b.a", "a.b.c", "b.3", "c.0.0"}
	models := map[string]func(arg any) func(old any, exists bool) (any, bool, error){
		"$set": func(arg any) func(any, bool) (any, bool, error) {
			return func(any, bool) (any, bool, error) { return arg, true, nil }
		},
		"$unset": func(any) func(any, bool) (any, bool, error) {
			return func(any, bool) (any, bool, error) { return nil, false, nil }
		},
		"$push": func(arg any) func(any, bool) (any, bool, error) {
			return func(old any, exists bool) (any, bool, error) {
				if !exists {
					return bson.A{arg}, true, nil
				}
				if a, ok := old.(bson.A); ok {
					return append(slices.Clone(a), arg), true, nil
				}
				return nil, false, errModel
			}
		},
		"$pop": func(any) func(any, bool) (any, bool, error) {
			return func(old any, exists bool) (any, bool, error) {
				if !exists {
					return nil, false, nil
				}
				a, ok := old.(bson.A)
				if !ok {
					return nil, false, errModel
				}
				return slices.Clone(a)[:max(len(a)-1, 0)], true, nil
			}
		},
		"$inc": func(any) func(any, bool) (any, bool, error) {
			return func(old any, exists bool) (any, bool, error) {
				switch n := old.(type) {
				case int32:
					return n + 1, true, nil
				case int64:
					return n + 1, true, nil
				case float64:
					return n + 1, true, nil
				}
				if exists {
					return nil, false, errModel
				}
				return int32(1), true, nil
			}
		},
	}
	ops := []string{"$set", "$unset", "$push", "$pop", "$inc"}
	refused, changes := 0, 0
	const rounds = 30000
	for range rounds {
		doc := document(s)
		path, op, arg := paths[s(len(paths))], ops[s(len(ops))], value.At(document(s), s(4))
		if arg.Type == 0 {
			arg = value.Null
		}
		if op == "$pop" || op == "$inc" {
			arg = value.Int32(1)
		}
		one := bson.D{{Key: op, Value: bson.D{{Key: path, Value: arg}}}}
		if op == "$push" {
			one = bson.D{{Key: op, Value: bson.D{{Key: path, Value: bson.D{{Key: "$each", Value: bson.A{arg}}}}}}}
		}
		spec, err := bson.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(doc)
		u, err := update.Parse(value.Document(spec), update.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, changed, err := u.Apply(doc, update.Context{Positional: -1})
		var d bson.D
		if err := bson.Unmarshal(doc, &d); err != nil {
			t.Fatal(err)
		}
		var goArg any
		if err := arg.Unmarshal(&goArg); err != nil {
			t.Fatal(err)
		}
		story := func() string {
			return fmt.Sprintf("seed %d: %s of %s: %s, %v", seed, value.Text(value.Document(spec)),
				value.Text(value.Document(before)), value.Text(value.Document(got)), err)
		}
		want, _, wantErr := place(d, true, strings.Split(path, "."), models[op](goArg))
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%s; the model: %v", story(), wantErr)
		}
		if !bytes.Equal(doc, before) {
			t.Fatalf("%s: the old document was written to", story())
		}
		if err != nil {
			refused++
			continue
		}
		raw, err := bson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if value.Text(value.Document(raw)) != value.Text(value.Document(got)) || changed == bytes.Equal(got, before) ||
			value.Validate(got) != nil {
			t.Fatalf("%s, changed %v; the model: %s", story(), changed, value.Text(value.Document(raw)))
		}
		if changed {
			changes++
		}
	}
	if refused < rounds/100 || changes < rounds/10 {
		t.Errorf("only %d refused and %d changed of %d", refused, changes, rounds)
	}
}

// document is one whose fields are distinct and whose numbers decode to themselves.
func document(s generate.Source) bson.Raw {
	var make func(depth int) any
	make = func(depth int) any {
		switch n := s(8); {
		case n < 2 || depth == 0 && n > 4:
			return int32(s(3))
		case n == 2:
			return int64(s(3))
		case n == 3:
			return "x"
		case n == 4:
			return nil
		case n < 7:
			d := bson.D{}
			for _, name := range []string{"a", "b", "c", "0"} {
				if s(2) == 0 {
					d = append(d, bson.E{Key: name, Value: make(depth - 1)})
				}
			}
			return d
		}
		a := bson.A{}
		for range s(4) {
			a = append(a, make(depth-1))
		}
		return a
	}
	raw, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: make(3)}, {Key: "b", Value: make(3)},
		{Key: "c", Value: make(2)}}[:1+s(4)])
	if err != nil {
		panic(err)
	}
	return raw
}

// TestAnyUpdateIsRefusedOrApplied throws generated documents at the parser: nothing panics, and what comes out is sound.
func TestAnyUpdateIsRefusedOrApplied(t *testing.T) {
	seed := rand.Uint64()
	s := generate.Source(rand.New(rand.NewPCG(seed, 0)).IntN)
	ops := []string{"$addToSet", "$bit", "$currentDate", "$inc", "$max", "$min", "$mul", "$pop", "$pull", "$pullAll",
		"$push", "$rename", "$set", "$setOnInsert", "$unset"}
	paths := []string{"a", "b", "a.b", "a.0", "a.$", "a.$[]", "a.$[x]", "a.$[].b", "_id", "c", "a.b.0", ""}
	applied := 0
	for range 20000 {
		var spec bson.D
		for range 1 + s(3) {
			arg := any(s.Value(2))
			switch s(8) {
			case 0:
				arg = bson.D{{Key: "$each", Value: s.Array(2)}, {Key: []string{"$slice", "$sort", "$position"}[s(3)], Value: s.Number()}}
			case 1:
				arg = "b"
			case 2:
				arg = s.Array(2)
			case 3:
				arg = 1
			}
			spec = append(spec, bson.E{Key: ops[s(len(ops))], Value: bson.D{{Key: paths[s(len(paths))], Value: arg}}})
		}
		raw, err := bson.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		opts := update.Options{Filter: filter}
		if strings.Contains(value.Text(value.Document(raw)), "$[x]") {
			opts.ArrayFilters = []bson.Raw{value.MustParseDocument("{x: {$ne: 1}}")}
		}
		u, err := update.Parse(value.Document(raw), opts)
		if err != nil {
			if mongoerr.From(err).Code == mongoerr.InternalError {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		doc := s.Document(3)
		before := bytes.Clone(doc)
		got, changed, err := u.Apply(doc, update.Context{Positional: s(4) - 1})
		if err == nil {
			applied++
		}
		if err == nil && (changed == bytes.Equal(got, doc) || value.Validate(got) != nil ||
			!value.Identical(value.Lookup(doc, "_id"), value.Lookup(got, "_id")) &&
				value.Lookup(doc, "_id").Type != 0) || !bytes.Equal(doc, before) || err != nil && mongoerr.From(err).Code == mongoerr.InternalError {
			t.Fatalf("seed %d: %s of %s: %s, %v, %v", seed, value.Text(value.Document(raw)),
				value.Text(value.Document(before)), value.Text(value.Document(got)), changed, err)
		}
		if made, err := u.Make(doc, update.Context{}); err == nil && value.Validate(made) != nil {
			t.Fatalf("seed %d: made % x", seed, []byte(made))
		}
	}
	if applied < 1000 {
		t.Errorf("only %d applied", applied)
	}
}

func BenchmarkApply(b *testing.B) {
	doc := value.MustParseDocument(`{_id: 1, pad: "` + strings.Repeat("x", 900) + `", n: 1, s: {a: 1, b: [1, 2, 3]}}`)
	for _, spec := range []string{"{$inc: {n: 1}}", "{$set: {n: 2, 's.a': 5}}", "{$push: {'s.b': 4}}", "{n: 1}"} {
		u := parse(b, spec)
		b.Run(spec, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := u.Apply(doc, update.Context{Positional: -1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
