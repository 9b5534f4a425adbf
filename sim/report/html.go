package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// shown is what the page is made of. Its JSON is the page's data.
type shown struct {
	Title   string      `json:"title"`
	Failed  bool        `json:"failed"`
	Class   string      `json:"class"`
	Words   string      `json:"words"` // the judge's
	Facts   [][2]string `json:"facts"`
	Command string      `json:"command"`

	Steps  int         `json:"steps"`
	Tasks  []string    `json:"tasks"`
	Points []string    `json:"points"`
	Trace  []int       `json:"trace"` // for each step: the number of its task times 4096, and the number of its point
	Ops    []shownOp   `json:"ops"`
	Calls  []shownCall `json:"calls"`
	Cuts   []shownCut  `json:"cuts"`
}

type shownOp struct {
	Client  string `json:"client"`
	Index   int    `json:"index"`
	Text    string `json:"text"`
	Begin   int    `json:"begin"`
	End     int    `json:"end"`
	Outcome string `json:"outcome"`
}

type shownCall struct {
	N     int64  `json:"n"`
	Op    string `json:"op"`
	Path  string `json:"path"`
	To    string `json:"to,omitempty"`
	Off   int64  `json:"off"`
	Len   int64  `json:"len"`
	Asked int    `json:"asked"`
	Step  int    `json:"step"`
	End   int    `json:"end"`
	Task  string `json:"task"`
	Parts []int  `json:"parts,omitempty"`
	Err   string `json:"err,omitempty"`
	Fault string `json:"fault,omitempty"`
}

type shownCut struct {
	Step   int     `json:"step"`
	Where  string  `json:"where"`
	Choice string  `json:"choice"`
	Rot    string  `json:"rot,omitempty"`
	Err    string  `json:"err,omitempty"`
	Loses  string  `json:"loses"`
	Files  []File  `json:"files"`
	Metas  [2]Meta `json:"metas"`
}

// pointMask bounds the number of different points in a trace.
const pointMask = 4096

// WriteHTML writes the run as one page.
func (r *Recording) WriteHTML(w io.Writer, command string) error {
	res := r.Result
	s := shown{
		Title: fmt.Sprintf("seed %d, %s", r.Case.Seed, r.Case.Profile), Failed: res.Err != nil, Class: res.Class, Command: command,
		Steps: res.Steps,
		Facts: [][2]string{
			{"steps", fmt.Sprint(res.Steps)}, {"operations", fmt.Sprint(len(res.Ops))}, {"switches", fmt.Sprint(len(res.Switches))},
			{"crash images", fmt.Sprint(res.Images)}, {"faults", fmt.Sprint(res.Faults)}, {"hash", fmt.Sprintf("%x", res.Hash)},
			{"judged", fmt.Sprintf("%d acks, %d publishes, %d removals, %d writes", res.Judged.Acks, res.Judged.Publishes, res.Judged.Removals, res.Judged.Writes)},
			{"configuration", res.Config},
		},
	}
	if res.Err != nil {
		s.Words = res.Err.Error()
	}
	r.trace(&s)
	for _, op := range res.Ops {
		s.Ops = append(s.Ops, shownOp(op))
	}
	for _, c := range r.Calls {
		s.Calls = append(s.Calls, shownCall{N: c.N, Op: string(c.Op), Path: c.Path, To: c.To, Off: c.Off, Len: c.Len,
			Asked: c.Asked, Step: c.Step, End: c.End, Task: c.Task, Parts: c.Parts, Err: c.Err, Fault: c.Fault})
	}
	for _, c := range r.Cuts {
		k := shownCut{Step: c.Step, Where: c.Where, Choice: c.Choice.String(), Err: c.Err, Loses: c.Loses, Files: c.Files, Metas: c.Metas}
		if c.Rot != nil {
			k.Rot = c.Rot.String()
		}
		s.Cuts = append(s.Cuts, k)
	}
	return pageTemplate.Execute(w, s)
}

func (r *Recording) trace(s *shown) {
	number := func(list *[]string, name string) int {
		i := slices.Index(*list, name)
		if i < 0 {
			i = len(*list)
			*list = append(*list, name)
		}
		return i
	}
	for _, step := range r.Steps {
		s.Trace = append(s.Trace, number(&s.Tasks, step.Task)*pointMask+min(number(&s.Points, step.Point), pointMask-1))
	}
}
