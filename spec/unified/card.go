package unified

import (
	"bufio"
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Card is a scorecard: the outcome of every test, by its name, which is "folder/…/file.json: description". As text it has a line for each test,
// in order of names, after a table of the folders:
//
//	# folder                 pass fail skip
//	# crud                    210    3   69
//	pass crud/unified/find.json: find with filter
//	skip crud/unified/find-let.json: Find with let option unsupported (server-side error) | needs server version <= 4.4.99
//
// The text has no reasons of failures: they name ports and times. It depends on nothing but the outcomes.
type Card map[string]Outcome

// ParseCard reads a card's text.
func ParseCard(text []byte) (Card, error) {
	c := make(Card)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		verdict, name, ok := strings.Cut(line, " ")
		o := Outcome{Verdict: Verdict(verdict)}
		if o.Verdict == Skip {
			name, o.Reason, ok = cutLast(name, " | ")
		}
		if !ok || o.Verdict != Pass && o.Verdict != Fail && o.Verdict != Skip {
			return nil, fmt.Errorf("line %d: not understood: %s", n, line)
		}
		c[name] = o
	}
	return c, lines.Err()
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Add puts an outcome on the card. Of two tests with one name the later gets a number.
func (c Card) Add(name string, o Outcome) string {
	unique := name
	for n := 2; ; n++ {
		if _, dup := c[unique]; !dup {
			c[unique] = o
			return unique
		}
		unique = fmt.Sprintf("%s #%d", name, n)
	}
}

// Folder is a test's folder.
func Folder(name string) string {
	folder, _, _ := strings.Cut(path.Clean(name), "/")
	return folder
}

// Count is how many tests of a folder ended in each way.
type Count struct {
	Folder           string
	Pass, Fail, Skip int
}

// Counts are the folders' figures, in order of their names.
func (c Card) Counts() []Count {
	by := make(map[string]*Count)
	for name, o := range c {
		f := Folder(name)
		if by[f] == nil {
			by[f] = &Count{Folder: f}
		}
		switch o.Verdict {
		case Pass:
			by[f].Pass++
		case Fail:
			by[f].Fail++
		case Skip:
			by[f].Skip++
		}
	}
	var out []Count
	for _, f := range sortedKeys(by) {
		out = append(out, *by[f])
	}
	return out
}

// Table is the folders' figures, as text.
func (c Card) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-36s %5s %5s %5s\n", "folder", "pass", "fail", "skip")
	for _, n := range c.Counts() {
		fmt.Fprintf(&b, "%-36s %5d %5d %5d\n", n.Folder, n.Pass, n.Fail, n.Skip)
	}
	return b.String()
}

// Text is the card as a file.
func (c Card) Text() []byte {
	var b bytes.Buffer
	for line := range strings.Lines(c.Table()) {
		b.WriteString("# " + line)
	}
	b.WriteString("\n")
	for _, name := range sortedKeys(c) {
		o := c[name]
		fmt.Fprintf(&b, "%s %s", o.Verdict, name)
		if o.Verdict == Skip {
			b.WriteString(" | " + o.Reason)
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

// Lost are the tests in the folders that passed on the card before and do not on this one, in order.
func (c Card) Lost(before Card, folders []string) (names []string) {
	for _, name := range sortedKeys(before) {
		if before[name].Verdict == Pass && c[name].Verdict != Pass && slices.Contains(folders, Folder(name)) {
			names = append(names, name)
		}
	}
	return names
}
