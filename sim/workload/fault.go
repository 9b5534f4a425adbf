package workload

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/multiforadb/multiforadb/simfs"
)

// Fault is a call of the disk that fails: the n-th of its kind, or all from there on.
type Fault struct {
	how  simfs.Fault
	op   simfs.Op
	nth  int
	more bool

	mu    sync.Mutex
	armed bool
	seen  int
	hits  int
}

func (f *Fault) draw(r *rand.Rand, seed uint64) {
	f.op = []simfs.Op{simfs.OpSync, simfs.OpSync, simfs.OpWrite, simfs.OpSyncDir, simfs.OpAllocate, simfs.OpCreate, simfs.OpRename}[r.IntN(7)]
	f.nth, f.more = 1+r.IntN(50), r.IntN(4) == 0
	f.how = simfs.Fault{Err: simfs.EIO, Seed: seed}
	switch f.op {
	case simfs.OpSync:
		f.how.Sync = []simfs.SyncFault{simfs.StayDirty, simfs.CleanKept, simfs.CleanReverted}[r.IntN(3)]
		f.how.Written = []float64{0, 0.5, 1}[r.IntN(3)]
	case simfs.OpWrite:
		f.how.Short = []int64{0, 512, 4096}[r.IntN(3)]
		fallthrough
	case simfs.OpAllocate, simfs.OpCreate:
		if r.IntN(2) == 0 || f.op == simfs.OpAllocate {
			f.how.Err = simfs.ENOSPC
		}
	}
	if f.op != simfs.OpWrite && f.op != simfs.OpSync {
		f.nth = 1 + f.nth/8
	}
	if f.op == simfs.OpAllocate && f.how.Err == simfs.ENOSPC && r.IntN(4) > 0 {
		f.more = true // a full disk stays full
	}
}

func (f *Fault) String() string {
	if f.op == "" {
		return "none"
	}
	s := fmt.Sprintf("%d. %s: %v", f.nth, f.op, f.how.Err)
	if f.how.Sync != "" {
		s += fmt.Sprintf(" %s %v", f.how.Sync, f.how.Written)
	}
	if f.more {
		s += ", and all after it"
	}
	return s
}

// Arm begins to count calls.
func (f *Fault) Arm() {
	f.mu.Lock()
	f.armed = true
	f.mu.Unlock()
}

// Disarm lets all calls succeed from here on.
func (f *Fault) Disarm() {
	f.mu.Lock()
	f.armed = false
	f.mu.Unlock()
}

// Hit reports whether a call has failed.
func (f *Fault) Hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits > 0
}

// ask is the disk's hook.
func (f *Fault) ask(c simfs.Call) *simfs.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed || f.op == "" || c.Op != f.op {
		return nil
	}
	if f.seen++; f.seen < f.nth || f.seen > f.nth && !f.more {
		return nil
	}
	f.hits++
	how := f.how
	return &how
}
