package expr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/engine/value/generate"
)

func TestTheTableIsSorted(t *testing.T) {
	for i := 1; i < len(operators); i++ {
		if operators[i-1].name >= operators[i].name {
			t.Errorf("%s stands before %s", operators[i-1].name, operators[i].name)
		}
	}
}

// argumentNames are those that operators name.
var argumentNames = []string{"input", "in", "cond", "as", "initialValue", "n", "sortBy", "date", "format", "timezone", "dateString", "startDate", "endDate", "unit",
	"amount", "binSize", "startOfWeek", "year", "month", "day", "hour", "isoWeekYear", "isoWeek", "to", "onError", "onNull", "regex", "options", "find", "replacement", "chars",
	"field", "value", "vars", "branches", "default", "inputs", "defaults", "useLongestLength", "p", "method", "if", "then", "else", "limit", "iso8601", "case"}

// words are strings that mean something to an operator.
var words = []string{"$a", "$b", "$a.b", "$$ROOT", "$$NOW", "$$this", "$$value", "day", "month", "week", "approximate", "UTC", "America/New_York", "+05:30", "%Y-%m-%d",
	"2024-02-29T12:00:00Z", "int", "string", "date", "a+(b)?", "i", "monday", "12", "x"}

type breaker struct {
	*rand.Rand
	g generate.Source
}

func (b breaker) argument(depth int) bson.RawValue {
	switch b.IntN(8) {
	case 0, 1:
		return value.String(words[b.IntN(len(words))])
	case 2:
		if depth > 0 {
			var list []bson.RawValue
			for range b.IntN(5) {
				list = append(list, b.argument(depth-1))
			}
			v, _ := arrayOf(list)
			return v
		}
	case 3:
		if depth > 0 {
			return b.expression(depth - 1)
		}
	case 4:
		return value.Int32(int32(b.IntN(7)) - 2)
	case 5:
		return value.Date(b.Int64())
	}
	return b.g.Value(2)
}

func (b breaker) expression(depth int) bson.RawValue {
	o := operators[b.IntN(len(operators))]
	d := newDocument()
	arg := b.argument(depth)
	if b.IntN(2) == 0 {
		named := newDocument()
		for _, i := range b.Perm(len(argumentNames))[:b.IntN(4)] {
			named.field(argumentNames[i], b.argument(depth))
		}
		arg, _ = named.done()
	} else if b.IntN(2) == 0 {
		var list []bson.RawValue
		for range max(o.min, 1) + b.IntN(2) {
			list = append(list, b.argument(depth))
		}
		arg, _ = arrayOf(list)
	}
	d.field(o.name, arg)
	v, _ := d.done()
	return v
}

// TestNothingBreaksTheOperators feeds operators what they do not expect. Every error must have a code, and every value must be one.
func TestNothingBreaksTheOperators(t *testing.T) {
	rounds := 60_000
	if testing.Short() {
		rounds = 5_000
	}
	seed := rand.Uint64()
	evaluated := 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		b := breaker{r, func(n int) int { return r.IntN(n) }}
		v := b.expression(3)
		at := func() string { return fmt.Sprintf("seed %d, round %d: %s", seed, round, value.Brief(v, 2000)) }
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("%s: panic: %v", at(), p)
				}
			}()
			e, err := Parse(v, Scope{})
			var result bson.RawValue
			if err == nil {
				doc := newDocument()
				doc.field("a", b.g.Value(3))
				doc.field("b", b.argument(1))
				d, _ := doc.done()
				result, err = e.Eval(&Context{Now: 1e12, Rand: r.Uint64}, bson.Raw(d.Value))
				evaluated++
			}
			var coded *mongoerr.Error
			switch {
			case err != nil && !errors.As(err, &coded):
				t.Fatalf("%s: an error without a code: %v", at(), err)
			case err == nil && result.Type != 0 && value.Size(result.Type, result.Value) != len(result.Value):
				t.Fatalf("%s: malformed result", at())
			}
		}()
	}
	if evaluated < rounds/10 {
		t.Errorf("only %d of %d were well formed", evaluated, rounds)
	}
}

func TestNestingIsBounded(t *testing.T) {
	v := value.Int32(1)
	for range 10_000 {
		d := newDocument()
		d.field("$not", v)
		v, _ = d.done()
	}
	if _, err := Parse(v, Scope{}); !mongoerr.Is(err, mongoerr.Overflow) {
		t.Errorf("10 000 levels: %v", err)
	}
}

func TestGrowthIsBounded(t *testing.T) {
	double := `{$reduce: {input: {$range: [0, 60]}, initialValue: %s, in: {%s: ["$$value", "$$value"]}}}`
	for _, text := range []string{
		fmt.Sprintf(double, `"x"`, "$concat"),
		fmt.Sprintf(double, `[1]`, "$concatArrays"),
		`{$range: [0, 2147483647]}`,
		`{$reduce: {input: {$range: [0, 60]}, initialValue: "x", in: {$replaceAll: {input: "$$value", find: "x", replacement: "xx"}}}}`,
	} {
		e, err := Parse(value.MustParse(text), Scope{})
		if err == nil {
			_, err = e.Eval(&Context{}, emptyDocument)
		}
		if !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestReduceCannotDig(t *testing.T) {
	e, err := Parse(value.MustParse(`{$reduce: {input: {$range: [0, 1000000]}, initialValue: 1, in: ["$$value"]}}`), Scope{})
	if err == nil {
		_, err = e.Eval(&Context{}, emptyDocument)
	}
	if !mongoerr.Is(err, mongoerr.Overflow) {
		t.Errorf("a million levels: %v", err)
	}
}

func TestTickEndsALoop(t *testing.T) {
	e, err := Parse(value.MustParse(`{$map: {input: {$range: [0, 100000]}, in: {$range: [0, 100]}}}`), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	stop := mongoerr.Interrupted.Errorf("killed")
	if _, err := e.Eval(&Context{Tick: func() error { return stop }}, emptyDocument); err != stop {
		t.Errorf("got %v", err)
	}
}

func TestReadsAreThePathsOfTheDocument(t *testing.T) {
	for text, want := range map[string]string{
		`{$add: ["$a", "$b.c", "$$ROOT.d"]}`:                         "a b.c d",
		`{$let: {vars: {x: "$a"}, in: "$$x.y"}}`:                     "a",
		`{$let: {vars: {CURRENT: "$a"}, in: "$y"}}`:                  "a",
		`{$map: {input: "$l", in: {$multiply: ["$$this.p", "$q"]}}}`: "l q",
		`"$$CURRENT"`:                 "all",
		`{$getField: "x"}`:            "x all",
		`{$literal: "$a"}`:            "",
		`{$cond: [true, "$a", "$b"]}`: "a b",
	} {
		e, err := Parse(value.MustParse(text), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		paths, all := e.Reads()
		got := slices.Clone(paths)
		if all {
			got = append(got, "all")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}
