package simfs

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mapNoReserve = unix.MAP_NORESERVE
	viewAccess   = unix.PROT_READ
	iovecMax     = 1024
)

// view is what the mappings of an inode show: a memfd that the disk writes by pwrite and the engine maps read-only, so
// that a stray store faults. It lives as long as there is a mapping.
type view struct {
	fd   int
	maps []*mapping
}

func newView(c *content) (*view, error) {
	fd, err := unix.MemfdCreate("simfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	v := &view{fd: fd}
	// Runs of pages at once: this is most of what opening a crash image costs.
	var run [][]byte
	flush := func(end int64) {
		if len(run) == 0 {
			return
		}
		n := int64(len(run)) * pageSize
		if m, err := unix.Pwritev(fd, run, end-n); err != nil || int64(m) != n {
			panic(fmt.Sprintf("simfs: filling %d bytes of memory: %d, %v", n, m, err))
		}
		run = run[:0]
	}
	for i, p := range c.pages {
		at := int64(i) * pageSize
		if p == nil || p == zeroPage || len(run) == iovecMax {
			flush(at)
		}
		if p != nil && p != zeroPage {
			run = append(run, p[:])
		}
	}
	flush(int64(len(c.pages)) * pageSize)
	v.resize(c.size)
	return v, nil
}

// write puts bytes [at, at+n) of p, or zeros, at off.
func (v *view) write(off int64, p *page, at, n int64) {
	if p == nil {
		p = zeroPage
	}
	if m, err := unix.Pwrite(v.fd, p[at:at+n], off); err != nil || int64(m) != n {
		panic(fmt.Sprintf("simfs: writing %d bytes of memory: %d, %v", n, m, err))
	}
}

func (v *view) resize(size int64) {
	if err := unix.Ftruncate(v.fd, size); err != nil {
		panic(fmt.Sprintf("simfs: resizing memory to %d: %v", size, err))
	}
}

// mapPages shows [from, to) of the file in m.
func (v *view) mapPages(m *mapping, from, to int64, _ *content) error {
	_, err := unix.MmapPtr(v.fd, from, unsafe.Add(m.base, from), uintptr(to-from), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED)
	return err
}

func (v *view) close() { unix.Close(v.fd) }
