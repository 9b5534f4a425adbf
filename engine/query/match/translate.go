package match

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// translator reads a PCRE2 pattern from left to right and writes two translations side by side.
type translator struct {
	src string
	pos int

	re2, net []byte
	fits     bool // re2 means the same as src

	flags  flags
	stack  []group
	groups int // capturing groups opened so far
	names  map[string]int
	refMax int // the highest group that is referred to

	atom  atom  // what a quantifier would apply to
	sum   int64 // weight of the open group before atom
	caret bool  // a multi-line ^ stands directly before

	anchored   bool
	prefix     []byte
	prefixOpen bool
}

type flags struct{ i, m, s, x, ungreedy bool }

// weightLarge is where weights stop growing: far above all that is allowed, and far enough below the largest number.
const weightLarge int64 = 1 << 40

// atom is the last item of the current branch: where it begins in each translation, 0 width for assertions.
type atom struct {
	ok         bool // there is one
	re2, net   int
	weight     int64
	wide       bool // it consumes at least one character
	afterCaret bool
	literal    int // bytes that it added to the prefix
}

type group struct {
	flags    flags
	re2, net int
	sum      int64
	look     bool
}

func (t *translator) weight() int64 { return t.sum + t.atom.weight }

func translate(src, options string) (*translator, error) {
	t := &translator{src: src, fits: true, names: map[string]int{}}
	for _, o := range options {
		t.setFlag(o, true)
	}
	for _, verb := range []string{"(*UTF8)", "(*UTF)"} {
		if rest, ok := strings.CutPrefix(t.src, verb); ok {
			t.src = rest
		}
	}
	if t.flags.i {
		t.both("(?i)")
	}
	for t.pos < len(t.src) {
		if err := t.item(); err != nil {
			return nil, fmt.Errorf("%w (at byte %d)", err, t.pos)
		}
	}
	switch {
	case len(t.stack) > 0:
		return nil, errors.New("missing closing parenthesis")
	case t.refMax > t.groups:
		return nil, errors.New("reference to non-existent subpattern")
	}
	t.endBranch()
	return t, nil
}

func (t *translator) both(s string) {
	t.re2 = append(t.re2, s...)
	t.net = append(t.net, s...)
}

// add adds an item of one weight.
func (t *translator) add(re2, net string, wide bool) {
	t.begin(wide)
	t.re2 = append(t.re2, re2...)
	t.net = append(t.net, net...)
	t.atom.weight = 1
}

// begin starts a new atom.
func (t *translator) begin(wide bool) {
	t.sum += t.atom.weight
	if t.caret && !wide {
		t.fits = false
	}
	t.atom = atom{ok: true, re2: len(t.re2), net: len(t.net), wide: wide, afterCaret: t.caret}
	t.caret = false
	t.prefixOpen = false
}

// netOnly adds an item that RE2 lacks.
func (t *translator) netOnly(net string, wide bool) {
	t.fits = false
	t.add("", net, wide)
}

func (t *translator) literal(r rune) {
	open := t.prefixOpen
	s := regexp.QuoteMeta(string(r))
	t.add(s, s, true)
	if open && !t.flags.i {
		t.prefix = utf8.AppendRune(t.prefix, r)
		t.atom.literal = utf8.RuneLen(r)
		t.prefixOpen = true
	}
}

func (t *translator) endBranch() {
	if t.caret {
		t.fits = false
	}
	t.caret = false
	t.sum += t.atom.weight
	t.atom = atom{}
}

func (t *translator) peek(s string) bool { return strings.HasPrefix(t.src[t.pos:], s) }

func (t *translator) take(s string) bool {
	if t.peek(s) {
		t.pos += len(s)
		return true
	}
	return false
}

func (t *translator) rune() rune {
	r, n := utf8.DecodeRuneInString(t.src[t.pos:])
	t.pos += n
	return r
}

func (t *translator) item() error {
	start := t.pos
	switch r := t.rune(); r {
	case '\\':
		return t.escape()
	case '[':
		c, err := t.class()
		if err != nil {
			return err
		}
		t.add(c, c, true)
	case '(':
		return t.open()
	case ')':
		return t.close()
	case '|':
		if len(t.stack) == 0 {
			t.anchored = false
		}
		t.endBranch()
		t.prefixOpen = false
		t.both("|")
	case '.':
		if t.flags.s {
			t.add("(?s:.)", `[\s\S]`, true)
		} else {
			t.add(`[^\n]`, `[^\n]`, true)
		}
	case '^':
		if t.flags.m {
			t.endAtom()
			t.both("(?:")
			t.re2 = append(t.re2, "(?m:^)"...)
			t.net = append(t.net, `\A|(?<=\n)(?!\z)`...)
			t.both(")")
			t.caret = true
			return nil
		}
		t.startOfText(start)
	case '$':
		t.dollar()
	case '*', '+', '?':
		return t.quantify(map[rune]int{'*': 0, '+': 1, '?': 0}[r], map[rune]int{'*': -1, '+': -1, '?': 1}[r])
	case '{':
		if lo, hi, n := bounds(t.src[start:]); n > 0 {
			t.pos = start + n
			if lo > 65535 || hi > 65535 {
				return errors.New("number too big in {} quantifier")
			}
			if hi >= 0 && lo > hi {
				return errors.New("numbers out of order in {} quantifier")
			}
			return t.quantify(lo, hi)
		}
		t.literal(r)
	default:
		if t.flags.x && strings.ContainsRune(" \t\n\v\f\r", r) {
			return nil
		}
		if t.flags.x && r == '#' {
			if i := strings.IndexByte(t.src[t.pos:], '\n'); i >= 0 {
				t.pos += i + 1
			} else {
				t.pos = len(t.src)
			}
			return nil
		}
		t.literal(r)
	}
	return nil
}

// endAtom closes the current item without beginning one that can be quantified.
func (t *translator) endAtom() {
	t.sum += t.atom.weight
	t.atom = atom{}
	t.prefixOpen = false
}

func (t *translator) startOfText(start int) {
	first := start == 0 && len(t.stack) == 0
	t.add(`\A`, `\A`, false)
	if first {
		t.anchored, t.prefixOpen = true, true
	}
}

// dollar is $ and \Z: before a line's end, or the text's. RE2 has no look ahead, so it must consume the newline, which does no harm where
// nothing can follow.
func (t *translator) dollar() {
	if t.flags.m {
		t.add("(?m:$)", `(?=\n|\z)`, false)
		return
	}
	t.endOfText()
}

func (t *translator) endOfText() {
	rest := t.src[t.pos:]
	if trimmed := strings.TrimLeft(rest, ")"); trimmed != "" && !(len(t.stack) == 0 && trimmed[0] == '|') || t.looking() {
		t.fits = false
	}
	t.add(`(?:\n?\z)`, `(?=\n?\z)`, false)
}

func (t *translator) looking() bool {
	for _, g := range t.stack {
		if g.look {
			return true
		}
	}
	return false
}

// bounds reads {n}, {n,} or {n,m} at the start of s; n is its length, 0 if it is none. hi is -1 for no bound.
func bounds(s string) (lo, hi, n int) {
	end := strings.IndexByte(s, '}')
	if end < 0 || end > 20 {
		return 0, 0, 0
	}
	a, b, comma := strings.Cut(s[1:end], ",")
	lo, ok := decimal(a)
	switch {
	case !ok:
		return 0, 0, 0
	case !comma:
		return lo, lo, end + 1
	case b == "":
		return lo, -1, end + 1
	}
	if hi, ok = decimal(b); !ok {
		return 0, 0, 0
	}
	return lo, hi, end + 1
}

func decimal(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// quantify applies {lo,hi} to the last atom.
func (t *translator) quantify(lo, hi int) error {
	if !t.atom.ok {
		return errors.New("quantifier does not follow a repeatable item")
	}
	a := &t.atom
	var q string
	switch {
	case lo == 0 && hi < 0:
		q = "*"
	case lo == 1 && hi < 0:
		q = "+"
	case lo == 0 && hi == 1:
		q = "?"
	case hi < 0:
		q = fmt.Sprintf("{%d,}", lo)
	case lo == hi:
		q = fmt.Sprintf("{%d}", lo)
	default:
		q = fmt.Sprintf("{%d,%d}", lo, hi)
	}
	possessive := t.take("+")
	lazy := !possessive && t.take("?") != t.flags.ungreedy
	if a.literal > 0 && lo == 0 {
		t.prefix = t.prefix[:len(t.prefix)-a.literal]
	}
	t.prefixOpen = false
	t.anchored = t.anchored && (lo > 0 || len(t.prefix) > 0)
	if lo == 0 && a.afterCaret {
		t.fits = false
	}
	// Brackets around atom and quantifier, so that a quantifier may follow a quantifier.
	open, mark := "(?:", ""
	if possessive {
		open, t.fits = "(?>", false
	} else if lazy {
		mark = "?"
	}
	t.re2 = splice(t.re2, a.re2, "(?:(?:", ")"+q+mark+")")
	t.net = splice(t.net, a.net, open+"(?:", ")"+q+mark+")")
	a.weight = min(a.weight*int64(max(lo, hi, 1))+1, weightLarge)
	a.literal, a.wide = 0, a.wide && lo > 0
	return nil
}

// splice puts before and after around what b holds from at on.
func splice(b []byte, at int, before, after string) []byte {
	tail := string(b[at:])
	return append(append(append(b[:at], before...), tail...), after...)
}

func (t *translator) setFlag(f rune, on bool) bool {
	switch f {
	case 'i':
		t.flags.i = on
	case 'm':
		t.flags.m = on
	case 's':
		t.flags.s = on
	case 'x':
		t.flags.x = on
	case 'U':
		t.flags.ungreedy = on
	case 'n', 'J', 'u':
	default:
		return false
	}
	return true
}

// push opens a group; re2 and net are its opening brackets.
func (t *translator) push(re2, net string, look bool) error {
	if len(t.stack) >= 250 {
		return errors.New("parentheses are too deeply nested")
	}
	if t.caret {
		t.fits = false // what the group begins with is not followed up
	}
	t.endAtom()
	t.stack = append(t.stack, group{flags: t.flags, re2: len(t.re2), net: len(t.net), sum: t.sum, look: look})
	t.caret, t.sum = false, 0
	t.re2 = append(t.re2, re2...)
	t.net = append(t.net, net...)
	return nil
}

func (t *translator) close() error {
	if len(t.stack) == 0 {
		return errors.New("unmatched closing parenthesis")
	}
	t.endBranch()
	g := t.stack[len(t.stack)-1]
	t.stack = t.stack[:len(t.stack)-1]
	t.both(")")
	t.prefixOpen = false
	t.atom = atom{ok: true, re2: g.re2, net: g.net, weight: min(t.sum+1, weightLarge)}
	t.sum, t.flags = g.sum, g.flags
	return nil
}

// open reads what follows an opening parenthesis.
func (t *translator) open() error {
	if t.peek("*") {
		return errors.New("verbs are not supported")
	}
	if !t.take("?") {
		t.groups++
		return t.push("(", "(", false)
	}
	for _, look := range []string{"=", "!", "<=", "<!", ">"} {
		if t.take(look) {
			t.fits = false
			return t.push("(?:", "(?"+look, true)
		}
	}
	switch {
	case t.take("#"):
		i := strings.IndexByte(t.src[t.pos:], ')')
		if i < 0 {
			return errors.New("missing ) after (?# comment")
		}
		t.pos += i + 1
		return nil
	case t.take("P<"), t.take("<"):
		return t.openNamed(">")
	case t.take("'"):
		return t.openNamed("'")
	case t.take("P="):
		return t.reference(")")
	case t.take("|"), t.peek("("), t.peek("R"), t.peek("&"), t.peek("P"), t.peek("C"), t.peek("+"):
		return errors.New("recursion, conditions, callouts and branch reset are not supported")
	}
	return t.openFlags()
}

func (t *translator) openNamed(end string) error {
	name, err := t.name(end)
	if err != nil {
		return err
	}
	if _, ok := t.names[name]; ok {
		return errors.New("two named subpatterns have the same name")
	}
	t.groups++
	t.names[name] = t.groups
	return t.push("(", "(", false)
}

// name reads a group's name up to end.
func (t *translator) name(end string) (string, error) {
	i := strings.Index(t.src[t.pos:], end)
	if i <= 0 || i > 128 {
		return "", errors.New("subpattern name expected")
	}
	name := t.src[t.pos : t.pos+i]
	for k, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (k == 0 || r < '0' || r > '9') {
			return "", errors.New("subpattern name must consist of letters, digits and underscores")
		}
	}
	t.pos += i + len(end)
	return name, nil
}

// openFlags reads (?i-m) and (?i-m: ...).
func (t *translator) openFlags() error {
	outer := t.flags
	on := true
	if t.take("^") {
		t.flags = flags{}
	}
	for t.pos < len(t.src) {
		switch r := t.rune(); r {
		case '-':
			on = false
		case ':', ')':
			i := "i"
			if !t.flags.i {
				i = "-i"
			}
			if r == ')' {
				t.endAtom()
				t.both("(?" + i + ")")
				return nil
			}
			inner := t.flags
			t.flags = outer
			if err := t.push("(?"+i+":", "(?"+i+":", false); err != nil {
				return err
			}
			t.flags = inner
			return nil
		default:
			if !t.setFlag(r, on) || r == 'u' {
				return errors.New("unrecognized character after (?")
			}
			if r == 'n' && on {
				return errors.New("the option n is not supported")
			}
		}
	}
	return errors.New("missing closing parenthesis")
}

// reference reads a name up to end and adds a backreference to that group.
func (t *translator) reference(end string) error {
	name, err := t.name(end)
	if err != nil {
		return err
	}
	n, ok := t.names[name]
	if !ok {
		return errors.New("reference to non-existent subpattern")
	}
	return t.backreference(n)
}

func (t *translator) backreference(n int) error {
	t.refMax = max(t.refMax, n)
	t.netOnly(fmt.Sprintf(`(?:\%d)`, n), false)
	return nil
}
