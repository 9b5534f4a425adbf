package match

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
)

// TestTranslationsAgree draws patterns and texts: where a pattern has both translations, both libraries must give one answer.
func TestTranslationsAgree(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"a", "b", "B", "é", ".", "^", "$", `\n`, `\s`, `\w`, `\D`, "[ab]", "[^a]", `[\s\d-]`, "[[:upper:]x]", "(", "(?:", ")", "|", "*", "+?",
		"?", "{2}", "{1,}", `\b`, `\B`, `\A`, `\z`, `\Z`, "(?i)", "(?m)", "(?s:", "(?-i)", `\Qa.\E`, " ", "#b\n", `\x{e9}`, `\pL`, `\h`, `\N`}
	texts := []string{"a", "b", "B", "é", "\n", " ", "_", "-", "1", ".", "K"}
	both, compiled := 0, 0
	for range 25_000 {
		var p, text strings.Builder
		for range 1 + r.IntN(7) {
			p.WriteString(pieces[r.IntN(len(pieces))])
		}
		for range r.IntN(5) {
			text.WriteString(texts[r.IntN(len(texts))])
		}
		options := []string{"", "i", "m", "s", "x", "imsx"}[r.IntN(6)]
		tr, err := translate(p.String(), options)
		if err != nil {
			continue
		}
		compiled++
		back, err := regexp2.Compile(string(tr.net), regexp2.None)
		if err != nil {
			t.Fatalf("seed %d: %q %s is %s: %v", seed, p.String(), options, tr.net, err)
		}
		got, err := newPattern(p.String(), options)
		if err != nil {
			t.Fatalf("seed %d: %q %s: %v", seed, p.String(), options, err)
		}
		want, err := back.MatchString(text.String())
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := got.match([]byte(text.String())); ok != want {
			t.Fatalf("seed %d: %q %s in %q: %v, but %s says %v (RE2: %s)", seed, p.String(), options, text.String(), ok, tr.net, want, tr.re2)
		}
		if !tr.fits {
			continue
		}
		both++
		linear, err := regexp.Compile(string(tr.re2))
		if err != nil {
			t.Fatalf("seed %d: %q %s is %s: %v", seed, p.String(), options, tr.re2, err)
		}
		if ok := linear.MatchString(text.String()); ok != want {
			t.Fatalf("seed %d: %q %s in %q: %s says %v, %s says %v", seed, p.String(), options, text.String(), tr.re2, ok, tr.net, want)
		}
	}
	t.Logf("%d patterns, %d with both translations", compiled, both)
}

func TestPrefix(t *testing.T) {
	for expr, want := range map[string]struct {
		prefix    string
		exact, ok bool
	}{
		"^abc": {"abc", true, true}, "^abc$": {"abc", false, true}, "^ab*": {"a", false, true}, "^ab+c": {"ab", false, true},
		"abc": {"", false, false}, "^a|b": {"a", false, false}, "^(ab)": {"", false, false}, `^a\.b.`: {"a.b", false, true}, `\Aab`: {"ab", true, true},
		"^a?b": {"", false, false}, "(?i)^ab": {"", false, false}, "^ab(?i)c": {"ab", false, true}, "^é": {"é", true, true}, "^*ab": {"", false, false},
		`^\Qa*b\E`: {"a*b", true, true}, "^a{0}b": {"", false, false}, "^": {"", true, false}, "^ab|^cd": {"ab", false, false},
	} {
		re, err := newPattern(expr, "")
		if err != nil {
			t.Fatal(expr, err)
		}
		prefix, exact, ok := (&Regex{re: re}).Prefix()
		if ok != want.ok || ok && (prefix != want.prefix || exact != want.exact) {
			t.Errorf("%s: %q %v %v", expr, prefix, exact, ok)
		}
	}
	for _, options := range []string{"i", "m"} {
		re, _ := newPattern("^ab", options)
		if _, _, ok := (&Regex{re: re}).Prefix(); ok {
			t.Errorf("^ab with %s has a prefix", options)
		}
	}
}
