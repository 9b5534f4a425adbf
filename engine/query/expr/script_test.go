package expr_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt. The case
//
//	{a: 1}
//	{$add: ["$a", 1]}
//	{$add: ["$a", "x"]}
//	----
//	2
//	error 14 ...
//
// has a document in the first line, an expression in each line behind it, and the answers behind the bar. "let {x: 1}" as the first
// line binds variables for an empty document.
func TestScripts(t *testing.T) { script.Run(t, answer) }

func answer(t *testing.T, c script.Case) string {
	var scope expr.Scope
	ctx := &expr.Context{Now: 1700000000123, Rand: func() uint64 { return 1 << 63 }}
	var doc bson.Raw
	var answers []string
	for _, l := range c.Lines {
		if doc == nil {
			if vars, ok := strings.CutPrefix(l, "let "); ok {
				var err error
				if scope, err = expr.Let(ctx, scope, value.MustParseDocument(vars)); err != nil {
					return describe(err)
				}
				l = "{}"
			}
			doc = value.MustParseDocument(l)
			continue
		}
		v, err := value.Parse(l)
		if err != nil {
			t.Fatalf("%s: %s: %v", c.At, l, err)
		}
		answers = append(answers, evaluate(ctx, scope, v, doc))
	}
	return strings.Join(answers, "\n")
}

func evaluate(c *expr.Context, scope expr.Scope, v bson.RawValue, doc bson.Raw) string {
	e, err := expr.Parse(v, scope)
	if err != nil {
		return "parse " + describe(err)
	}
	r, err := e.Eval(c, doc)
	if err != nil {
		return describe(err)
	}
	return value.Text(r)
}

func describe(err error) string {
	e := mongoerr.From(err)
	return "error " + e.Code.Name() + ": " + e.Message
}
