package match

import (
	"unicode/utf8"
)

// Pattern is a compiled regular expression for those who need to know what it found: $regexFind and its kin.
type Pattern struct{ p *pattern }

// CompilePattern compiles expr in PCRE's language; who is named in errors. The options are those of $regex.
func CompilePattern(who, expr, options string) (*Pattern, error) {
	var p parser
	c, err := p.compile(who, expr, options)
	if err != nil {
		return nil, err
	}
	return &Pattern{c}, nil
}

// Match says whether the pattern is found in text.
func (p *Pattern) Match(text []byte) (bool, error) { return p.p.match(text) }

// Find gives at most n matches (all if n is negative) that do not overlap. A match is pairs of byte offsets: of the whole, then of
// each group; a group that took no part has -1.
func (p *Pattern) Find(text string, n int) ([][]int, error) {
	if p.p.linear != nil {
		return p.p.linear.FindAllStringSubmatchIndex(text, n), nil
	}
	var all [][]int
	m, err := p.p.backtrack.FindStringMatch(text)
	offsets := byteOffsets(text)
	for m != nil && err == nil && len(all) != n {
		var loc []int
		for _, g := range m.Groups() {
			if len(g.Captures) == 0 {
				loc = append(loc, -1, -1)
				continue
			}
			loc = append(loc, offsets[g.Index], offsets[g.Index+g.Length])
		}
		all = append(all, loc)
		m, err = p.p.backtrack.FindNextMatch(m)
	}
	if err != nil {
		return nil, codeRegexGaveUp.Errorf("a regular expression exceeded its match limit of %v on one value", backtrackTime)
	}
	return all, nil
}

// byteOffsets are where the runes of text begin, and its end.
func byteOffsets(text string) []int {
	offsets := make([]int, 0, utf8.RuneCountInString(text)+1)
	for i := range text {
		offsets = append(offsets, i)
	}
	return append(offsets, len(text))
}
