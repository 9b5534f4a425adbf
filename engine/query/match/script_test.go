package match_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt. The case
//
//	match {a: {$gt: 1}}
//	{a: 2}
//	{a: [0, 5]}
//	----
//	yes
//	yes at 1
//
// has a document a line before the bar and an answer a line behind it; an error answers all at once. "parse" instead of
// "match" has no documents, and "explain" says why a document does not pass; "parse" answers with the filter's normal form.
func TestScripts(t *testing.T) { script.Run(t, answer) }

func answer(t *testing.T, c script.Case) string {
	command, arg, _ := strings.Cut(c.Lines[0], " ")
	f, err := match.Parse(value.MustParseDocument(arg), options(command))
	if err != nil {
		return "error " + err.Error()
	}
	if command == "parse" {
		return value.Text(value.Document(f.Raw()))
	}
	var answers []string
	for _, l := range c.Lines[1:] {
		ok, index, err := f.MatchIndex(value.MustParseDocument(l))
		if command == "explain" {
			d, err := f.Explain(value.MustParseDocument(l))
			if err != nil {
				t.Errorf("%s: %v", c.At, err)
			}
			answers = append(answers, text(marshal(t, d)))
			continue
		}
		switch {
		case err != nil:
			answers = append(answers, "error "+err.Error())
		case !ok:
			answers = append(answers, "no")
		case index >= 0:
			answers = append(answers, fmt.Sprintf("yes at %d", index))
		default:
			answers = append(answers, "yes")
		}
	}
	return strings.Join(answers, "\n")
}

// options has a $expr that knows field paths only, and for the command "collated" a collation without case.
func options(command string) match.Options {
	o := match.Options{Expr: func(expr bson.RawValue) (match.Predicate, error) {
		name := strings.TrimPrefix(string(value.StringBytes(expr)), "$")
		return func(doc bson.Raw) (bool, error) { return value.Truth(value.Lookup(doc, name)), nil }, nil
	}}
	if command == "collated" {
		o.Collation = caseless{}
	}
	return o
}

type caseless struct{}

func (caseless) AppendKey(dst, text []byte) []byte {
	return append(dst, strings.ToLower(string(text))...)
}

func (caseless) Compare(a, b []byte) int {
	return strings.Compare(strings.ToLower(string(a)), strings.ToLower(string(b)))
}
