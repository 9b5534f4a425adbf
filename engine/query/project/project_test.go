package project_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/spec/script"
)

// TestScripts runs testdata/*.txt. A case is a projection, documents, a bar, and the projected documents:
//
//	for {a: 1}
//	project {"a.$": 1}
//	{a: [0, 1]}
//	----
//	{a: [1]}
//
// "for" is the query and mostly left out; "stage" projects as $project does, "plain" has no expressions, "reads" asks for the
// dependencies.
func TestScripts(t *testing.T) { script.Run(t, answer) }

func answer(t *testing.T, c script.Case) string {
	lines := c.Lines
	command, arg, _ := strings.Cut(lines[0], " ")
	opts := options()
	if command == "for" {
		f, err := match.Parse(value.MustParseDocument(arg), match.Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.At, err)
		}
		opts.Query = f
		lines = lines[1:]
		command, arg, _ = strings.Cut(lines[0], " ")
	}
	switch command {
	case "stage":
		opts.Pipeline = true
	case "plain":
		opts.Expr = nil
	}
	p, err := project.Parse(value.MustParseDocument(arg), opts)
	switch {
	case err != nil:
		return "error " + err.Error()
	case p == nil:
		return "none"
	case command == "reads":
		paths, all := p.Reads()
		return fmt.Sprintf("%v all %v plain %v", paths, all, p.Plain())
	}
	var docs []string
	for _, l := range lines[1:] {
		out, err := p.Apply([]byte("before"), value.MustParseDocument(l))
		if err != nil {
			docs = append(docs, "error "+err.Error())
			continue
		}
		doc := bson.Raw(strings.TrimPrefix(string(out), "before"))
		if err := value.Validate(doc); err != nil {
			t.Errorf("%s: %s: %v", c.At, l, err)
		}
		docs = append(docs, value.Text(value.Document(doc)))
	}
	return strings.Join(docs, "\n")
}

type expression struct{ v bson.RawValue }

func (e expression) Eval(doc bson.Raw) (bson.RawValue, error) {
	if name, ok := strings.CutPrefix(string(value.StringBytes(e.v)), "$"); ok {
		return value.Lookup(doc, name), nil
	}
	if value.Lookup(e.v.Value, "$fail").Type != 0 {
		return value.Missing, mongoerr.BadValue.Errorf("failed")
	}
	return e.v, nil
}

func (e expression) Reads() ([]string, bool) {
	if name, ok := strings.CutPrefix(string(value.StringBytes(e.v)), "$"); ok {
		return []string{name}, false
	}
	return nil, false
}

func options() project.Options {
	return project.Options{Expr: func(v bson.RawValue) (project.Expression, error) { return expression{v}, nil }}
}
