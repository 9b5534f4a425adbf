package workload

import (
	"slices"

	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/simfs"
)

// Case says which run. Its JSON is the file from which a run is replayed.
type Case struct {
	Seed    uint64  `json:"seed"`
	Profile Profile `json:"profile"`
	Program string  `json:"program,omitempty"` // "": the seed decides
	Edit    Edit    `json:"edit"`
}

// Edit changes a run that the seed has drawn, so that less happens in it: a failure is shrunk by editing. The zero value
// changes nothing.
type Edit struct {
	// Kept operations are the only ones that are done, if it is not null: indexes into the lists of clients, by their names.
	Kept map[string][]int `json:"kept"`
	// Switches are the schedule, if they are not null: the policy is not asked.
	Switches []sim.Switch `json:"switches"`
	// Schedule draws another schedule for the same clients, if it is not 0.
	Schedule uint64 `json:"schedule,omitempty"`
	// Cut is the only crash image that is taken. It is judged in the same way each time.
	Cut *Cut `json:"cut,omitempty"`
	// Share is in how many events of the disk one is looked at, instead of the usual number.
	Share int `json:"share,omitempty"`
	// Kind is of which events of the disk alone images are taken, if it is not empty, and then many of each: see Cut.
	Kind string `json:"kind,omitempty"`
	// Steps are how many the world may make; 0 is as many as it likes.
	Steps int `json:"steps,omitempty"`
}

// drops reports whether operation i of a client is not done.
func (e *Edit) drops(client string, i int) bool {
	return e.Kept != nil && !slices.Contains(e.Kept[client], i)
}

// Cut is one crash image: where it is taken, what survives, and how it is judged.
type Cut struct {
	At     int          `json:"at"`             // which event of the disk, counted from 1; 0 is after the program's end, and no image has -1
	Kind   string       `json:"kind,omitempty"` // of the event: when, and what call of which file
	Choice simfs.Choice `json:"choice"`
	Rot    *Rot         `json:"rot,omitempty"` // of the image, before it is opened
	Seed   uint64       `json:"seed"`          // of what the judging draws: whether its recovery is interrupted, say
}

// Rot is bytes that change.
type Rot struct {
	Path string `json:"path"`
	Bit  int64  `json:"bit"`            // the first, or the one that is flipped
	Zero int64  `json:"zero,omitempty"` // so many bytes from there on become zero, instead
}

// Op is an operation of a client.
type Op struct {
	Client  string
	Index   int // in the client's list
	Text    string
	Begin   int // steps of the world
	End     int // 0: it was not answered
	Outcome string
}

// Watch is told of what happens in a run. Any may be nil.
type Watch struct {
	Step func(sim.Step)
	// Disk is told of calls, with the step and the task that makes them. A fault that the disk puts in has been asked for.
	Disk func(step int, task string, e simfs.Event)
	// Fault is told which call fails.
	Fault func(step int, task string, c simfs.Call, f simfs.Fault)
	// Cut is told of every image that was judged, with the disk as it was when the power failed.
	Cut func(step int, where string, disk *simfs.FS, c Cut, err error)
}

// Do is operation i of a client: f does it, and says in a few words what came of it. An operation that the edit drops is not
// done. All that f draws by chance must be drawn before, so that what is dropped changes nothing else.
func (u *Frame) Do(client string, i int, text string, f func() (outcome string)) {
	if u.edit.drops(client, i) {
		return
	}
	u.opsMu.Lock()
	n := len(u.ops)
	u.ops = append(u.ops, Op{Client: client, Index: i, Text: text, Begin: u.world.Steps()})
	u.opsMu.Unlock()
	outcome := f()
	u.opsMu.Lock()
	u.ops[n].End, u.ops[n].Outcome = u.world.Steps(), outcome
	u.opsMu.Unlock()
}
