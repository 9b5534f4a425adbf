package expr

import (
	"bytes"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// regexKind is what a regex operator answers.
type regexKind uint8

const (
	regexMatch regexKind = iota
	regexFind
	regexFindAll
)

// regex is $regexMatch, $regexFind and $regexFindAll. A pattern that is a literal is compiled once.
type regex struct {
	op                      string
	kind                    regexKind
	input, pattern, options node // options may be nil
	compiled                *match.Pattern
}

func (n *regex) eval(c *Context) (bson.RawValue, error) {
	in, err := n.input.eval(c)
	if err != nil {
		return in, err
	}
	re := n.compiled
	if re == nil {
		if re, err = n.compile(c); err != nil {
			return value.Missing, err
		}
	}
	switch {
	case !nullish(in) && !isString(in):
		return in, code(51104).Errorf("%s needs 'input' to be of type string", n.op)
	case re == nil || nullish(in):
		return n.nothing()
	case n.kind == regexMatch:
		ok, err := re.Match(value.StringBytes(in))
		return boolean(ok), err
	}
	s := text(in)
	limit := -1
	if n.kind == regexFind {
		limit = 1
	}
	found, err := re.Find(s, limit)
	if err != nil {
		return value.Missing, err
	}
	b := newArray()
	at, runes := 0, 0
	for _, loc := range found {
		if loc[0] == len(s) && len(s) > 0 && n.kind == regexFindAll {
			break // an empty match at the end is none, when all are asked for
		}
		runes += utf8.RuneCountInString(s[at:loc[0]])
		at = loc[0]
		m, err := describe(s, loc, runes)
		if err != nil || n.kind == regexFind {
			return m, err
		}
		b.add(m)
	}
	if n.kind == regexFind {
		return value.Null, nil
	}
	return b.done()
}

// describe is a match: {match: text, idx: its place in code points, captures: [text or null, ...]}.
func describe(s string, loc []int, runes int) (bson.RawValue, error) {
	captures := newArray()
	for i := 2; i < len(loc); i += 2 {
		if loc[i] < 0 {
			captures.add(value.Null)
			continue
		}
		captures.add(value.String(s[loc[i]:loc[i+1]]))
	}
	list, err := captures.done()
	if err != nil {
		return list, err
	}
	d := newDocument()
	d.field("match", value.String(s[loc[0]:loc[1]]))
	d.field("idx", value.Int32(int32(runes)))
	d.field("captures", list)
	return d.done()
}

// nothing is the answer when there is no text or no pattern.
func (n *regex) nothing() (bson.RawValue, error) {
	switch n.kind {
	case regexMatch:
		return no, nil
	case regexFind:
		return value.Null, nil
	}
	return value.Array(emptyDocument), nil
}

// compile evaluates the pattern and the options; nil without an error means one of them is null.
func (n *regex) compile(c *Context) (*match.Pattern, error) {
	p, err := n.pattern.eval(c)
	if err != nil {
		return nil, err
	}
	var o bson.RawValue
	if n.options != nil {
		if o, err = n.options.eval(c); err != nil {
			return nil, err
		}
	}
	var pattern, options string
	switch {
	case p.Type == bson.TypeRegex:
		i := bytes.IndexByte(p.Value, 0)
		pattern, options = string(p.Value[:i]), string(p.Value[i+1:len(p.Value)-1])
	case isString(p):
		pattern = text(p)
	case !nullish(p):
		return nil, code(51105).Errorf("%s needs 'regex' to be of type string or regex", n.op)
	}
	if !nullish(o) {
		if !isString(o) {
			return nil, code(51106).Errorf("%s needs 'options' to be of type string", n.op)
		}
		if options != "" {
			return nil, code(51107).Errorf("%s: found regex option(s) specified in both 'regex' and 'option' fields", n.op)
		}
		options = text(o)
	}
	if nullish(p) {
		return nil, nil
	}
	for i := range len(pattern) {
		if pattern[i] == 0 {
			return nil, code(51109).Errorf("%s: regular expression cannot contain an embedded null byte", n.op)
		}
	}
	re, err := match.CompilePattern(n.op, pattern, options)
	if err != nil {
		return nil, code(51111).Errorf("invalid regex in %s: %w", n.op, err)
	}
	return re, nil
}

func parseRegex(op string, kind regexKind) func(*parser, bson.RawValue) (node, error) {
	return func(p *parser, arg bson.RawValue) (node, error) {
		nodes, err := p.named(op, arg, 51103, 31024, 31022, []string{"input", "regex"}, []string{"options"})
		if err != nil {
			return nil, err
		}
		n := &regex{op: op, kind: kind, input: nodes[0], pattern: nodes[1], options: nodes[2]}
		_, fixed := n.pattern.(literal)
		if n.options != nil {
			_, ok := n.options.(literal)
			fixed = fixed && ok
		}
		if fixed {
			if n.compiled, err = n.compile(&Context{}); err != nil {
				return nil, err
			}
		}
		return n, nil
	}
}
