package env

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserveMax bounds a mapping's address range where addresses are scarce.
const reserveMax = 1 << 29

// osMapping is a range of addresses reserved without access, over whose beginning the file is mapped read-only. Growing
// maps the next part of the file over the next part of the reservation, so no address ever moves.
type osMapping struct {
	file *osFile
	base unsafe.Pointer
	full uintptr // reserved bytes
	size atomic.Int64

	mu     sync.Mutex // Grow and Unmap
	mapped int64      // whole pages of the operating system
}

func (f *osFile) Map(reserve int64) (Mapping, error) {
	var m *osMapping
	err := f.do("map", false, func(fd int) error {
		size, err := sizeOf(fd)
		if err != nil {
			return err
		}
		reserve = roundUp(max(reserve, size, 1))
		if strconv.IntSize == 32 {
			reserve = max(min(reserve, reserveMax), roundUp(size))
		}
		if int64(uintptr(reserve)) != reserve {
			return unix.ENOMEM
		}
		base, err := unix.MmapPtr(-1, 0, nil, uintptr(reserve), unix.PROT_NONE, mapReserve)
		if err != nil {
			return err
		}
		m = &osMapping{file: f, base: base, full: uintptr(reserve)}
		if err := m.grow(fd, size); err != nil {
			unix.MunmapPtr(base, m.full)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	mappings.add(m.base, m.full)
	return m, nil
}

func (m *osMapping) Bytes() []byte {
	return unsafe.Slice((*byte)(m.base), int(m.size.Load()))
}

func (m *osMapping) Grow(size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file.do("map", false, func(fd int) error {
		switch {
		case m.base == nil:
			return fs.ErrClosed
		case size > int64(m.full):
			return fmt.Errorf("%d bytes are more than the %d reserved: %w", size, m.full, unix.ENOMEM)
		}
		have, err := sizeOf(fd)
		if err != nil {
			return err
		}
		if size > have {
			return fmt.Errorf("the file ends at %d, before %d: %w", have, size, fs.ErrInvalid)
		}
		return m.grow(fd, size)
	})
}

func (m *osMapping) grow(fd int, size int64) error {
	if size <= m.size.Load() {
		return nil
	}
	if end := roundUp(size); end > m.mapped {
		at := unsafe.Add(m.base, m.mapped)
		_, err := unix.MmapPtr(fd, m.mapped, at, uintptr(end-m.mapped), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED)
		if err != nil {
			return err
		}
		m.mapped = end
	}
	m.size.Store(size)
	return nil
}

func (m *osMapping) Guard(f func() error) error { return Guard(f) }

func (m *osMapping) Advise(off, n int64, a Advice) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	page := int64(os.Getpagesize())
	start, end := off&^(page-1), min(roundUp(off+n), m.mapped)
	if m.base == nil || off < 0 || n < 0 || start >= end {
		return nil
	}
	advice := unix.MADV_NORMAL
	switch a {
	case AdviseSequential:
		advice = unix.MADV_SEQUENTIAL
	case AdviseRandom:
		advice = unix.MADV_RANDOM
	case AdviseWillNeed:
		advice = unix.MADV_WILLNEED
	case AdviseDontNeed:
		advice = unix.MADV_DONTNEED
	}
	part := unsafe.Slice((*byte)(unsafe.Add(m.base, start)), int(end-start))
	return pathError("advise", m.file.path, unix.Madvise(part, advice))
}

func (m *osMapping) Unmap() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base == nil {
		return pathError("unmap", m.file.path, fs.ErrClosed)
	}
	mappings.remove(m.base)
	err := unix.MunmapPtr(m.base, m.full)
	m.size.Store(0)
	m.base, m.mapped = nil, 0
	return pathError("unmap", m.file.path, err)
}

func roundUp(n int64) int64 {
	page := int64(os.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}
