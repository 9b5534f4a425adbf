package simfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/multiforadb/multiforadb/engine/env"
)

// Op is a kind of call.
type Op string

const (
	OpOpen     Op = "open"
	OpCreate   Op = "create" // an Open that makes the file
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpList     Op = "list"
	OpStat     Op = "stat"
	OpMkdir    Op = "mkdir"
	OpSyncDir  Op = "syncdir"
	OpLock     Op = "lock"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpSize     Op = "size"
	OpTruncate Op = "truncate"
	OpAllocate Op = "allocate"
	OpPunch    Op = "punch"
	OpSync     Op = "sync"
	OpMap      Op = "map"
	OpGrow     Op = "grow"
	OpGuard    Op = "guard"
	OpClose    Op = "close"
)

// Mutates reports whether the call changes what is on the disk, or how much of it is durable.
func (o Op) Mutates() bool {
	switch o {
	case OpCreate, OpRename, OpRemove, OpMkdir, OpSyncDir, OpWrite, OpTruncate, OpAllocate, OpPunch, OpSync:
		return true
	}
	return false
}

// Call describes one call.
type Call struct {
	N    int64  `json:"n"` // counts from 1 on this disk, all kinds together
	Op   Op     `json:"op"`
	Path string `json:"path"`
	To   string `json:"to,omitempty"` // of a rename
	Off  int64  `json:"off,omitempty"`
	Len  int64  `json:"len,omitempty"` // of a truncate: the new size is Off
}

func (c Call) String() string {
	s := fmt.Sprintf("#%d %s %s", c.N, c.Op, c.Path)
	switch c.Op {
	case OpRename:
		s += " to " + c.To
	case OpRead, OpWrite, OpAllocate, OpPunch:
		s += fmt.Sprintf(" [%d, %d)", c.Off, c.Off+c.Len)
	case OpTruncate, OpGrow:
		s += fmt.Sprintf(" to %d", c.Off)
	}
	return s
}

// When is the moment of an [Event].
type When string

const (
	Before When = "before"
	Part   When = "part"   // a part of a write has been applied, and more may follow
	Inside When = "inside" // a sync has begun: what it covers is settled, nothing of it is durable yet
	After  When = "after"  // the call is about to return
)

// Event is a step of a call that mutates. A power cut may strike at any of them: a test takes its crashes there.
type Event struct {
	Call
	When When
	Data []byte // Part: the bytes written at Off; not to be kept or changed
	Err  error  // After
}

// Hooks are a test's eyes and hands. Any may be nil. They run in the calling goroutine, without a lock, and may call the
// disk (a crash, a look at durable bytes), but not make it call them: no writing from within.
type Hooks struct {
	// Fault is asked before every call. nil means that nothing is wrong.
	Fault func(Call) *Fault
	// Watch is told of every step of every call that mutates.
	Watch func(Event)
}

// Fault is how a call goes wrong.
type Fault struct {
	// Err is what the call returns. EIO and ENOSPC are ready-made.
	Err error
	// Short is how many bytes a failing write applies before it fails.
	Short int64
	// Sync says what a failing Datasync leaves behind.
	Sync SyncFault
	// Written is the part of the sectors that a failing Datasync made durable all the same, chosen by Seed: 0 is none, 1 all.
	Written float64
	Seed    uint64
	// Lose makes a write succeed and never reach the disk, though it is seen until the crash. Err is nil.
	Lose bool
	// Misdirect makes a write succeed whose bytes reach the disk that far from where they belong. Err is nil.
	Misdirect int64
}

// SyncFault is what becomes of the dirty pages when a sync fails.
type SyncFault string

const (
	// StayDirty: nothing happened, the next sync writes them. (Few file systems are so kind.)
	StayDirty SyncFault = ""
	// CleanKept: the pages count as clean, so the next sync succeeds without writing them; reads see the new bytes.
	CleanKept SyncFault = "clean-kept"
	// CleanReverted: likewise, and reads see the old bytes again.
	CleanReverted SyncFault = "clean-reverted"
)

// EIO and ENOSPC are errors for a [Fault].
var (
	EIO    error = syscall.EIO
	ENOSPC       = fullDisk()
)

// fullDisk is the error that the operating system's file system makes of a full disk.
func fullDisk() error { return fmt.Errorf("%w: %w", env.ErrNoSpace, syscall.ENOSPC) }

// FailNth makes the n-th call, counting from 1 those of the given kinds (all if none is given) that are made from now on,
// fail so. All others succeed.
func FailNth(n int, f Fault, ops ...Op) func(Call) *Fault {
	return failFrom(n, n, f, ops)
}

// FailFrom is FailNth for the n-th call and every one after it.
func FailFrom(n int, f Fault, ops ...Op) func(Call) *Fault {
	return failFrom(n, math.MaxInt, f, ops)
}

func failFrom(first, last int, f Fault, ops []Op) func(Call) *Fault {
	var calls atomic.Int64
	return func(c Call) *Fault {
		match := len(ops) == 0
		for _, op := range ops {
			match = match || op == c.Op
		}
		if !match {
			return nil
		}
		seen := int(calls.Add(1))
		if seen < first || seen > last {
			return nil
		}
		g := f
		return &g
	}
}

// call is a running call.
type call struct {
	Call
	fs    *FS
	fault *Fault
	by    *origin
}

// begin counts the call, lets others run, and asks what goes wrong with it.
func (d *FS) begin(what Call) *call {
	if d.yield != nil {
		d.yield("fs." + string(what.Op))
	}
	d.mu.Lock()
	d.calls++
	what.N = d.calls
	d.mu.Unlock()
	c := &call{Call: what, fs: d}
	c.step(Before, nil)
	if d.opt.Hooks.Fault != nil {
		c.fault = d.opt.Hooks.Fault(c.Call)
	}
	return c
}

// step tells of a step.
func (c *call) step(when When, data []byte) {
	if w := c.fs.opt.Hooks.Watch; w != nil && c.Op.Mutates() {
		w(Event{Call: c.Call, When: when, Data: data})
	}
	if c.fs.yield != nil && (when == Part || when == Inside) {
		c.fs.yield("fs." + string(c.Op) + "." + string(when))
	}
}

// run is a call that is done in one step, under the lock.
func (c *call) run(f func() error) error {
	if c.fault != nil && c.fault.Err != nil {
		return c.end(c.fault.Err)
	}
	c.fs.mu.Lock()
	err := f()
	c.fs.mu.Unlock()
	return c.end(err)
}

// end tells of the end and dresses the error.
func (c *call) end(err error) error {
	if err != nil {
		var p *fs.PathError
		if !errors.As(err, &p) {
			err = pathErr(c.Op, c.Path, err)
		}
	}
	if w := c.fs.opt.Hooks.Watch; w != nil && c.Op.Mutates() {
		w(Event{Call: c.Call, When: After, Err: err})
	}
	if c.fs.yield != nil && c.Op.Mutates() {
		c.fs.yield("fs." + string(c.Op) + ".done")
	}
	return err
}

// origin is who did something that is pending.
type origin struct {
	Call
	label string
	stack [16]uintptr
}

// origin is made once a call, when it first leaves something pending.
func (c *call) origin() *origin {
	if c.by == nil && !c.fs.opt.Forgetful {
		c.by = &origin{Call: c.Call}
		if c.fs.caller != nil {
			c.by.label = c.fs.caller()
		}
		runtime.Callers(2, c.by.stack[:])
	}
	return c.by
}

// String is the call, its label, and the callers outside of this package.
func (o *origin) String() string {
	var b strings.Builder
	b.WriteString(o.Call.String())
	if o.label != "" {
		fmt.Fprintf(&b, " (%s)", o.label)
	}
	frames := runtime.CallersFrames(o.stack[:])
	for {
		f, more := frames.Next()
		inside := strings.Contains(f.Function, "/simfs.(*") || strings.HasPrefix(f.Function, "runtime.")
		if f.Function != "" && !inside {
			fmt.Fprintf(&b, "\n      %s\n        %s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
