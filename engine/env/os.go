package env

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Real is the environment of production: the operating system's files, clock and random numbers, and no scheduler.
func Real() *Env {
	return &Env{FS: osFS{}, Clock: RealClock(), Rand: RealRand()}
}

// RealClock is the machine's clock; its Monotonic counts from this call.
func RealClock() Clock { return osClock{start: time.Now()} }

// RealRand draws from the runtime's ChaCha8 generators, which the operating system seeds.
func RealRand() Rand { return osRand{} }

type osClock struct{ start time.Time }

func (c osClock) Now() time.Time           { return time.Now() }
func (c osClock) Monotonic() time.Duration { return time.Since(c.start) }
func (c osClock) Sleep(d time.Duration)    { time.Sleep(d) }

func (c osClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

type osRand struct{}

func (osRand) Uint64() uint64 { return rand.Uint64() }

// osFS is the operating system's file system. It holds no state.
type osFS struct{}

func (osFS) Open(path string, flag OpenFlag) (File, error) {
	mode := unix.O_CLOEXEC
	switch flag {
	case OpenExisting:
		mode |= unix.O_RDWR
	case OpenCreate:
		mode |= unix.O_RDWR | unix.O_CREAT
	case OpenExclusive:
		mode |= unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	case OpenReadOnly:
		mode |= unix.O_RDONLY
	default:
		return nil, pathError("open", path, fs.ErrInvalid)
	}
	fd, err := openFD(path, mode)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	f := &osFile{fd: fd, path: path, readOnly: flag == OpenReadOnly}
	var st unix.Stat_t
	if err = retry(func() error { return unix.Fstat(fd, &st) }); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("not a regular file: %w", fs.ErrInvalid)
	}
	if err != nil {
		unix.Close(fd)
		return nil, pathError("open", path, err)
	}
	return f, nil
}

func (osFS) Rename(oldPath, newPath string) error {
	return pathError("rename", oldPath, retry(func() error { return unix.Rename(oldPath, newPath) }))
}

func (osFS) Remove(path string) error {
	return pathError("remove", path, retry(func() error { return unix.Unlink(path) }))
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Stat(path string) (FileInfo, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Stat(path, &st) }); err != nil {
		return FileInfo{}, pathError("stat", path, err)
	}
	// st_blocks counts 512-byte units on every system, whatever the block size of the file system.
	return FileInfo{Size: st.Size, Allocated: int64(st.Blocks) * 512, IsDir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

func (s osFS) Mkdir(dir string) error {
	err := retry(func() error { return unix.Mkdir(dir, 0o700) })
	parent := filepath.Dir(dir)
	if errors.Is(err, unix.ENOENT) && parent != dir {
		if err := s.Mkdir(parent); err != nil {
			return err
		}
		err = retry(func() error { return unix.Mkdir(dir, 0o700) })
	}
	switch {
	case err == nil:
		// The name must be durable before anything in the directory is said to be.
		return s.SyncDir(parent)
	case errors.Is(err, unix.EEXIST):
		info, err := s.Stat(dir)
		if err == nil && !info.IsDir {
			return pathError("mkdir", dir, unix.ENOTDIR)
		}
		return err
	}
	return pathError("mkdir", dir, err)
}

func (osFS) SyncDir(dir string) error {
	fd, err := openFD(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return pathError("syncdir", dir, err)
	}
	err = retry(func() error { return fullSync(fd) })
	return pathError("syncdir", dir, errors.Join(err, unix.Close(fd)))
}

func (osFS) Lock(path string) (io.Closer, error) {
	fd, err := openFD(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC)
	if err != nil {
		return nil, pathError("lock", path, err)
	}
	// A flock belongs to the open file and not to the process, so a second Lock in this process is refused as well.
	if err := retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, pathError("lock", path, err)
	}
	return &osLock{fd: fd, path: path}, nil
}

// osLock is a held lock: an open file under flock. The kernel drops it with the process.
type osLock struct {
	once sync.Once
	fd   int
	path string
}

func (l *osLock) Close() error {
	err := fs.ErrClosed
	l.once.Do(func() { err = unix.Close(l.fd) })
	return pathError("unlock", l.path, err)
}

func openFD(path string, mode int) (fd int, err error) {
	err = retry(func() (e error) {
		fd, e = unix.Open(path, mode, 0o600)
		return e
	})
	return fd, err
}

// retry calls f again for as long as a signal interrupts it.
func retry(f func() error) error {
	for {
		err := f()
		if err != unix.EINTR {
			return err
		}
	}
}

// pathError names operation and path, and makes the errno of a full disk recognisable as [ErrNoSpace].
func pathError(op, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
