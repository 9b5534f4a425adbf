package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

// programs for the race detector, by name: the racy ones it must report, though their tasks never run at once.
var programs = map[string]struct {
	racy bool
	main func(w *World)
}{
	"unlocked": {true, func(w *World) {
		shared := 0
		w.Parallel("task", func() { shared++ }, func() { shared++ })
	}},
	"two locks": {true, func(w *World) {
		var a, b env.Mutex
		a.Init(w.Env(), env.RankNone, "a")
		b.Init(w.Env(), env.RankNone, "b")
		shared := 0
		w.Parallel("task", func() { a.Lock(); shared++; a.Unlock() }, func() { b.Lock(); shared++; b.Unlock() })
	}},
	"write under a read lock": {true, func(w *World) {
		var rw env.RWMutex
		rw.Init(w.Env(), env.RankNone, "rw")
		shared := 0
		w.Parallel("task", func() { rw.RLock(); shared++; rw.RUnlock() }, func() { rw.RLock(); shared++; rw.RUnlock() })
	}},
	"yields and timers": {true, func(w *World) {
		shared := 0
		w.Env().Clock.AfterFunc(1, func() { shared++ })
		w.Env().Clock.Sleep(1000)
		w.Yield("here")
		shared++
	}},
	"one lock": {false, func(w *World) {
		var a env.Mutex
		a.Init(w.Env(), env.RankNone, "a")
		shared := 0
		add := func() { a.Lock(); shared++; a.Unlock() }
		w.Parallel("task", add, add, func() {
			for !a.TryLock() {
				w.Yield("spin")
			}
			shared++
			a.Unlock()
		})
		shared++
	}},
	"a reader/writer lock": {false, func(w *World) {
		var rw env.RWMutex
		rw.Init(w.Env(), env.RankNone, "rw")
		shared := 0
		read := func() { rw.RLock(); _ = shared + 1; rw.RUnlock() }
		w.Parallel("task", read, func() { rw.Lock(); shared++; rw.Unlock() }, read, func() { rw.Lock(); shared++; rw.Unlock() })
	}},
	"a condition, a group, a timer": {false, func(w *World) {
		var mu env.Mutex
		var cond env.Cond
		mu.Init(w.Env(), env.RankNone, "mu")
		cond.Init(w.Env(), &mu, "cond")
		shared, ready := 0, false
		shared++
		w.Env().Clock.AfterFunc(1, func() { shared++; mu.Lock(); ready = true; mu.Unlock(); cond.Broadcast() })
		w.Parallel("task", func() {
			mu.Lock()
			for !ready {
				cond.Wait()
			}
			mu.Unlock()
			shared++
		})
		shared++
	}},
	"everything": {false, busy},
}

// raceProgram names the program that a child process runs.
const raceProgram = "SIM_RACE_PROGRAM"

func TestRaceProgram(t *testing.T) {
	if p, ok := programs[os.Getenv(raceProgram)]; ok {
		for seed := range uint64(20) {
			if r := Run(Options{Seed: seed, Policy: PolicyOf(seed)}, p.main); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
}

// TestRaceDetectorSeesThroughTheScheduler runs each program in a child process that is built with the race detector.
func TestRaceDetectorSeesThroughTheScheduler(t *testing.T) {
	if testing.Short() || os.Getenv(raceProgram) != "" {
		return
	}
	binary := t.TempDir() + "/race.test"
	if out, err := exec.Command("go", "test", "-race", "-c", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Logf("the race detector cannot be built here, so this is not tested: %v\n%s", err, out)
		return
	}
	for name, p := range programs {
		cmd := exec.Command(binary, "-test.run", "^TestRaceProgram$")
		cmd.Env = append(os.Environ(), raceProgram+"="+name)
		out, err := cmd.CombinedOutput()
		racy := strings.Contains(string(out), "DATA RACE")
		if racy != p.racy || (err != nil) != p.racy {
			t.Errorf("%s: a race was reported: %v, %v\n%.3000s", name, racy, err, out)
		}
	}
}
