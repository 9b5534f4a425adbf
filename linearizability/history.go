package linearizability

import (
	"fmt"
	"math"
	"sync"
)

// Kind is what a client asks for.
type Kind uint8

// On documents {_id, v}; 0 stands for a document that is not there.
const (
	Find   Kind = iota // the v of Doc → Seen
	Set                // v of Doc is Value, inserted if need be → N: how many there were
	Swap               // likewise by findAndModify → Seen: the old v
	Cas                // v of Doc is Value if it was If → N
	Insert             // Doc with Value → Dup
	Delete             // Doc → N
	Inc                // v of Doc grows by Value, inserted if need be → N: how many there were
	Add                // likewise by findAndModify → Seen: the new v
	Count              // how many documents → N
	Scan               // all documents → Docs

	Claim   // a new document Doc with the unique v Value → Dup
	Release // deletes the document with the v Value → N
	Rename  // v of Doc is Value → N, Dup
	Owner   // the _id of the document with the v Value → Seen

	InsertMany // the documents of group Doc, Value of them, in order; if If is set, the middle one has that _id, which is taken → N, Dup
	CountGroup // how many documents of group Doc → N

	insertPart // the model's: document Value of group Doc, if the one before it is there
	impossible // the model's: a reply that contradicts itself
	recovered  // the checker's: a crash has been recovered from
	theEnd     // the checker's: nobody will look any more
)

var kindNames = [...]string{"find", "set", "swap", "cas", "insert", "delete", "inc", "add", "count", "scan", "claim", "release",
	"rename", "owner", "insertMany", "countGroup", "insert part", "impossible reply to group", "recovered", "the end"}

func (k Kind) String() string { return kindNames[k] }

// read says that the operation changes nothing.
func (k Kind) read() bool {
	switch k {
	case Find, Count, Scan, Owner, CountGroup:
		return true
	}
	return false
}

// Input is what a client asks.
type Input struct {
	Kind           Kind
	Doc, Value, If int64
}

func (in Input) String() string {
	switch in.Kind {
	case Count, Scan, recovered, theEnd:
		return in.Kind.String()
	case Find, Delete, CountGroup:
		return fmt.Sprintf("%s(%d)", in.Kind, in.Doc)
	case Release, Owner:
		return fmt.Sprintf("%s(%d)", in.Kind, in.Value)
	case Cas:
		return fmt.Sprintf("cas(%d, %d → %d)", in.Doc, in.If, in.Value)
	}
	return fmt.Sprintf("%s(%d, %d)", in.Kind, in.Doc, in.Value)
}

// Output is what a client was told. Which fields count depends on the Kind.
type Output struct {
	Unknown bool // it was told nothing
	Dup     bool // refused: another document has the key
	N, Seen int64
	Docs    []Doc // by _id

	groups string // the model's form of a scan of groups: see bulkModel
	until  int    // of an unknown operation: the number of recoveries after which it cannot happen any more
}

// Doc is a document as a scan sees it.
type Doc struct{ ID, V int64 }

func (out Output) String() string {
	switch {
	case out.Unknown:
		return "unknown"
	case out.Docs != nil:
		return fmt.Sprint(out.Docs)
	case out.groups != "":
		return fmt.Sprintf("prefixes %v", []byte(out.groups))
	case out.Dup:
		return fmt.Sprintf("duplicate key, n %d", out.N)
	}
	return fmt.Sprintf("n %d, seen %d", out.N, out.Seen)
}

// Op is one operation of a history.
type Op struct {
	Client int
	Input
	Output
	Call, Return int64
}

// History is what all clients asked and were told.
type History struct {
	Seed     uint64
	World    string
	Workload string
	Crashes  int
	Failures int // operations that a failed disk left without a reply
	Ops      []Op
	Opened   []int64 // when each world was ready: recovery had ended
}

const (
	open    = 0             // the Return of an operation without a reply
	forever = math.MaxInt64 // the Return of one that may happen at any later time
)

// recorder collects a history. Its timestamps grow strictly, whatever the clock does. Its lock is held across no call of an Env.
type recorder struct {
	mu    sync.Mutex
	clock func() int64
	last  int64
	ops   []Op
	ready []int64
}

func (r *recorder) now() int64 {
	r.last = max(r.last+1, r.clock())
	return r.last
}

// call notes that an operation begins and gives it a number: -1 if the history is full.
func (r *recorder) call(client int, in Input, most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ops) >= most {
		return -1
	}
	r.ops = append(r.ops, Op{Client: client, Input: in, Call: r.now(), Return: open})
	return len(r.ops) - 1
}

// full says whether n operations have begun.
func (r *recorder) full(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops) >= n
}

func (r *recorder) reply(op int, out Output) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops[op].Output, r.ops[op].Return = out, r.now()
}

// gaveUp notes that the client waits no longer for an operation, which may happen at any time from now on.
func (r *recorder) gaveUp(op int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops[op].Output, r.ops[op].Return = Output{Unknown: true}, forever
}

// recovered ends all operations without a reply: by now they have happened or never will.
func (r *recorder) recovered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.ready = append(r.ready, now)
	for i := range r.ops {
		if r.ops[i].Return == open {
			r.ops[i].Output, r.ops[i].Return = Output{Unknown: true}, now
		}
	}
}

// setClock is called when a new world begins; clocks of worlds start at 0.
func (r *recorder) setClock(clock func() int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base := r.last
	r.clock = func() int64 { return base + clock() }
}
