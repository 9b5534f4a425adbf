package collation

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt: "sort COLLATION" puts the words below in order, with = between those that are equal; "parse COLLATION"
// gives it with all its fields, or its error.
func TestScripts(t *testing.T) {
	script.Run(t, func(t *testing.T, q script.Case) string {
		command, arg, _ := strings.Cut(q.Lines[0], " ")
		c, err := Parse(value.MustParseDocument(arg))
		switch {
		case err != nil:
			return err.Error()
		case command == "parse" && c == nil:
			return "simple"
		case command == "parse":
			return value.Brief(value.Document(c.Raw()), 1000)
		}
		words := strings.Fields(strings.Join(q.Lines[1:], " "))
		compare := func(a, b string) int { return c.Compare([]byte(a), []byte(b)) }
		slices.SortStableFunc(words, compare)
		var out strings.Builder
		for i, w := range words {
			switch {
			case i == 0:
			case compare(words[i-1], w) == 0:
				out.WriteString(" = ")
			default:
				out.WriteString(" ")
			}
			out.WriteString(w)
		}
		return out.String()
	})
}

// TestKeysOrderTexts: comparing is an order, and keys say the same wherever they stand.
func TestKeysOrderTexts(t *testing.T) {
	locales := strings.Fields(plain)
	rapid.Check(t, func(t *rapid.T) {
		spec := value.MustParseDocument("{locale: '" + rapid.SampledFrom(locales).Draw(t, "locale") + "', strength: " +
			rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "strength") + ", caseLevel: " +
			rapid.SampledFrom([]string{"true", "false"}).Draw(t, "caseLevel") + ", numericOrdering: " +
			rapid.SampledFrom([]string{"true", "false"}).Draw(t, "numeric") + ", alternate: " +
			rapid.SampledFrom([]string{"'shifted'", "'non-ignorable'"}).Draw(t, "alternate") + "}")
		c, err := Parse(spec)
		if mongoerr.Is(err, mongoerr.NotImplemented) {
			t.Skip(err.Error()) // a combination that is refused; another is drawn
		}
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom([]rune("aAáÁbB1290 -ßçǆéèñ.\x00あア漢й")), 0, 8, -1),
			rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }))
		a, b := []byte(text.Draw(t, "a")), []byte(text.Draw(t, "b"))
		d := c.Compare(a, b)
		if d != -c.Compare(b, a) {
			t.Fatalf("%q and %q: %d one way, %d the other", a, b, d, c.Compare(b, a))
		}
		if k := bytes.Compare(c.AppendKey(nil, a), c.AppendKey([]byte("x"), b)[1:]); k != d {
			t.Fatalf("%q and %q compare as %d, their keys as %d", a, b, d, k)
		}
		if c.fields.strength == identical && d == 0 && utf8.Valid(a) && utf8.Valid(b) && norm.NFD.String(string(a)) != norm.NFD.String(string(b)) {
			t.Fatalf("%q and %q are equal at strength 5", a, b)
		}
	})
}

func TestKeysAreMadeByManyAtOnce(t *testing.T) {
	c, err := Parse(value.MustParseDocument(`{locale: "en", strength: 1, caseLevel: true}`))
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"Résumé", "resume", "naïve", "日本", "", "x-1"}
	want := make([][]byte, len(texts))
	for i, s := range texts {
		want[i] = c.AppendKey(nil, []byte(s))
	}
	done := make(chan bool)
	for range 20 {
		go func() {
			ok := true
			for i := range 300 {
				s := texts[i%len(texts)]
				ok = ok && bytes.Equal(c.AppendKey(nil, []byte(s)), want[i%len(texts)])
			}
			done <- ok
		}()
	}
	for range 20 {
		if !<-done {
			t.Error("a key is another one if others are made at the same time")
		}
	}
}
