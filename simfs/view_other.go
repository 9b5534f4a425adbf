//go:build !linux

package simfs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mapNoReserve = 0
	viewAccess   = unix.PROT_READ | unix.PROT_WRITE
)

// view is what the mappings of an inode show: each has its own memory, which the disk writes. Nothing keeps the engine
// from writing there too, and a load just behind the end does not fault; the simulation proper runs on Linux.
type view struct{ maps []*mapping }

func newView(*content) (*view, error) { return &view{}, nil }

// write puts bytes [at, at+n) of p, or zeros, at off.
func (v *view) write(off int64, p *page, at, n int64) {
	if p == nil {
		p = zeroPage
	}
	for _, m := range v.maps {
		if end := min(off+n, m.mapped); off < end {
			copy(unsafe.Slice((*byte)(unsafe.Add(m.base, off)), int(end-off)), p[at:])
		}
	}
}

func (v *view) resize(size int64) {
	for _, m := range v.maps {
		if size < m.mapped {
			clear(unsafe.Slice((*byte)(unsafe.Add(m.base, size)), int(m.mapped-size)))
		}
	}
}

// mapPages shows [from, to) of the file in m.
func (v *view) mapPages(m *mapping, from, to int64, c *content) error {
	part := unsafe.Slice((*byte)(unsafe.Add(m.base, from)), int(to-from))
	if err := unix.Mprotect(part, viewAccess); err != nil {
		return err
	}
	c.read(part, from)
	return nil
}

func (v *view) close() {}
