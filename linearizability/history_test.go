package linearizability

import (
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
)

var (
	histories = flag.Int("histories", 260, "how many histories are made and checked in both worlds (5000: ten minutes; more want -timeout, too)")
	only      = flag.Uint64("seed", 0, "make the history of this seed only")
	from      = flag.Uint64("from", 1, "the first seed")
)

// served is how many of the histories are of the real server, which take fifty times as long.
func served() int { return min(*histories/13, 20+*histories/100) }

// seeds are those of a test that makes n histories.
func seeds(n int) (first, last uint64) {
	if *only != 0 {
		return *only, *only
	}
	return *from, *from + uint64(n) - 1
}

// totals of many histories.
type totals struct {
	mu                                           sync.Mutex
	histories, operations, crashes, unknown, cut int
	failures                                     int
}

func (s *totals) add(h *History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histories++
	s.operations += len(h.Ops)
	s.crashes += h.Crashes
	s.failures += h.Failures
	for _, op := range h.Ops {
		switch {
		case op.Unknown:
			s.unknown++
		case op.Kind == Scan && h.Workload == "bulk":
			if cutGroup(op.Docs) {
				s.cut++
			}
		}
	}
}

// cutGroup says whether a scan saw a group with a first large document and without its third: one that was being inserted.
func cutGroup(docs []Doc) bool {
	have := map[int64]int{}
	for _, d := range docs {
		have[d.ID/bulkStep]++
	}
	for group, n := range have {
		if group%3 == 0 && n == 2 {
			return true
		}
	}
	return false
}

func (s *totals) report(t *testing.T) {
	t.Logf("%d histories, %d operations (%d unknown, %d of them since a sync failed), %d crashes, %d scans that saw a part of an insert",
		s.histories, s.operations, s.unknown, s.failures, s.crashes, s.cut)
	if s.crashes < s.histories || s.unknown == 0 {
		t.Error("a history without a crash, or no operation that is unknown")
	}
}

// judge checks a history and says how to make it again.
func judge(t *testing.T, h *History, err error, test string) {
	t.Helper()
	if err == nil {
		err = Check(h, "")
	}
	if err != nil {
		t.Errorf("%v\nagain: go test ./linearizability -run '^%s$' -args -seed %d", err, test, h.Seed)
	}
}

// Every history of the simulated engine has an order that explains it.
func TestSimulatedEngineIsLinearizable(t *testing.T) {
	var sum totals
	var wg sync.WaitGroup
	work := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range work {
				h, err := Simulate(seed, "")
				judge(t, h, err, t.Name())
				sum.add(h)
			}
		})
	}
	first, last := seeds(*histories - served())
	for seed := first; seed <= last && !t.Failed(); seed++ {
		work <- seed
	}
	close(work)
	wg.Wait()
	sum.report(t)
}

// Every history of the real server, killed and started again, has an order that explains it.
func TestKilledServerIsLinearizable(t *testing.T) {
	program := filepath.Join(t.TempDir(), "multiforadb")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/multiforadb/multiforadb/cmd/multiforadb").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sum totals
	first, last := seeds(served())
	for seed := first; seed <= last && !t.Failed(); seed++ {
		h, err := Serve(program, t.TempDir(), seed, "")
		judge(t, h, err, t.Name())
		sum.add(h)
	}
	sum.report(t)
}

// A seed makes the same history each time, timestamps and all.
func TestSimulatedHistoryRepeats(t *testing.T) {
	for seed := range uint64(2 * len(workloads)) {
		a, err1 := Simulate(seed, "")
		b, err2 := Simulate(seed, "")
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: %v and %v differ", seed, a, b)
		}
	}
}
