package match

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

const (
	// patternMax is the longest pattern, in bytes; MongoDB's limit.
	patternMax = 32764
	// weightMax bounds what the patterns of one filter may cost together; see pattern.weight.
	weightMax = 2_000_000
	// codeRegexOptions is for an option that there is none of.
	codeRegexOptions mongoerr.Code = 51108
)

// parseRegex parses {path: {$regex: pattern, $options: "i"}}; the pattern is a string or a regular expression.
func parseRegex(p *parser, path string, arg bson.RawValue, clause bson.Raw) (Node, error) {
	var pattern, options string
	switch arg.Type {
	case bson.TypeString:
		pattern = string(value.StringBytes(arg))
	case bson.TypeRegex:
		pattern, options = cutRegex(arg)
	default:
		return nil, mongoerr.BadValue.Errorf("$regex at '%s' has to be a string", path)
	}
	if o := value.Lookup(clause, "$options"); o.Type != 0 {
		if o.Type != bson.TypeString {
			return nil, mongoerr.BadValue.Errorf("$options at '%s' has to be a string", path)
		}
		if options != "" {
			return nil, mongoerr.LocationRegexOptionsTwice.Errorf("options set in both $regex and $options at '%s'", path)
		}
		options = string(value.StringBytes(o))
	}
	return p.newRegex(path, pattern, options)
}

// parseOptions leaves the work to parseRegex.
func parseOptions(_ *parser, path string, _ bson.RawValue, clause bson.Raw) (Node, error) {
	if value.Lookup(clause, "$regex").Type == 0 {
		return nil, mongoerr.BadValue.Errorf("$options at '%s' needs a $regex", path)
	}
	return nil, nil
}

// regexValue parses {path: /pattern/options}.
func (p *parser) regexValue(path string, v bson.RawValue) (Node, error) {
	pattern, options := cutRegex(v)
	return p.newRegex(path, pattern, options)
}

func cutRegex(v bson.RawValue) (pattern, options string) {
	i := bytes.IndexByte(v.Value, 0)
	return string(v.Value[:i]), string(v.Value[i+1 : len(v.Value)-1])
}

func (p *parser) newRegex(path, pattern, options string) (Node, error) {
	re, err := p.compile("regular expression at '"+path+"'", pattern, options)
	if err != nil {
		return nil, err
	}
	return &Regex{Path: path, Pattern: pattern, Options: sortOptions(options), path: p.pathOf(path, false), re: re, collated: p.opts.Collation != nil}, nil
}

// compile compiles a pattern; who is named in errors.
func (p *parser) compile(who, expr, options string) (*pattern, error) {
	switch {
	case len(expr) > patternMax:
		return nil, mongoerr.BadValue.Errorf("%s is too long: %d bytes, and %d at most", who, len(expr), patternMax)
	case strings.ContainsRune(expr, 0):
		return nil, mongoerr.BadValue.Errorf("%s cannot contain an embedded null byte", who)
	}
	if i := strings.IndexFunc(options, func(r rune) bool { return !strings.ContainsRune("imsxu", r) }); i >= 0 {
		return nil, codeRegexOptions.Errorf("invalid flag in regex options of the %s: %q", who, options[i:])
	}
	re, err := newPattern(expr, options)
	if err != nil {
		return nil, mongoerr.LocationRegexInvalid.Errorf("%s is invalid: %v", who, err)
	}
	if p.weight += re.weight; p.weight > weightMax {
		return nil, mongoerr.BadValue.Errorf("%s: the regular expressions of this filter are too many or too large", who)
	}
	return re, nil
}

func sortOptions(options string) string {
	b := []byte(options)
	slices.Sort(b)
	return string(slices.Compact(b))
}

// Prefix is the text with which every string that matches begins, for index bounds. exact says that beginning so is enough.
// ok is false if there is none: the pattern is not anchored, or ignores case.
func (n *Regex) Prefix() (prefix string, exact, ok bool) {
	return n.re.prefix, n.re.exact, n.re.anchored && n.re.prefix != ""
}

func (e *eval) regex(n *Regex, v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		if e.err != nil {
			return false
		}
		ok, err := n.re.match(value.StringBytes(v))
		if err != nil {
			e.err = err
		}
		return ok
	case bson.TypeRegex:
		pattern, options := cutRegex(v)
		return pattern == n.Pattern && sortOptions(options) == n.Options
	}
	return false
}
