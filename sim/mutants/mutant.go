// Package mutants puts faults into the engine on purpose, to see whether the tests that guard it notice. A mechanism whose
// removal nobody notices is not tested.
//
// A mutant is a file <name>.txt in this directory: a few fields, the exact text that it takes out of one source file, where
// it occurs once, and what it puts there. It is built with an overlay, so that the product carries no trace of it.
//
//	what: the log is not synced before its writers are told
//	file: engine/storage/commit.go
//	seen by: judge ack
//	run: TestStoreFollowsModel|TestStoreSurvivesCrashes
//	seeds: 4
//	--- old
//				err = s.log.Sync()
//	--- new
//
// Fields: what (is broken), file, seen by (who should notice), package (whose tests are run; engine/storage if left out), run
// (which of them; all if left out), seeds (the budget; 4). With a field sim, which is a profile and a program (storage if left out), no
// tests are run, but as many seeds of these by the command sim. A mutant is killed if the tests or a seed fail, and has survived if not.
// One whose old lines are not there any more is stale, and one that does not build is broken: both are failures,
// since they prove nothing.
//
// The engine without a mutant must pass the same tests, on the same seeds: see Controls.
package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mutant is one fault.
type Mutant struct {
	Name     string
	What     string
	File     string // from the module's root
	SeenBy   string
	Package  string // from the module's root
	Run      string
	Sim      string // the profile, and the program, of the runs that judge it instead of tests
	Seeds    int
	Old, New string
}

// Verdict is what became of a mutant.
type Verdict string

const (
	Killed   Verdict = "killed"
	Survived Verdict = "SURVIVED"
	Stale    Verdict = "STALE"  // its old lines are not in the file, or not once
	Broken   Verdict = "BROKEN" // it does not build
)

// Result is the outcome for one mutant.
type Result struct {
	Mutant
	Verdict Verdict
	Seed    string // that killed it, or "-" if the test has none
	Test    string // that failed
	Judge   string // which of package judge's judges spoke, if one did
	Took    time.Duration
	Output  string
}

// String is one line.
func (r Result) String() string {
	by := r.Test
	if r.Judge != "" {
		by += " (" + r.Judge + ")"
	}
	return fmt.Sprintf("%-9s %-34s seed %-6s %5.1fs  %s", r.Verdict, r.Name, r.Seed, r.Took.Seconds(), by)
}

// Load reads all mutants in dir, in the order of their names.
func Load(dir string) ([]Mutant, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []Mutant
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := Parse(strings.TrimSuffix(filepath.Base(name), ".txt"), string(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// Parse reads a mutant's file.
func Parse(name, text string) (Mutant, error) {
	m := Mutant{Name: name, Package: "engine/storage", Seeds: 4}
	head, rest, ok := strings.Cut(text, "--- old\n")
	if !ok {
		return m, errors.New("no old lines")
	}
	m.Old, m.New, ok = strings.Cut(rest, "--- new\n")
	if !ok || m.Old == "" {
		return m, errors.New("no old lines, or no line --- new")
	}
	// The last line's end does not count, so that a part of a line can be said.
	m.Old, m.New = strings.TrimSuffix(m.Old, "\n"), strings.TrimSuffix(m.New, "\n")
	for line := range strings.Lines(head) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return m, fmt.Errorf("a field has no value: %q", line)
		}
		switch key {
		case "what":
			m.What = value
		case "file":
			m.File = value
		case "seen by":
			m.SeenBy = value
		case "package":
			m.Package = value
		case "run":
			m.Run = value
		case "sim":
			m.Sim, m.Package = value, "cmd/sim"
		case "seeds":
			n, err := strconv.Atoi(value)
			if err != nil {
				return m, err
			}
			m.Seeds = n
		default:
			return m, fmt.Errorf("no such field: %q", key)
		}
	}
	if m.What == "" || m.File == "" || m.SeenBy == "" {
		return m, errors.New("what, file and seen by must be said")
	}
	return m, nil
}

// Apply gives the source with the fault in it. It is false if the old lines do not stand there exactly once.
func (m Mutant) Apply(source string) (string, bool) {
	if strings.Count(source, m.Old) != 1 {
		return "", false
	}
	return strings.Replace(source, m.Old, m.New, 1), true
}

// Runner builds mutants of the module at Root and runs its tests against them.
type Runner struct {
	Root    string
	Temp    string        // for overlays and binaries
	Start   uint64        // the first seed
	Timeout time.Duration // of one mutant's tests
}

// Controls are the tests and seeds that judge the mutants, for the engine without one: each must survive.
func Controls(all []Mutant) []Mutant {
	var out []Mutant
	for _, m := range all {
		at := slices.IndexFunc(out, func(c Mutant) bool { return c.Package == m.Package && c.Run == m.Run && c.Sim == m.Sim })
		if at < 0 {
			at = len(out)
			out = append(out, Mutant{Name: fmt.Sprintf("unmutated-%d", at+1), What: "nothing", Package: m.Package, Run: m.Run, Sim: m.Sim})
		}
		out[at].Seeds = max(out[at].Seeds, m.Seeds)
	}
	return out
}

// Run says what becomes of m.
func (r Runner) Run(m Mutant) Result {
	began := time.Now()
	out := Result{Mutant: m, Seed: "-"}
	r.run(&out)
	out.Took = time.Since(began)
	return out
}

func (r Runner) run(out *Result) {
	m := out.Mutant
	fail := func(v Verdict, text string) { out.Verdict, out.Output = v, text }
	binary := filepath.Join(r.Temp, m.Name+".test")
	args := []string{"test", "-c", "-o", binary}
	if m.Sim != "" {
		args = []string{"build", "-o", binary}
	}
	if m.File != "" {
		path := filepath.Join(r.Root, m.File)
		source, err := os.ReadFile(path)
		if err != nil {
			fail(Stale, err.Error())
			return
		}
		mutated, ok := m.Apply(string(source))
		if !ok {
			fail(Stale, fmt.Sprintf("%s has these lines %d times:\n%s", m.File, strings.Count(string(source), m.Old), m.Old))
			return
		}
		overlay, err := r.overlay(m.Name, path, mutated)
		if err != nil {
			fail(Broken, err.Error())
			return
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.Command("go", append(args, "./"+m.Package)...)
	build.Dir = r.Root
	if text, err := build.CombinedOutput(); err != nil {
		fail(Broken, string(text))
		return
	}
	defer os.Remove(binary)
	text, failed := r.judge(m, binary)
	if !failed {
		fail(Survived, string(text))
		return
	}
	fail(Killed, string(text))
	out.Test, out.Seed, out.Judge = find(failedTest, text, "panic"), find(failedSeed, text, "-"), find(spoken, text, "")
	if m.Sim != "" {
		out.Test = "sim run, " + m.Sim
	}
	if bytes.Contains(text, []byte("panic: test timed out")) || bytes.Contains(text, []byte(hangs)) {
		out.Test += " (hangs)"
	}
}

// hangs is added to the output of a command that does not end.
const hangs = "killed: it does not end"

// judge runs what judges m, until it fails.
func (r Runner) judge(m Mutant, binary string) (text []byte, failed bool) {
	cmd := exec.Command(binary, r.flags(m)...)
	cmd.Dir = filepath.Join(r.Root, m.Package)
	var out bytes.Buffer
	first := &firstFailure{Buffer: &out}
	cmd.Stdout, cmd.Stderr = first, first
	if err := cmd.Start(); err != nil {
		return []byte(err.Error()), true
	}
	first.stop = func() { _ = cmd.Process.Kill() }
	late := time.AfterFunc(r.Timeout+time.Minute/2, func() { _ = cmd.Process.Kill() }) // tests look after their time themselves
	err := cmd.Wait()
	if !late.Stop() {
		out.WriteString(hangs)
	}
	return out.Bytes(), err != nil
}

// firstFailure stops a command that goes on after a seed has failed.
type firstFailure struct {
	*bytes.Buffer
	stop func()
}

func (f *firstFailure) Write(p []byte) (int, error) {
	n, err := f.Buffer.Write(p)
	if i := bytes.Index(f.Bytes(), []byte("FAILED  seed")); i >= 0 && bytes.Contains(f.Bytes()[i:], []byte("replay:")) {
		f.stop()
	}
	return n, err
}

// rapidTests are packages whose tests draw with rapid, which has flags of its own.
var rapidTests = []string{"engine/storage", "engine/storage/page", "engine/catalog"}

// flags are the arguments of what judges m.
func (r Runner) flags(m Mutant) []string {
	seeds, start := strconv.Itoa(m.Seeds), strconv.FormatUint(r.Start, 10)
	if m.Sim != "" {
		profile, program, given := strings.Cut(m.Sim, " ")
		if !given {
			program = "storage"
		}
		return []string{"run", "--profile", profile, "--program", program, "--seed", start, "--seeds", seeds, "--jobs", "1"}
	}
	flags := []string{"-test.failfast", "-test.timeout", r.Timeout.String()}
	if m.Run != "" {
		flags = append(flags, "-test.run", "^("+m.Run+")$")
	}
	if slices.Contains(rapidTests, m.Package) {
		flags = append(flags, "-rapid.nofailfile", "-rapid.shrinktime", "1s", "-rapid.seed", start)
	}
	switch m.Package {
	case "engine/storage":
		flags = append(flags, "-storage.seeds", seeds, "-storage.from", start)
	case "linearizability":
		flags = append(flags, "-histories", seeds, "-from", start)
	}
	return flags
}

// overlay writes the mutated file, and the file that tells the compiler of it.
func (r Runner) overlay(name, path, mutated string) (string, error) {
	source, overlay := filepath.Join(r.Temp, name+".go"), filepath.Join(r.Temp, name+".json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: source}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(source, []byte(mutated), 0o644), os.WriteFile(overlay, b, 0o644))
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\w+)`)
	failedSeed = regexp.MustCompile(`seed[= ](\d+)`)
	spoken     = regexp.MustCompile(`judge (ack|publish|log removal|immutability)`)
)

func find(re *regexp.Regexp, text []byte, otherwise string) string {
	if m := re.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return otherwise
}
