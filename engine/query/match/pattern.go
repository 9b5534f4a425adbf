package match

import (
	"bytes"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// Patterns are written in the language of PCRE2 with UTF on and ASCII classes, as MongoDB compiles them. Neither library at hand
// speaks it, so translate reads a pattern and writes it anew for RE2 (package regexp, linear time) and for regexp2
// (backtracking). The first is used wherever it means the same; lookaround, backreferences, atomic groups and a few corners of ^ and $
// need the second.

const (
	// linearMax bounds the weight of a pattern for RE2, which unrolls repetitions.
	linearMax = 20_000
	// backtrackTime is how long one match may take in the backtracking library.
	backtrackTime = time.Second
	// codeRegexGaveUp is MongoDB's for a match that exceeds PCRE's limits.
	codeRegexGaveUp mongoerr.Code = 51156
)

// pattern is a compiled regular expression. Only the question whether it is found in a text is asked of it.
type pattern struct {
	linear    *regexp.Regexp
	backtrack *regexp2.Regexp // if linear is nil

	anchored bool   // every match begins at the start of the text ...
	prefix   string // ... with this
	exact    bool   // and everything that begins so matches

	weight int // about how many instructions it has
}

func newPattern(expr, options string) (*pattern, error) {
	t, err := translate(expr, options)
	if err != nil {
		return nil, err
	}
	p := &pattern{anchored: t.anchored, prefix: string(t.prefix), exact: t.anchored && t.prefixOpen, weight: int(min(t.weight(), linearMax)) + 100}
	if t.fits && t.weight() <= linearMax {
		if p.linear, err = regexp.Compile(string(t.re2)); err == nil {
			return p, nil
		}
	}
	if p.backtrack, err = regexp2.Compile(string(t.net), regexp2.None); err != nil {
		return nil, err
	}
	p.weight = len(t.net) + 100
	p.backtrack.MatchTimeout = backtrackTime
	return p, nil
}

func (p *pattern) match(text []byte) (bool, error) {
	if p.exact {
		return bytes.HasPrefix(text, []byte(p.prefix)), nil
	}
	if p.linear != nil {
		return p.linear.Match(text), nil
	}
	ok, err := p.backtrack.MatchString(string(text))
	if err != nil {
		return false, codeRegexGaveUp.Errorf("a regular expression exceeded its match limit of %v on one value", backtrackTime)
	}
	return ok, nil
}
