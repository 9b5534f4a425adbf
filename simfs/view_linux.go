package simfs

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mapNoReserve = unix.MAP_NORESERVE
	viewAccess   = unix.PROT_READ
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
	v.resize(c.size)
	for i, p := range c.pages {
		if p != nil && p != zeroPage {
			v.write(int64(i)*pageSize, p, 0, min(pageSize, c.size-int64(i)*pageSize))
		}
	}
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
