package report

import (
	"bufio"
	"fmt"
	"io"
	"sort"
)

// Trace writes the run as text, a line for each step: its number, the task, and where the task was; with a call of the disk
// goes the file and the place in it. Between them stand what clients began and were answered, and power cuts.
func (r *Recording) Trace(to io.Writer) error {
	w := bufio.NewWriter(to)
	notes := r.notes()
	for i, s := range r.Steps {
		for ; len(notes) > 0 && notes[0].step <= s.N; notes = notes[1:] {
			fmt.Fprintf(w, "         %s\n", notes[0].text)
		}
		fmt.Fprintf(w, "%7d  %-20s %s", s.N, s.Task, s.Point)
		if c := r.callAt(i); c != nil {
			fmt.Fprintf(w, "  %v", c.Call)
		}
		fmt.Fprintln(w)
	}
	for _, n := range notes {
		fmt.Fprintf(w, "         %s\n", n.text)
	}
	return w.Flush()
}

// callAt is the call that the task begins with step i.
func (r *Recording) callAt(i int) *Call {
	n := r.Steps[i].N
	at := sort.Search(len(r.Calls), func(k int) bool { return r.Calls[k].Step >= n })
	for ; at < len(r.Calls) && r.Calls[at].Step == n; at++ {
		if c := &r.Calls[at]; c.Task == r.Steps[i].Task && r.Steps[i].Point == "fs."+string(c.Op) {
			return c
		}
	}
	return nil
}

type note struct {
	step int
	text string
}

// notes are what is no step.
func (r *Recording) notes() []note {
	var notes []note
	for _, op := range r.Result.Ops {
		notes = append(notes, note{op.Begin, fmt.Sprintf("> %s, operation %d: %s", op.Client, op.Index, op.Text)})
		if op.End > 0 {
			notes = append(notes, note{op.End, fmt.Sprintf("< %s, operation %d: %s", op.Client, op.Index, op.Outcome)})
		}
	}
	for _, c := range r.Calls {
		if c.Fault != "" {
			notes = append(notes, note{c.Step, fmt.Sprintf("! %v fails: %s", c.Call, c.Fault)})
		} else if c.Err != "" {
			notes = append(notes, note{c.End, fmt.Sprintf("! %v: %s", c.Call, c.Err)})
		}
	}
	for _, c := range r.Cuts {
		verdict := "is sound"
		if c.Err != "" {
			verdict = "FAILS: " + c.Err
		}
		notes = append(notes, note{c.Step, fmt.Sprintf("# power cut %s, choice %v: the image %s", c.Where, c.Choice, verdict)})
	}
	sort.SliceStable(notes, func(i, k int) bool { return notes[i].step < notes[k].step })
	return notes
}
