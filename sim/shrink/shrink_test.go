package shrink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/workload"
	"github.com/multiforadb/multiforadb/simfs"
)

// toy is a database of one file: each client counts up a number in a sector of its own, and what has returned must be durable. It is
// broken on purpose, in one of two ways.
type toy struct {
	f *workload.Frame
	r *rand.Rand
	// unsynced: a number that can be divided by 4 is acknowledged before it is durable.
	unsynced bool
	// racy: all clients count up one number in memory, too, and look away between reading and writing it.
	racy bool

	mu     sync.Mutex
	acked  [clients]uint64
	shared int
	done   int
}

const (
	clients = 4
	each    = 10
	sector  = 512
	name    = workload.Dir + "/toy"
)

func (p *toy) Main(w *sim.World) {
	if err := w.Env().FS.Mkdir(workload.Dir); err != nil {
		w.Fail(err)
	}
	file, err := w.Env().FS.Open(name, env.OpenCreate)
	if err == nil {
		err = errors.Join(file.Allocate(0, clients*sector), file.Datasync(), w.Env().FS.SyncDir(workload.Dir))
	}
	if err != nil {
		w.Fail(err)
	}
	var tasks []func()
	for k := range clients {
		tasks = append(tasks, func() {
			for i := range each {
				p.f.Do(fmt.Sprint("client ", k), i, "count up", func() string { return fmt.Sprint(p.count(w, file, k)) })
			}
		})
	}
	w.Parallel("client", tasks...)
	if p.racy && p.shared != p.done {
		w.Fail(fmt.Errorf("%d operations made %d", p.done, p.shared))
	}
}

func (p *toy) count(w *sim.World, file env.File, k int) uint64 {
	n := p.acked[k] + 1
	if p.racy {
		before := p.shared
		w.Yield("between")
		p.shared = before + 1
		p.done++
	}
	_, err := file.WriteAt(binary.LittleEndian.AppendUint64(nil, n), int64(k)*sector)
	if err == nil && !(p.unsynced && n%4 == 0) {
		err = file.Datasync()
	}
	if err != nil {
		w.Fail(err)
	}
	p.mu.Lock()
	p.acked[k] = n
	p.mu.Unlock()
	return n
}

func (p *toy) Operations() int { return p.done }

func (p *toy) Known() workload.Known {
	p.mu.Lock()
	defer p.mu.Unlock()
	return state(p.acked)
}

// state is what must be there, and the open database, which has nothing to close.
type state [clients]uint64

func (s state) Open(e *env.Env) (workload.Opened, error) {
	file, err := e.FS.Open(name, env.OpenExisting)
	if err != nil {
		if s == (state{}) {
			return s, nil
		}
		return nil, err
	}
	defer file.Close()
	for k := range clients {
		var b [8]byte
		if _, err := file.ReadAt(b[:], int64(k)*sector); err != nil && s[k] > 0 {
			return nil, err
		}
		if n := binary.LittleEndian.Uint64(b[:]); n < s[k] {
			return nil, fmt.Errorf("client %d: %d is there, %d was acknowledged", k, n, s[k])
		}
	}
	return s, nil
}

func (s state) Damaged(*env.Env) error    { return nil }
func (s state) Known(bool) workload.Known { return state{} }
func (s state) LiveOn(*simfs.FS) error    { return nil }
func (s state) Close() error              { return nil }

func runner(unsynced, racy bool) func(workload.Case, workload.Watch) workload.Result {
	return func(c workload.Case, told workload.Watch) workload.Result {
		return workload.RunProgram(func(f *workload.Frame, r *rand.Rand) (workload.Program, string) {
			return &toy{f: f, r: r, unsynced: unsynced, racy: racy}, "toy"
		}, c, told)
	}
}

// failing gives the first seed that fails.
func failing(t *testing.T, run func(workload.Case, workload.Watch) workload.Result) workload.Case {
	t.Helper()
	for seed := range uint64(200) {
		c := workload.Case{Seed: seed, Profile: workload.Recoverable}
		if r := run(c, workload.Watch{}); r.Err != nil && len(r.Ops) > 8 {
			return c
		}
	}
	t.Fatal("no seed fails")
	panic("unreachable")
}

func TestUnsyncedWriteShrinksToFourOperations(t *testing.T) {
	run := runner(true, false)
	s, err := Shrink(failing(t, run), Options{Run: run})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, then %v, in %d runs", s.Before, s.After, s.Runs)
	if s.After.Operations != 4 || s.After.Switches != 0 || s.After.Lost != 1 {
		t.Errorf("one client that counts to 4 needs 4 operations, no switch, and one lost sector: %v", s.After)
	}
	if !strings.Contains(s.Lost, "toy") || !slices.Contains([]string{"image: client #: # is there, # was acknowledged"}, s.Result.Class) {
		t.Errorf("class %q; lost:\n%s", s.Result.Class, s.Lost)
	}
	again := run(s.Case, workload.Watch{})
	if again.Err == nil || again.Hash != s.Result.Hash || again.Images != 1 {
		t.Errorf("the case does not replay: %v", again.Err)
	}
}

func TestLostUpdateShrinksToTwoOperations(t *testing.T) {
	run := runner(false, true)
	s, err := Shrink(failing(t, run), Options{Run: run})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, then %v, in %d runs", s.Before, s.After, s.Runs)
	if s.After.Operations != 2 || s.After.Switches > 2 {
		t.Errorf("a lost update needs two operations and a switch away and back: %v", s.After)
	}
}

func TestGreenRunIsNotShrunk(t *testing.T) {
	if _, err := Shrink(workload.Case{Profile: workload.Recoverable}, Options{Run: runner(false, false)}); !errors.Is(err, ErrGreen) {
		t.Errorf("got %v", err)
	}
}

func TestLeast(t *testing.T) {
	for want := range 1 << 6 {
		items := []int{0, 1, 2, 3, 4, 5}
		got := least(items, func(some []int) bool {
			mask := 0
			for _, i := range some {
				mask |= 1 << i
			}
			return mask&want == want
		})
		for _, i := range items {
			if slices.Contains(got, i) != (want>>i&1 == 1) {
				t.Fatalf("mask %b: %v is left", want, got)
			}
		}
	}
}
