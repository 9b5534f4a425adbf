package env

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func openReal(t *testing.T) (*Env, File, string) {
	t.Helper()
	e := Real()
	path := filepath.Join(t.TempDir(), "a", "b", "file")
	if err := e.FS.Mkdir(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	f, err := e.FS.Open(path, OpenExclusive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return e, f, path
}

func TestMappingGrowsInPlace(t *testing.T) {
	_, f, _ := openReal(t)
	m, err := f.Map(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Bytes()) != 0 {
		t.Fatalf("%d bytes of an empty file", len(m.Bytes()))
	}
	if err := m.Grow(1); !errors.Is(err, fs.ErrInvalid) {
		t.Fatalf("growing beyond the end of the file: %v", err)
	}
	const step = 10_000 // no multiple of a page
	var first *byte
	for i := range 20 {
		p := bytes.Repeat([]byte{byte(i + 1)}, step)
		if _, err := f.WriteAt(p, int64(i)*step); err != nil {
			t.Fatal(err)
		}
		if err := m.Grow(int64(i+1) * step); err != nil {
			t.Fatal(err)
		}
		b := m.Bytes()
		if first == nil {
			first = &b[0]
		}
		if first != &b[0] || len(b) != (i+1)*step || !bytes.Equal(b[i*step:], p) {
			t.Fatalf("step %d: moved, or wrong content", i)
		}
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := m.Grow(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := m.Advise(100, 1<<20, AdviseDontNeed); err != nil {
		t.Fatal(err)
	}
	if b := m.Bytes(); b[0] != 1 || b[1<<20-1] != 0 {
		t.Fatal("wrong content after Advise")
	}
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	if err := m.Unmap(); !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("second Unmap: %v", err)
	}
}

var sink byte

func TestGuardCatchesFaultsOfMappingsOnly(t *testing.T) {
	_, f, _ := openReal(t)
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	m, err := f.Map(1 << 24)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := m.Guard(func() error { sink = b[1<<19]; return nil }); !errors.Is(err, ErrFault) {
		t.Fatalf("a load behind the end of the file: %v", err)
	}
	if debug.SetPanicOnFault(false) {
		t.Fatal("the old setting was not restored")
	}
	if err := m.Guard(func() error { return io.ErrNoProgress }); err != io.ErrNoProgress {
		t.Fatalf("an ordinary error became %v", err)
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := m.Guard(func() error { b[0] = 1; return nil }); !errors.Is(err, ErrFault) {
		t.Fatalf("a store through the mapping: %v", err)
	}
	passes := func(name, want string, g func()) {
		t.Helper()
		defer func() {
			r := recover()
			if e, ok := r.(error); ok {
				r = e.Error()
			}
			if s, _ := r.(string); !strings.Contains(s, want) {
				t.Errorf("%s: panic %v, not %q", name, r, want)
			}
		}()
		m.Guard(func() error { g(); return nil })
	}
	passes("panic", "mine", func() { panic("mine") })
	var p *File
	passes("nil", "nil pointer", func() { (*p).Close() })
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	passes("use after unmap", "invalid memory address", func() { sink = b[1<<19] })
}

func TestLockIsHeldOnce(t *testing.T) {
	e, _, path := openReal(t)
	l, err := e.FS.Lock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.FS.Lock(path + ".lock"); !errors.Is(err, ErrLocked) {
		t.Fatalf("second lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = e.FS.Lock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestAllocateByZerosFillsHolesOnly(t *testing.T) {
	_, f, _ := openReal(t)
	if _, err := f.WriteAt([]byte("data"), 1<<20); err != nil {
		t.Fatal(err)
	}
	fd := f.(*osFile).fd
	if err := allocateZeros(fd, 1000, 3<<20); err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil || size != 1000+3<<20 {
		t.Fatalf("size %d, %v", size, err)
	}
	p := make([]byte, size)
	if _, err := f.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, size)
	copy(want[1<<20:], "data")
	if !bytes.Equal(p, want) {
		t.Fatal("content changed")
	}
	if _, err := f.ReadAt(p[:2], size-1); err != io.EOF {
		t.Fatalf("read over the end: %v", err)
	}
}

func TestRealClockAndRand(t *testing.T) {
	e := Real()
	done := make(chan bool)
	e.Clock.AfterFunc(1, func() { close(done) })
	<-done
	if stop := e.Clock.AfterFunc(1<<40, func() {}); !stop() {
		t.Error("a pending timer did not stop")
	}
	a := e.Clock.Monotonic()
	if b := e.Clock.Monotonic(); b < a || e.Clock.Now().IsZero() {
		t.Error("time goes back")
	}
	if first, second := e.Rand.Uint64(), e.Rand.Uint64(); first == second {
		t.Error("random numbers repeat")
	}
}
