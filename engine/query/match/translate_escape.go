package match

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// span is a run of characters in a class.
type span struct{ lo, hi rune }

// The classes of PCRE2 without UCP: ASCII, except for \h and \v.
var (
	spansDigit = []span{{'0', '9'}}
	spansWord  = []span{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	spansSpace = []span{{'\t', '\r'}, {' ', ' '}}
	spansBlank = []span{{'\t', '\t'}, {' ', ' '}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200a}, {0x202f, 0x202f},
		{0x205f, 0x205f}, {0x3000, 0x3000}}
	spansBreak = []span{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}

	spansPosix = map[string][]span{
		"alnum": {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, "alpha": {{'A', 'Z'}, {'a', 'z'}}, "ascii": {{0, 0x7f}},
		"blank": {{'\t', '\t'}, {' ', ' '}}, "cntrl": {{0, 0x1f}, {0x7f, 0x7f}}, "digit": spansDigit, "graph": {{'!', '~'}},
		"lower": {{'a', 'z'}}, "print": {{' ', '~'}}, "punct": {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, "space": spansSpace,
		"upper": {{'A', 'Z'}}, "word": spansWord, "xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
	}
)

// spansOf are the characters of an escape that is a class; the letter in upper case is the complement.
func spansOf(letter byte) ([]span, bool) {
	var s []span
	switch letter | 0x20 {
	case 'd':
		s = spansDigit
	case 'w':
		s = spansWord
	case 's':
		s = spansSpace
	case 'h':
		s = spansBlank
	case 'v':
		s = spansBreak
	default:
		return nil, false
	}
	if letter < 'a' {
		return complement(s), true
	}
	return s, true
}

// complement is every character that is not in s, which is sorted.
func complement(s []span) (c []span) {
	next := rune(0)
	for _, r := range s {
		if r.lo > next {
			c = append(c, span{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	return append(c, span{next, utf8.MaxRune})
}

// write writes spans as the inside of a class, in a form that both libraries read.
func writeSpans(b *strings.Builder, s []span) {
	for _, r := range s {
		writeClassRune(b, r.lo)
		if r.hi > r.lo {
			b.WriteByte('-')
			writeClassRune(b, r.hi)
		}
	}
}

func writeClassRune(b *strings.Builder, r rune) {
	if r < utf8.RuneSelf && strings.ContainsRune(`\]^-[&~`, r) {
		b.WriteByte('\\')
	}
	b.WriteRune(r)
}

const (
	boundaryNet = `(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))`
	insideNet   = `(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))`
)

// escape reads what follows a backslash outside of a class.
func (t *translator) escape() error {
	if t.pos == len(t.src) {
		return errors.New(`\ at end of pattern`)
	}
	start := t.pos - 1
	c := t.src[t.pos]
	if s, ok := spansOf(c); ok {
		t.pos++
		var b strings.Builder
		writeSpans(&b, s)
		class := "[" + b.String() + "]"
		t.add("(?-i:"+class+")", class, true)
		return nil
	}
	switch c {
	case 'Q':
		t.pos++
		quoted, _, _ := strings.Cut(t.src[t.pos:], `\E`)
		for _, r := range quoted {
			t.literal(r)
		}
		t.pos = min(t.pos+len(quoted)+2, len(t.src))
		return nil
	case 'E':
		t.pos++
		return nil
	case 'b':
		t.pos++
		t.add(`\b`, boundaryNet, false)
		return nil
	case 'B':
		t.pos++
		t.add(`\B`, insideNet, false)
		return nil
	case 'A':
		t.pos++
		t.startOfText(start)
		return nil
	case 'z':
		t.pos++
		t.add(`\z`, `\z`, false)
		return nil
	case 'Z':
		t.pos++
		t.endOfText()
		return nil
	case 'G':
		t.pos++
		t.add(`\A`, `\A`, false)
		return nil
	case 'K':
		t.pos++ // where a match begins does not matter
		t.endAtom()
		return nil
	case 'N':
		t.pos++
		t.add(`[^\n]`, `[^\n]`, true)
		return nil
	case 'R':
		t.pos++
		var b strings.Builder
		writeSpans(&b, spansBreak)
		t.netOnly(`(?>\r\n|[`+b.String()+`])`, true)
		return nil
	case 'p', 'P':
		s, err := t.property()
		if err != nil {
			return err
		}
		t.add(s, s, true)
		return nil
	case 'k':
		t.pos++
		for _, pair := range []string{"<>", "''", "{}"} {
			if t.take(pair[:1]) {
				return t.reference(pair[1:])
			}
		}
		return errors.New(`\k is not followed by a name`)
	case 'g':
		t.pos++
		return t.groupReference()
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end := t.pos
		for end < len(t.src) && end < t.pos+6 && t.src[end] >= '0' && t.src[end] <= '9' {
			end++
		}
		if n, _ := strconv.Atoi(t.src[t.pos:end]); n < 10 || n <= t.groups {
			t.pos = end
			return t.backreference(n)
		}
		if c >= '8' {
			return errors.New("reference to non-existent subpattern")
		}
	}
	r, err := t.character()
	if err != nil {
		return err
	}
	t.literal(r)
	return nil
}

// groupReference reads \g1, \g{1}, \g{-1} and \g{name}.
func (t *translator) groupReference() error {
	s, braced := "", t.take("{")
	if braced {
		var ok bool
		if s, _, ok = strings.Cut(t.src[t.pos:], "}"); !ok {
			return errors.New(`\g is not followed by a group`)
		}
	} else {
		end := t.pos
		for end < len(t.src) && (t.src[end] >= '0' && t.src[end] <= '9' || end == t.pos && t.src[end] == '-') {
			end++
		}
		s = t.src[t.pos:end]
	}
	digits, relative := strings.CutPrefix(s, "-")
	n, ok := decimal(digits)
	switch {
	case !ok && braced && !relative:
		return t.reference("}")
	case !ok:
		return errors.New(`\g is not followed by a group`)
	case relative:
		n = t.groups + 1 - n
	}
	if n < 1 {
		return errors.New("reference to non-existent subpattern")
	}
	t.pos += len(s)
	if braced {
		t.pos++
	}
	return t.backreference(n)
}

// property reads \pL, \p{Greek} and \p{^Lu}, and writes it as both libraries know it.
func (t *translator) property() (string, error) {
	negative := t.src[t.pos] == 'P'
	t.pos++
	var name string
	if t.take("{") {
		var ok bool
		if name, _, ok = strings.Cut(t.src[t.pos:], "}"); !ok {
			return "", errors.New(`malformed \p sequence`)
		}
		t.pos += len(name) + 1
		if rest, ok := strings.CutPrefix(name, "^"); ok {
			name, negative = rest, !negative
		}
	} else if t.pos < len(t.src) {
		name = t.src[t.pos : t.pos+1]
		t.pos++
	}
	for _, c := range []byte(name) {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "", errors.New(`unknown property after \p`)
		}
	}
	if name == "" {
		return "", errors.New(`malformed \p sequence`)
	}
	if negative {
		return `\P{` + name + `}`, nil
	}
	return `\p{` + name + `}`, nil
}

// character reads an escape that stands for one character, in and outside of classes. The position is behind the backslash.
func (t *translator) character() (rune, error) {
	r := t.rune()
	switch r {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'f':
		return '\f', nil
	case 'a':
		return '\a', nil
	case 'e':
		return 0x1b, nil
	case 'c':
		if t.pos == len(t.src) || t.src[t.pos] < ' ' || t.src[t.pos] > '~' {
			return 0, errors.New(`\c must be followed by a printable ASCII character`)
		}
		c := t.src[t.pos]
		t.pos++
		if c >= 'a' && c <= 'z' {
			c -= 0x20
		}
		return rune(c ^ 0x40), nil
	case 'x':
		if t.take("{") {
			return t.number("}", 16)
		}
		return t.digits(2, 16), nil
	case 'o':
		if !t.take("{") {
			return 0, errors.New(`missing opening brace after \o`)
		}
		return t.number("}", 8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		t.pos--
		return t.digits(3, 8), nil
	}
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return 0, fmt.Errorf(`unrecognized character follows \: %c`, r)
	}
	return r, nil
}

// digits reads at most n digits.
func (t *translator) digits(n, base int) rune {
	end := t.pos
	for end < len(t.src) && end < t.pos+n {
		if _, err := strconv.ParseUint(t.src[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	v, _ := strconv.ParseUint(t.src[t.pos:end], base, 32)
	t.pos = end
	return rune(v)
}

func (t *translator) number(end string, base int) (rune, error) {
	s, _, ok := strings.Cut(t.src[t.pos:], end)
	v, err := strconv.ParseUint(s, base, 32)
	if !ok || err != nil || v > utf8.MaxRune || v >= 0xd800 && v < 0xe000 {
		return 0, errors.New("character code point value is too large or malformed")
	}
	t.pos += len(s) + len(end)
	return rune(v), nil
}

// class reads a class behind its opening bracket and writes it as both libraries know it.
func (t *translator) class() (string, error) {
	var b strings.Builder
	b.WriteByte('[')
	if t.take("^") {
		b.WriteByte('^')
	}
	var set []span
	for first := true; ; first = false {
		if t.pos == len(t.src) {
			return "", errors.New("missing terminating ] for character class")
		}
		if !first && t.take("]") {
			break
		}
		more, raw, single, err := t.classItem()
		if err != nil {
			return "", err
		}
		b.WriteString(raw)
		if single && t.peek("-") && !t.peek("-]") {
			dash := t.pos
			t.pos++
			end, _, ok, err := t.classItem()
			switch {
			case err != nil:
				return "", err
			case !ok:
				t.pos = dash // [a-\d]: the hyphen is one
			case end[0].hi < more[0].lo:
				return "", errors.New("range out of order in character class")
			default:
				more = []span{{more[0].lo, end[0].hi}}
			}
			if !ok {
				t.pos++
				more = append(slices.Clone(more), span{'-', '-'})
			}
		}
		set = append(set, more...)
	}
	writeSpans(&b, set)
	b.WriteByte(']')
	return b.String(), nil
}

// classItem reads one item of a class: a character (single), a set, or a property (raw).
func (t *translator) classItem() (set []span, raw string, single bool, err error) {
	if t.pos == len(t.src) {
		return nil, "", false, errors.New("missing terminating ] for character class")
	}
	if t.peek("[:") {
		if name, _, ok := strings.Cut(t.src[t.pos+2:], ":]"); ok && !strings.ContainsAny(name, `]\`) {
			t.pos += len(name) + 4
			name, negative := strings.CutPrefix(name, "^")
			set, ok := spansPosix[name]
			if !ok {
				return nil, "", false, errors.New("unknown POSIX class name")
			}
			if negative {
				set = complement(set)
			}
			return set, "", false, nil
		}
	}
	r := t.rune()
	if r != '\\' {
		return []span{{r, r}}, "", true, nil
	}
	if t.pos == len(t.src) {
		return nil, "", false, errors.New(`\ at end of pattern`)
	}
	c := t.src[t.pos]
	if set, ok := spansOf(c); ok {
		t.pos++
		return set, "", false, nil
	}
	switch c {
	case 'p', 'P':
		raw, err := t.property()
		return nil, raw, false, err
	case 'b':
		t.pos++
		return []span{{'\b', '\b'}}, "", true, nil
	case 'Q', 'E':
		t.pos++
		return nil, "", false, errors.New(`\Q and \E in a character class are not supported`)
	}
	if r, err = t.character(); err != nil {
		return nil, "", false, err
	}
	return []span{{r, r}}, "", true, nil
}
