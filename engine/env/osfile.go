package env

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// osFile is an open file descriptor. Calls hold mu shared, Close takes it whole, so a descriptor is never closed, and its
// number never reused, under a running call.
type osFile struct {
	mu       sync.RWMutex
	fd       int // -1 once closed
	path     string
	readOnly bool
}

// do runs f on the open descriptor.
func (f *osFile) do(op string, write bool, call func(fd int) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return pathError(op, f.path, fs.ErrClosed)
	}
	if write && f.readOnly {
		return pathError(op, f.path, fs.ErrPermission)
	}
	return pathError(op, f.path, call(f.fd))
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	n, eof := 0, false
	err := f.do("read", false, func(fd int) error {
		if off < 0 {
			return fs.ErrInvalid
		}
		for n < len(p) {
			m, err := unix.Pread(fd, p[n:], off+int64(n))
			switch {
			case err == unix.EINTR:
			case err != nil:
				return err
			case m == 0:
				eof = true
				return nil
			default:
				n += m
			}
		}
		return nil
	})
	if eof {
		// Bare, as io.ReaderAt has it.
		return n, io.EOF
	}
	return n, err
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n := 0
	err := f.do("write", true, func(fd int) error {
		if off < 0 {
			return fs.ErrInvalid
		}
		var err error
		n, err = writeAll(fd, p, off)
		return err
	})
	return n, err
}

func (f *osFile) Size() (size int64, err error) {
	err = f.do("stat", false, func(fd int) error {
		size, err = sizeOf(fd)
		return err
	})
	return size, err
}

func (f *osFile) Truncate(size int64) error {
	return f.do("truncate", true, func(fd int) error {
		return retry(func() error { return unix.Ftruncate(fd, size) })
	})
}

func (f *osFile) Allocate(off, n int64) error {
	return f.do("allocate", true, func(fd int) error {
		switch {
		case off < 0 || n < 0 || off+n < 0:
			return fs.ErrInvalid
		case n == 0:
			return nil
		}
		err := allocate(fd, off, n)
		if errors.Is(err, errors.ErrUnsupported) {
			return allocateZeros(fd, off, n)
		}
		return err
	})
}

func (f *osFile) PunchHole(off, n int64) error {
	return f.do("punch", true, func(fd int) error {
		size, err := sizeOf(fd)
		switch {
		case off < 0 || n < 0 || off+n < 0:
			return fs.ErrInvalid
		case err != nil:
			return err
		case off >= size || n == 0:
			return nil
		}
		n = min(n, size-off)
		return punch(fd, off, n)
	})
}

func (f *osFile) Datasync() error {
	return f.do("sync", true, func(fd int) error {
		return retry(func() error { return dataSync(fd) })
	})
}

func (f *osFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd < 0 {
		return pathError("close", f.path, fs.ErrClosed)
	}
	fd := f.fd
	f.fd = -1
	// No retry: after EINTR the descriptor is gone, and its number may be someone else's.
	if err := unix.Close(fd); err != unix.EINTR {
		return pathError("close", f.path, err)
	}
	return nil
}

func sizeOf(fd int) (int64, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(fd, &st) })
	return st.Size, err
}

func writeAll(fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pwrite(fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, io.ErrShortWrite
		default:
			n += m
		}
	}
	return n, nil
}

var zeros [1 << 16]byte

func writeZeros(fd int, off, n int64) error {
	for n > 0 {
		m := min(n, int64(len(zeros)))
		if _, err := writeAll(fd, zeros[:m], off); err != nil {
			return err
		}
		off, n = off+m, n-m
	}
	return nil
}

// allocateZeros does what fallocate does by writing zeros into the holes of [off, off+n) and behind the end of the file.
// Nobody writes to that range meanwhile: it is the caller who will, once it is reserved.
func allocateZeros(fd int, off, n int64) error {
	size, err := sizeOf(fd)
	if err != nil {
		return err
	}
	end := off + n
	for off < min(end, size) {
		hole, err := unix.Seek(fd, off, unix.SEEK_HOLE)
		if err != nil || hole >= min(end, size) {
			// A file system that cannot tell where the holes are has none.
			off = min(end, size)
			break
		}
		data, err := unix.Seek(fd, hole, unix.SEEK_DATA)
		if err != nil {
			data = size
		}
		data = min(data, end, size)
		if err := writeZeros(fd, hole, data-hole); err != nil {
			return err
		}
		off = data
	}
	// A gap between the old end and off stays a hole.
	return writeZeros(fd, off, end-off)
}
