package script

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestScriptIsReadAndWritten(t *testing.T) {
	const text = "# why\nask\n# and\nmore\n----\nyes\n----\n\nquiet\n----\n\nlast\n----\nno\nno\n"
	blocks, err := parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if got := format(blocks); got != text {
		t.Errorf("read and written again:\n%s", got)
	}
	for i, want := range []block{
		{Case: Case{"f:1", []string{"ask", "more"}}, want: "yes\n----"},
		{Case: Case{"f:9", []string{"quiet"}}},
		{Case: Case{"f:12", []string{"last"}}, want: "no\nno"},
	} {
		if b := blocks[i]; b.At != want.At || !slices.Equal(b.Lines, want.Lines) || b.want != want.want {
			t.Errorf("case %d: %+v, want %+v", i, b, want)
		}
	}
}

func TestNewCaseGetsItsBar(t *testing.T) {
	blocks, err := parse("f", "ask\n----\nyes\n\nnew")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := format(blocks), "ask\n----\nyes\n\nnew\n----\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestScriptIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "f:1: an empty line too many",
		"ask\n----\nyes\n\n\nask\n": "f:5: an empty line too many",
		"ask\n----\n\n# why\n":      "f:4: comments without a question",
	} {
		if _, err := parse("f", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestRewriteWritesAnswers(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o777); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/count.txt"
	if err := os.WriteFile(file, []byte("# the first\na\nb\n----\nwrong\n\nc\n\nnothing\n----\nwrong\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	count := func(*testing.T) Answer {
		n := 0
		return func(_ *testing.T, c Case) string {
			if c.Lines[0] == "nothing" {
				return ""
			}
			n += len(c.Lines)
			return fmt.Sprint(n)
		}
	}
	old := *rewrite
	defer func() { *rewrite = old }()
	*rewrite = true
	RunStateful(t, count)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# the first\na\nb\n----\n2\n\nc\n----\n3\n\nnothing\n----\n"; string(got) != want {
		t.Errorf("got\n%s\n\nwant\n%s", got, want)
	}
	*rewrite = false
	RunStateful(t, count) // what was written is right
}
