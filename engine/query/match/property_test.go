package match_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

var (
	cases = flag.Int("cases", 120_000, "how many random cases TestAgainstNaive tries")
	seed  = flag.Uint64("seed", 0, "the seed of the random cases; 0 draws one")
)

// TestAgainstNaive compares the filter's answer on random documents with the naive evaluator's.
func TestAgainstNaive(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	g := &generator{rand.New(rand.NewPCG(s, 0))}
	matched := 0
	for range *cases / 10 {
		filter := g.filter(3)
		raw, err := bson.Marshal(filter)
		if err != nil {
			t.Fatal(err)
		}
		f, err := match.Parse(raw, match.Options{})
		if err != nil {
			t.Fatalf("-seed %d: %s: %v", s, text(raw), err)
		}
		again, err := match.Parse(f.Raw(), match.Options{})
		if err != nil {
			t.Fatalf("-seed %d: %s is %s in normal form: %v", s, text(raw), text(f.Raw()), err)
		}
		for range 10 {
			doc := g.document(3)
			rawDoc, err := bson.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Match(rawDoc)
			if err != nil {
				t.Fatalf("-seed %d: %v", s, err)
			}
			if want := naiveFilter(filter, doc); got != want {
				t.Fatalf("-seed %d: filter %s\ndocument %s\ngot %v, want %v", s, text(raw), text(rawDoc), got, want)
			}
			if normal, _ := again.Match(rawDoc); normal != got {
				t.Fatalf("-seed %d: filter %s\nnormal form %s\ndocument %s\ngot %v, want %v", s, text(raw), text(f.Raw()), text(rawDoc), normal, got)
			}
			if got {
				matched++
			}
		}
	}
	if matched < *cases/20 || matched > *cases*19/20 {
		t.Errorf("-seed %d: %d of %d cases match: the cases say little", s, matched, *cases)
	}
}

func parse(s string) bson.Raw { return value.MustParseDocument(s) }

func text(doc bson.Raw) string { return value.Text(value.Document(doc)) }

// generator draws documents and filters from small alphabets, so that they meet.
type generator struct{ *rand.Rand }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) name() string { return pick(g, "a", "a", "b", "c", "0", "1", "longer name") }

func (g *generator) path() string {
	parts := []string{pick(g, "a", "b", "c", "longer name")}
	for g.IntN(5) < 2 && len(parts) < 5 {
		parts = append(parts, g.name())
	}
	return strings.Join(parts, ".")
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

func (g *generator) scalar() any {
	switch g.IntN(14) {
	case 0, 1, 2:
		return int32(g.IntN(4) - 1)
	case 3:
		return pick(g, int64(1), 2, 1<<53+1, math.MinInt64, math.MaxInt64)
	case 4:
		return pick(g, 1, 1.5, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1<<53, -1<<63, 1<<63, 5e-324)
	case 5:
		return decimal(pick(g, "1", "1.50", "-0", "NaN", "Infinity", "-Infinity", "9007199254740993", "9.3E18", "0.1", "1E-6000"))
	case 6, 7:
		return pick(g, "", "a", "ab", "b", "x\ny")
	case 8:
		return nil
	case 9:
		return g.IntN(2) == 0
	case 10:
		return bson.DateTime(g.IntN(3))
	case 11:
		return bson.Regex{Pattern: pick(g, "a", "^a")}
	case 12:
		return bson.Binary{Subtype: byte(g.IntN(2)), Data: pick(g, []byte{}, []byte{1}, []byte{1, 2})}
	}
	return pick[any](g, bson.MinKey{}, bson.MaxKey{})
}

func (g *generator) value(depth int) any {
	switch n := g.IntN(10); {
	case n < 3 && depth > 0:
		a := bson.A{}
		for range g.IntN(4) {
			a = append(a, g.value(depth-1))
		}
		return a
	case n < 5 && depth > 0:
		return g.document(depth - 1)
	}
	return g.scalar()
}

func (g *generator) document(depth int) bson.D {
	d := bson.D{}
	for range g.IntN(4) {
		d = append(d, bson.E{Key: g.name(), Value: g.value(depth)})
	}
	return d
}

func (g *generator) filter(depth int) bson.D {
	f := bson.D{}
	for range pick(g, 1, 1, 1, 2, 3) {
		f = append(f, g.clause(depth))
	}
	return f
}

func (g *generator) clause(depth int) bson.E {
	if depth > 0 && g.IntN(4) == 0 {
		var list bson.A
		for range 1 + g.IntN(3) {
			list = append(list, g.filter(depth-1))
		}
		return bson.E{Key: pick(g, "$and", "$or", "$nor"), Value: list}
	}
	if g.IntN(3) == 0 {
		return bson.E{Key: g.path(), Value: g.operand()}
	}
	return bson.E{Key: g.path(), Value: g.operators(depth)}
}

// operand is a value that is no document of operators; the generator's names have no dollars.
func (g *generator) operand() any { return g.value(2) }

// literal is an operand that is not a regular expression.
func (g *generator) literal() any {
	for {
		v := g.operand()
		if _, ok := v.(bson.Regex); !ok {
			return v
		}
	}
}

func (g *generator) operators(depth int) bson.D {
	d := bson.D{}
	for range pick(g, 1, 1, 2) {
		d = append(d, g.operator(depth))
	}
	return d
}

func (g *generator) operator(depth int) bson.E {
	switch op := pick(g, "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$mod", "$size", "$all",
		"$elemMatch", "$elemMatch", "$not", "$bitsAllSet", "$bitsAnyClear", "$regex"); op {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
		return bson.E{Key: op, Value: g.literal()}
	case "$in", "$nin", "$all":
		list := bson.A{}
		for range g.IntN(4) {
			if op == "$all" {
				list = append(list, g.literal())
			} else {
				list = append(list, g.operand())
			}
		}
		if op == "$all" && depth > 0 && g.IntN(3) == 0 {
			list = bson.A{bson.D{g.elemMatch(depth)}, bson.D{g.elemMatch(depth)}}
		}
		return bson.E{Key: op, Value: list}
	case "$exists":
		return bson.E{Key: op, Value: g.IntN(2) == 0}
	case "$type":
		return bson.E{Key: op, Value: pick(g, "int", "double", "array", "object", "null", "string", "number", "minKey")}
	case "$mod":
		return bson.E{Key: op, Value: bson.A{int32(2 + g.IntN(2)), int32(g.IntN(2))}}
	case "$size":
		return bson.E{Key: op, Value: int32(g.IntN(4))}
	case "$bitsAllSet", "$bitsAnyClear":
		return bson.E{Key: op, Value: bson.A{int32(g.IntN(3)), int32(pick(g, 1, 62, 63, 64, 100))}}
	case "$regex":
		return bson.E{Key: op, Value: pick(g, "a", "^a", "b$")}
	case "$not":
		if depth > 0 {
			return bson.E{Key: op, Value: g.operators(depth - 1)}
		}
		return bson.E{Key: op, Value: bson.D{{Key: "$gt", Value: g.literal()}}}
	}
	return g.elemMatch(depth)
}

func (g *generator) elemMatch(depth int) bson.E {
	if depth <= 0 {
		return bson.E{Key: "$elemMatch", Value: bson.D{{Key: "$gte", Value: g.literal()}}}
	}
	if g.IntN(2) == 0 {
		return bson.E{Key: "$elemMatch", Value: g.filter(depth - 1)}
	}
	d := bson.D{}
	for range 1 + g.IntN(2) {
		d = append(d, g.operator(depth-1))
	}
	return bson.E{Key: "$elemMatch", Value: d}
}
