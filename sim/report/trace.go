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
	notes, calls := r.notes(), r.asked()
	for _, s := range r.Steps {
		for ; len(notes) > 0 && notes[0].step <= s.N; notes = notes[1:] {
			fmt.Fprintf(w, "         %s\n", notes[0].text)
		}
		fmt.Fprintf(w, "%7d  %-20s %s", s.N, s.Task, s.Point)
		if c := calls[s.N]; c != nil {
			fmt.Fprintf(w, "  %v", c.Call)
		}
		fmt.Fprintln(w)
	}
	for _, n := range notes {
		fmt.Fprintf(w, "         %s\n", n.text)
	}
	return w.Flush()
}

// asked gives the calls by the steps in which tasks came to them.
func (r *Recording) asked() map[int]*Call {
	calls := map[int]*Call{}
	for i := range r.Calls {
		calls[r.Calls[i].Asked] = &r.Calls[i]
	}
	return calls
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
