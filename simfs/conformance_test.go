package simfs

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

// The same scripts run on the simulated disk and on the operating system's, and must say the same. A line is a command;
// what it says stands below it, behind ">". Files are opened under handles, mappings under the handle of their file.

var rewrite = flag.Bool("rewrite", false, "write what the simulated disk says into the scripts")

// machine interprets commands.
type machine struct {
	fs    env.FS
	root  string
	files map[string]env.File
	maps  map[string]env.Mapping
	locks map[string]io.Closer
}

func newMachine(f env.FS, root string) *machine {
	return &machine{fs: f, root: root, files: map[string]env.File{}, maps: map[string]env.Mapping{}, locks: map[string]io.Closer{}}
}

func (m *machine) close() {
	for _, p := range m.maps {
		p.Unmap()
	}
	for _, f := range m.files {
		f.Close()
	}
	for _, l := range m.locks {
		l.Close()
	}
}

// class names an error in the words that both file systems share.
func class(err error) string {
	for _, c := range []struct {
		is   error
		name string
	}{
		{io.EOF, "end of file"}, {fs.ErrNotExist, "does not exist"}, {fs.ErrExist, "exists"}, {fs.ErrClosed, "is closed"},
		{fs.ErrPermission, "read-only"}, {env.ErrLocked, "is locked"}, {env.ErrFault, "faults"}, {env.ErrNoSpace, "no space"},
		{syscall.ENOTDIR, "is no directory"}, {syscall.EISDIR, "is a directory"}, {syscall.ENOMEM, "no addresses"},
		{fs.ErrInvalid, "invalid"}, {syscall.EINVAL, "invalid"},
	} {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return err.Error()
}

// runs shows bytes as runs: "a3 .2" are three a and two zeros.
func runs(p []byte) string {
	var out []string
	for i := 0; i < len(p); {
		n := len(p[i:]) - len(bytes.TrimLeft(p[i:], string(p[i:i+1])))
		c := string(p[i : i+1])
		if c == "\x00" {
			c = "."
		}
		out = append(out, fmt.Sprint(c, n))
		i += n
	}
	return strings.Join(out, " ")
}

func (m *machine) do(line string) (said string) {
	said, err := m.try(strings.Fields(line))
	if err != nil {
		said = strings.TrimSpace(said + " " + class(err))
	}
	if said == "" {
		said = "ok"
	}
	return said
}

func (m *machine) try(w []string) (said string, err error) {
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	num := func(i int) int64 {
		n, _ := strconv.ParseInt(arg(i), 0, 64)
		return n
	}
	name := filepath.Join(m.root, arg(1))
	switch w[0] {
	case "open":
		flag := map[string]env.OpenFlag{
			"": env.OpenExisting, "create": env.OpenCreate, "new": env.OpenExclusive, "read": env.OpenReadOnly,
		}[arg(3)]
		f, err := m.fs.Open(filepath.Join(m.root, arg(2)), flag)
		if err == nil {
			m.files[arg(1)] = f
		}
		return "", err
	case "rename":
		return "", m.fs.Rename(name, filepath.Join(m.root, arg(2)))
	case "remove":
		return "", m.fs.Remove(name)
	case "mkdir":
		return "", m.fs.Mkdir(name)
	case "syncdir":
		return "", m.fs.SyncDir(name)
	case "list":
		names, err := m.fs.List(name)
		return strings.Join(names, " "), err
	case "stat":
		info, err := m.fs.Stat(name)
		if info.IsDir {
			return "directory", err
		}
		return fmt.Sprint(info.Size), err
	case "lock":
		l, err := m.fs.Lock(name)
		if err == nil {
			m.locks[arg(1)] = l
		}
		return "", err
	case "unlock":
		return "", m.locks[arg(1)].Close()
	}
	f := m.files[arg(1)]
	if f == nil {
		return "no such handle", nil
	}
	switch w[0] {
	case "write": // handle offset letter count
		n, err := f.WriteAt(bytes.Repeat([]byte(arg(3)), int(num(4))), num(2))
		return fmt.Sprint(n), err
	case "read": // handle offset count
		p := make([]byte, num(3))
		n, err := f.ReadAt(p, num(2))
		return runs(p[:n]), err
	case "size":
		n, err := f.Size()
		return fmt.Sprint(n), err
	case "truncate":
		return "", f.Truncate(num(2))
	case "allocate":
		return "", f.Allocate(num(2), num(3))
	case "punch":
		return "", f.PunchHole(num(2), num(3))
	case "sync":
		return "", f.Datasync()
	case "close":
		return "", f.Close()
	case "map":
		p, err := f.Map(num(2))
		if err == nil {
			m.maps[arg(1)] = p
		}
		return "", err
	}
	p := m.maps[arg(1)]
	if p == nil {
		return "no such mapping", nil
	}
	switch w[0] {
	case "mapped":
		return fmt.Sprint(len(p.Bytes())), nil
	case "grow":
		return "", p.Grow(num(2))
	case "load": // handle offset count
		err = p.Guard(func() error {
			said = runs(bytes.Clone(p.Bytes()[num(2) : num(2)+num(3)]))
			return nil
		})
		return said, err
	case "store":
		return "", p.Guard(func() error { p.Bytes()[num(2)] = 1; return nil })
	case "advise":
		return "", p.Advise(num(2), num(3), env.Advice(num(4)))
	case "unmap":
		return "", p.Unmap()
	}
	return "unknown command", nil
}

func TestConformanceScripts(t *testing.T) {
	paths := must(filepath.Glob("testdata/*.txt"))
	if len(paths) == 0 {
		t.Fatal("no scripts")
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_linux.txt") && runtime.GOOS != "linux" {
			continue
		}
		text := string(must(os.ReadFile(path)))
		d := New(Options{})
		sim, forgetful, real := newMachine(d, "/"), newMachine(Memory().FS, "/"), newMachine(env.Real().FS, t.TempDir())
		var out strings.Builder
		for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if strings.HasPrefix(line, ">") {
				continue
			}
			fmt.Fprintln(&out, line)
			if line == "" || line[0] == '#' {
				continue
			}
			said := sim.do(line)
			fmt.Fprintln(&out, ">", said)
			if really := real.do(line); really != said {
				t.Errorf("%s:%d: %s\n simulated: %s\n in truth:  %s", path, n+1, line, said, really)
			}
			if memory := forgetful.do(line); memory != said {
				t.Errorf("%s:%d: %s\n simulated: %s\n in memory: %s", path, n+1, line, said, memory)
			}
		}
		for _, m := range []*machine{sim, forgetful, real} {
			m.close()
		}
		d.Discard()
		if *rewrite {
			check(os.WriteFile(path, []byte(out.String()), 0o644))
		} else if out.String() != text {
			t.Errorf("%s: the script should read\n%s", path, out.String())
		}
	}
}

// TestRandomCallsConform makes up commands.
func TestRandomCallsConform(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := New(Options{})
		sim, real := newMachine(d, "/"), newMachine(env.Real().FS, t.TempDir())
		handle := func() string { return string(rune('f' + r.IntN(3))) }
		name := func() string { return []string{"a", "b", "sub/c"}[r.IntN(3)] }
		at := func() int { return []int{0, 511, 512, 4095, 4096, 5000, 8192, 12288, 20000}[r.IntN(9)] }
		makers := []func() string{
			func() string {
				return "open " + handle() + " " + name() + " " + []string{"", "create", "new", "read"}[r.IntN(4)]
			},
			func() string {
				return fmt.Sprint("write ", handle(), " ", at(), " ", string(rune('a'+r.IntN(26))), " ", at())
			},
			func() string { return fmt.Sprint("read ", handle(), " ", at(), " ", at()) },
			func() string { return fmt.Sprint("punch ", handle(), " ", at(), " ", at()) },
			func() string { return fmt.Sprint("allocate ", handle(), " ", at(), " ", at()) },
			func() string { return fmt.Sprint("truncate ", handle(), " ", at()) },
			func() string { return "size " + handle() },
			func() string { return "sync " + handle() },
			func() string {
				return "rename " + []string{"a b", "b a", "a a", "sub/c sub/d", "sub/d sub/c"}[r.IntN(5)]
			},
			func() string { return "remove " + name() },
			func() string { return "list " + []string{".", "sub", "none"}[r.IntN(3)] },
			func() string { return "stat " + name() },
			func() string { return "mkdir sub" },
			func() string { return fmt.Sprint("map ", handle(), " ", 1<<20) },
			func() string { return fmt.Sprint("grow ", handle(), " ", at()) },
			func() string { return fmt.Sprint("mapped ", handle()) },
		}
		var script []string
		for range 300 {
			line := makers[r.IntN(len(makers))]()
			if h := strings.Fields(line); h[0] == "map" && sim.maps[h[1]] != nil || h[0] == "open" && sim.files[h[1]] != nil {
				line = "load " + h[1] + " 0 0"
				if p := sim.maps[h[1]]; p != nil && len(p.Bytes()) > 0 {
					line = fmt.Sprint("load ", h[1], " ", r.IntN(len(p.Bytes())), " 1")
				}
			}
			script = append(script, line)
			if a, b := sim.do(line), real.do(line); a != b {
				t.Fatalf("seed %d: %s\n simulated: %s\n in truth:  %s", seed, strings.Join(script, "\n"), a, b)
			}
		}
		sim.close()
		real.close()
		d.Discard()
	}
}

func TestAllocatedSpaceConforms(t *testing.T) {
	for _, c := range []struct {
		fs   env.FS
		root string
	}{{New(Options{}), "/"}, {env.Real().FS, t.TempDir()}} {
		path := filepath.Join(c.root, "f")
		f := must(c.fs.Open(path, env.OpenCreate))
		allocated := func() int64 { check(f.Datasync()); return must(c.fs.Stat(path)).Allocated }
		check(f.Allocate(0, 1<<20))
		if n := allocated(); n < 1<<20 {
			t.Errorf("%T: %d bytes after allocating 1 MiB", c.fs, n)
		}
		check(f.PunchHole(0, 1<<20))
		if n := allocated(); n > 64<<10 {
			t.Errorf("%T: %d bytes after punching all of it", c.fs, n)
		}
		if must(f.Size()) != 1<<20 {
			t.Errorf("%T: the hole changed the size", c.fs)
		}
		check(f.Close())
	}
}
