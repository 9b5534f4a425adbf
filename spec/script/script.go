// Package script runs tests that are scripts: files testdata/*.txt of cases, apart by an empty line. Only tests import it.
//
//	# A line that begins with # is a comment.
//	update {$inc: {a: 1}}
//	{a: 1}
//	----
//	{a: 2}
//
// A case is a question, a bar, and the answer, which has no empty line either. What the lines mean is the caller's affair: it gives
// the answer to a question, which must be what stands behind the bar. With -rewrite the answers are written into the scripts
// instead; the questions and their comments stay as they are. A script whose answers are right is rewritten byte for byte.
package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into the scripts instead of comparing")

// Case is what is to be answered.
type Case struct {
	At    string   // file and line, for messages
	Lines []string // of the question, without comments; at least one
}

// Answer answers a case, without a line end behind the last line.
type Answer func(t *testing.T, c Case) string

// Run runs the scripts of the package under test, each as a subtest.
func Run(t *testing.T, answer Answer) {
	t.Helper()
	RunStateful(t, func(*testing.T) Answer { return answer })
}

// RunStateful is Run for cases that build on those above them: begin is called once for each script.
func RunStateful(t *testing.T, begin func(t *testing.T) Answer) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := parse(file, string(text))
			if err != nil {
				t.Fatal(err)
			}
			answer := begin(t)
			for i, b := range blocks {
				got := answer(t, b.Case)
				if strings.Contains("\n"+got+"\n", "\n\n") && got != "" {
					t.Fatalf("%s: an answer with an empty line cannot stand in a script: %q", b.At, got)
				}
				if (got != b.want || !b.answered) && !*rewrite {
					t.Errorf("%s: %s\ngot\n%s\n\nwant\n%s\n", b.At, b.question, got, b.want)
				}
				blocks[i].want = got
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(format(blocks)), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

const bar = "\n----"

// block is a case as it stands in a script.
type block struct {
	Case
	question string // comments included
	want     string
	answered bool // there is a bar
}

// parse reads a script. A case without a bar is newly written, and still has no answer.
func parse(file, text string) ([]block, error) {
	var blocks []block
	line := 1
	for text := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		b := block{Case: Case{At: fmt.Sprintf("%s:%d", file, line)}}
		line += strings.Count(text, "\n") + 2
		var behind string
		b.question, behind, b.answered = strings.Cut(text+"\n", bar+"\n")
		b.question, b.want = strings.TrimSuffix(b.question, "\n"), strings.TrimSuffix(behind, "\n")
		for l := range strings.SplitSeq(b.question, "\n") {
			if l == "" {
				return nil, fmt.Errorf("%s: an empty line too many", b.At)
			}
			if l[0] != '#' {
				b.Lines = append(b.Lines, l)
			}
		}
		if b.Lines == nil {
			return nil, fmt.Errorf("%s: comments without a question", b.At)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// format is what parse reads.
func format(blocks []block) string {
	var b strings.Builder
	for i, c := range blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(c.question + bar + "\n")
		if c.want != "" {
			b.WriteString(c.want + "\n")
		}
	}
	return b.String()
}
