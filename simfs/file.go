package simfs

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/multiforadb/multiforadb/engine/env"
)

// file is an open file.
type file struct {
	fs       *FS
	ino      *inode
	path     string
	readOnly bool
	closed   atomic.Bool
}

// begin begins a call under the name that the file has now.
func (f *file) begin(op Op, off, n int64) *call {
	f.fs.mu.Lock()
	path := f.ino.path
	f.fs.mu.Unlock()
	return f.fs.begin(Call{Op: op, Path: path, Off: off, Len: n})
}

// usable says why a call cannot be made. fs.mu is held.
func (f *file) usable(op Op) error {
	switch {
	case f.closed.Load() || f.fs.discarded:
		return fs.ErrClosed
	case f.readOnly && op.Mutates():
		return fs.ErrPermission
	}
	return nil
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	c := f.begin(OpRead, off, int64(len(p)))
	eof := false
	err = c.run(func() error {
		if err := f.usable(OpRead); err != nil {
			return err
		}
		if off < 0 {
			return fs.ErrInvalid
		}
		if f.ino.unreadable(off, off+int64(len(p))) {
			return EIO
		}
		n = int(min(max(f.ino.volatile.size-off, 0), int64(len(p))))
		eof = n < len(p)
		f.ino.volatile.read(p[:n], off)
		return nil
	})
	if err == nil && eof {
		err = io.EOF
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	c := f.begin(OpWrite, off, int64(len(p)))
	want := p
	if c.fault != nil && c.fault.Err != nil {
		want = p[:min(max(c.fault.Short, 0), int64(len(p)))]
	}
	f.fs.mu.Lock()
	err = f.usable(OpWrite)
	f.fs.mu.Unlock()
	if off < 0 {
		err = fs.ErrInvalid
	}
	for n < len(want) && err == nil {
		at := off + int64(n)
		part := want[n:min(len(want), n+int(pageSize-at%pageSize))]
		f.fs.mu.Lock()
		if err = f.usable(OpWrite); err == nil {
			err = f.writePart(c, part, at)
		}
		f.fs.mu.Unlock()
		if err == nil {
			n += len(part)
			c.part(part, at)
		}
	}
	if err == nil && c.fault != nil {
		err = c.fault.Err
	}
	return n, c.end(err)
}

// part tells of one part of a write.
func (c *call) part(data []byte, off int64) {
	p := *c
	p.Off, p.Len = off, int64(len(data))
	p.step(Part, data)
}

// writePart writes what lies in one page. fs.mu is held.
func (f *file) writePart(c *call, p []byte, off int64) error {
	ino, i, at := f.ino, off/pageSize, off%pageSize
	if ino.missing(i, i+1) > f.fs.room() {
		return ENOSPC
	}
	by := c.origin()
	if end := off + int64(len(p)); end > ino.volatile.size {
		ino.resize(end, by)
	}
	if c.fault != nil && (c.fault.Lose || c.fault.Misdirect != 0) {
		by = nil
	}
	ino.put(i, ino.volatile.page(i).with(at, p), at, int64(len(p)), by)
	if c.fault != nil && c.fault.Misdirect != 0 {
		ino.strike(off+c.fault.Misdirect, p, c.origin())
	}
	return nil
}

// strike makes p a pending version of bytes that nobody meant to write.
func (ino *inode) strike(off int64, p []byte, by *origin) {
	for len(p) > 0 && off >= 0 && by != nil {
		i, at := off/pageSize, off%pageSize
		n := min(int64(len(p)), pageSize-at)
		base := ino.durable.page(i)
		if vs := ino.dirty[i]; len(vs) > 0 {
			base = vs[len(vs)-1].data
		}
		ino.addVersion(i, base.with(at, p[:n]), ino.fs.maskOf(at, n), by)
		p, off = p[n:], off+n
	}
}

// room is how many pages are free. A power cut that undoes a removal may leave more used than there are: then it is none, which
// hinders nobody who has storage already.
func (d *FS) room() int64 {
	if d.opt.Capacity == 0 {
		return 1 << 60
	}
	return max(d.opt.Capacity/pageSize-d.used, 0)
}

func (f *file) Size() (size int64, err error) {
	c := f.begin(OpSize, 0, 0)
	err = c.run(func() error {
		if err := f.usable(OpSize); err != nil {
			return err
		}
		size = f.ino.volatile.size
		return nil
	})
	return size, err
}

func (f *file) Truncate(size int64) error {
	c := f.begin(OpTruncate, size, 0)
	return c.run(func() error {
		if err := f.usable(OpTruncate); err != nil {
			return err
		}
		if size < 0 {
			return fs.ErrInvalid
		}
		if size != f.ino.volatile.size {
			f.ino.resize(size, c.origin())
		}
		return nil
	})
}

func (f *file) Allocate(off, n int64) error {
	c := f.begin(OpAllocate, off, n)
	return c.run(func() error {
		if err := f.usable(OpAllocate); err != nil {
			return err
		}
		if off < 0 || n < 0 || off+n < 0 {
			return fs.ErrInvalid
		}
		first, end := off/pageSize, (off+n+pageSize-1)/pageSize
		if n == 0 {
			return nil
		}
		if f.ino.missing(first, end) > f.fs.room() {
			return ENOSPC
		}
		if off+n > f.ino.volatile.size {
			f.ino.resize(off+n, c.origin())
		}
		f.ino.reserve(first, end, c.origin())
		return nil
	})
}

func (f *file) PunchHole(off, n int64) error {
	c := f.begin(OpPunch, off, n)
	return c.run(func() error {
		if err := f.usable(OpPunch); err != nil {
			return err
		}
		if off < 0 || n < 0 || off+n < 0 {
			return fs.ErrInvalid
		}
		ino := f.ino
		for end := min(off+n, ino.volatile.size); off < end; {
			i, at := off/pageSize, off%pageSize
			part := min(end-off, pageSize-at)
			off += part
			p := ino.volatile.page(i)
			switch {
			case p == nil && ino.durable.page(i) == nil && len(ino.dirty[i]) == 0:
			case part == pageSize || at == 0 && off == ino.volatile.size:
				ino.put(i, nil, at, part, c.origin())
			case p != nil:
				ino.put(i, p.with(at, make([]byte, part)), at, part, c.origin())
			}
		}
		return nil
	})
}

// Datasync covers what was written before it began: a write that overtakes it stays pending.
func (f *file) Datasync() error {
	c := f.begin(OpSync, 0, 0)
	ino := f.ino
	f.fs.mu.Lock()
	err := f.usable(OpSync)
	upTo := f.fs.seq
	ino.syncing = append(ino.syncing, upTo)
	f.fs.mu.Unlock()
	defer func() {
		f.fs.mu.Lock()
		defer f.fs.mu.Unlock()
		at := slices.Index(ino.syncing, upTo)
		ino.syncing = slices.Delete(ino.syncing, at, at+1)
	}()
	if err != nil {
		return c.end(err)
	}
	c.step(Inside, nil)
	if c.fault != nil && c.fault.Err != nil {
		if c.fault.Sync != StayDirty {
			f.fs.mu.Lock()
			ino.sync(upTo, someOf(c.fault, ino, upTo))
			if c.fault.Sync == CleanReverted {
				ino.revert()
			}
			f.fs.mu.Unlock()
		}
		return c.end(c.fault.Err)
	}
	return c.run(func() error {
		ino.sync(upTo, latest(func(seq uint64) bool { return seq <= upTo }))
		return nil
	})
}

// someOf picks the sectors that a failing sync made durable all the same.
func someOf(f *Fault, ino *inode, upTo uint64) func(int64, int, []version) int {
	all := latest(func(seq uint64) bool { return seq <= upTo })
	return func(i int64, s int, vs []version) int {
		if chance(f.Seed, ino.id, i*8+int64(s)) < f.Written {
			return all(i, s, vs)
		}
		return pickDurable
	}
}

func (f *file) Close() error {
	c := f.begin(OpClose, 0, 0)
	return c.run(func() error {
		if f.closed.Swap(true) {
			return fs.ErrClosed
		}
		f.ino.opens--
		f.fs.release(f.ino)
		return nil
	})
}

// unreadable reports whether [off, end) meets a range that cannot be read.
func (ino *inode) unreadable(off, end int64) bool {
	return slices.ContainsFunc(ino.bad, func(b span) bool { return off < b.end && b.off < end })
}

// Lock is forgotten by a crash, as the process that held it is gone. The file that it makes is like any other.
func (d *FS) Lock(p string) (io.Closer, error) {
	f, err := d.Open(p, env.OpenCreate)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	c := d.begin(Call{Op: OpLock, Path: p})
	err = c.run(func() error {
		if d.locks[clean(p)] {
			return fmt.Errorf("%w: %w", env.ErrLocked, syscall.EWOULDBLOCK)
		}
		d.locks[clean(p)] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &lock{fs: d, path: clean(p)}, nil
}

type lock struct {
	fs   *FS
	path string
	once atomic.Bool
}

func (l *lock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.once.Swap(true) {
		return pathErr(OpLock, l.path, fs.ErrClosed)
	}
	delete(l.fs.locks, l.path)
	return nil
}
