package simfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/multiforadb/multiforadb/engine/env"
)

// reserveMax bounds the addresses of one mapping, as a test may have a thousand disks alive. No simulated file is larger.
const (
	reserveMax   = 1 << 36
	reserveMax32 = 1 << 26
)

// mapping is a view of an inode at a fixed range of real addresses: a load behind the end, from a bad range, or after
// Unmap, and on Linux any store, is a real fault.
type mapping struct {
	file   *file
	ino    *inode
	base   unsafe.Pointer
	full   int64
	mapped int64 // whole pages of the operating system
	size   atomic.Int64
	forget func()
}

func (f *file) Map(reserve int64) (env.Mapping, error) {
	c := f.begin(OpMap, 0, reserve)
	var m *mapping
	err := c.run(func() error {
		if err := f.usable(OpMap); err != nil {
			return err
		}
		size, most := f.ino.volatile.size, int64(reserveMax)
		if strconv.IntSize == 32 {
			most = reserveMax32
		}
		full := roundUp(max(min(reserve, most), size, 1))
		base, err := unix.MmapPtr(-1, 0, nil, uintptr(full), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|mapNoReserve)
		if err != nil {
			return err
		}
		m = &mapping{file: f, ino: f.ino, base: base, full: full, forget: env.MapRegion(base, uintptr(full))}
		err = f.ino.mapInto(m)
		if err == nil {
			err = m.grow(size)
		}
		if err != nil {
			return errors.Join(err, m.unmap())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// mapInto makes m one of the inode's mappings.
func (ino *inode) mapInto(m *mapping) error {
	if ino.view == nil {
		v, err := newView(&ino.volatile)
		if err != nil {
			return err
		}
		ino.view = v
		ino.fs.mapped = append(ino.fs.mapped, ino)
	}
	ino.view.maps = append(ino.view.maps, m)
	return nil
}

func (m *mapping) Bytes() []byte {
	if m.base == nil {
		return nil
	}
	return unsafe.Slice((*byte)(m.base), int(m.size.Load()))
}

func (m *mapping) Grow(size int64) error {
	c := m.file.begin(OpGrow, size, 0)
	return c.run(func() error {
		switch {
		case m.base == nil || m.file.closed.Load():
			return fs.ErrClosed
		case size > m.full:
			return fmt.Errorf("%d bytes are more than the %d reserved: %w", size, m.full, unix.ENOMEM)
		case size > m.ino.volatile.size:
			return fmt.Errorf("the file ends at %d, before %d: %w", m.ino.volatile.size, size, fs.ErrInvalid)
		}
		return m.grow(size)
	})
}

// grow makes the first size bytes readable. fs.mu is held.
func (m *mapping) grow(size int64) error {
	if size <= m.size.Load() {
		return nil
	}
	if end := roundUp(size); end > m.mapped {
		if err := m.ino.view.mapPages(m, m.mapped, end, &m.ino.volatile); err != nil {
			return err
		}
		m.mapped = end
	}
	m.size.Store(size)
	return m.protect(unix.PROT_NONE)
}

// protect sets the access to the bad ranges, widened to pages of the operating system.
func (m *mapping) protect(access int) error {
	for _, b := range m.ino.bad {
		first, end := b.off&^(int64(os.Getpagesize())-1), min(roundUp(b.end), m.mapped)
		if first >= end {
			continue
		}
		if err := unix.Mprotect(unsafe.Slice((*byte)(unsafe.Add(m.base, first)), int(end-first)), access); err != nil {
			return err
		}
	}
	return nil
}

// Guard is counted, and may be made to fail, as a call. No scheduler switches at it.
func (m *mapping) Guard(f func() error) error {
	d := m.file.fs
	if d.opt.Hooks.Fault != nil {
		d.mu.Lock()
		d.calls++
		c := Call{N: d.calls, Op: OpGuard, Path: m.file.path}
		d.mu.Unlock()
		if fault := d.opt.Hooks.Fault(c); fault != nil && fault.Err != nil {
			return fmt.Errorf("%w: %w", env.ErrFault, fault.Err)
		}
	}
	return env.Guard(f)
}

func (m *mapping) Advise(off, n int64, a env.Advice) error { return nil }

func (m *mapping) Unmap() error {
	d := m.file.fs
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.base == nil {
		return pathErr("unmap", m.file.path, fs.ErrClosed)
	}
	return m.unmap()
}

// unmap gives the addresses back, and the view with its last mapping. fs.mu is held.
func (m *mapping) unmap() error {
	m.forget()
	err := unix.MunmapPtr(m.base, uintptr(m.full))
	m.base = nil
	m.size.Store(0)
	v := m.ino.view
	if v == nil {
		return err
	}
	v.maps = slices.DeleteFunc(v.maps, func(o *mapping) bool { return o == m })
	if len(v.maps) == 0 {
		v.discard()
		m.ino.view = nil
		d := m.file.fs
		d.mapped = slices.DeleteFunc(d.mapped, func(o *inode) bool { return o == m.ino })
	}
	return err
}

// discard gives everything back.
func (v *view) discard() {
	for _, m := range v.maps {
		m.forget()
		unix.MunmapPtr(m.base, uintptr(m.full))
		m.base = nil
		m.size.Store(0)
	}
	v.maps = nil
	v.close()
}

// SetUnreadable makes loads of [off, off+n) fault and reads fail with EIO, in mappings by whole pages of the operating
// system, until [FS.SetReadable]. Crash images have the same bad places.
func (d *FS) SetUnreadable(path string, off, n int64) error {
	return d.setBad(path, func(ino *inode) { ino.bad = append(ino.bad, span{off, off + n}) })
}

// SetReadable heals all of a file.
func (d *FS) SetReadable(path string) error {
	return d.setBad(path, func(ino *inode) { ino.bad = nil })
}

func (d *FS) setBad(path string, change func(*inode)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, ino, err := d.find(path)
	if err != nil {
		return pathErr("damage", path, err)
	}
	protect := func(access int) {
		if ino.view == nil {
			return
		}
		for _, m := range ino.view.maps {
			err = errors.Join(err, m.protect(access))
		}
	}
	protect(viewAccess)
	change(ino)
	protect(unix.PROT_NONE)
	return err
}

func roundUp(n int64) int64 {
	p := int64(os.Getpagesize())
	return (n + p - 1) &^ (p - 1)
}
