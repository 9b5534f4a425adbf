// Package simfs is the deterministic disk: an [env.FS] in memory that knows, at every moment, all the states in which a
// power cut could leave it.
//
// # What it remembers
//
// For every file there is a volatile content, which reads and mappings see, and a durable one, which is what the last
// sync left. Between them stand the things that are still on their way: for every dirty sector (512 bytes; a profile has
// 4096) up to four versions, the changes of size in order, and for every directory its operations in order.
//
//	operation                   seen at once          durable
//	WriteAt                     in parts of ≤ 4 KiB   each touched sector gains a version
//	Datasync                    -                     what was there at its start, when it returns
//	Truncate, Allocate          yes                   with Datasync; a shrink may be undone, old bytes and all
//	PunchHole                   zeros                 as a write of zeros
//	Rename, Open, Remove        yes                   with SyncDir; syncing a file does not persist its name
//	Mkdir                       yes                   at once
//
// # Crashes
//
// [FS.Crash] makes a new disk in a state that a power cut now could have left; the old one runs on. Which state is a
// [Choice], a plain value that prints as JSON, replays and shrinks ([FS.Minimise]). What was synced is never touched. All
// pages are immutable and shared, so a crash costs a few microseconds. [FS.Kill] is the crash of the process alone: the
// page cache survives, what was not synced may still be lost later.
//
// # Watching and breaking
//
// [Hooks] has a function that is asked before every call and may make it fail, and one that is told of every step: there a
// test takes its crashes and a judge looks at what was written. Damage (FlipBit, Misdirect, …) changes durable bytes.
//
// What always holds: hooks and yields run with no lock held, so they may call the FS. Nothing depends on map order, time or
// addresses: the same calls give the same state, and the same choice the same image.
package simfs

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"syscall"

	"github.com/multiforadb/multiforadb/engine/env"
)

const pageSize = 4096

// Options are the properties of a disk. The zero value is a disk of 512-byte sectors without limit.
type Options struct {
	SectorSize int   // 512 or 4096: what a power cut may tear
	Capacity   int64 // bytes; 0 is no limit
	Hooks      Hooks

	// Forgetful disks track nothing that a crash could lose, and cost less memory for it. Crash is Kill there.
	Forgetful bool
}

// FS is a simulated disk. It is safe for concurrent use.
type FS struct {
	opt    Options
	yield  func(point string)
	caller func() string

	mu        sync.Mutex
	dirs      map[string]*dir
	locks     map[string]bool
	seq       uint64 // of the last pending thing
	calls     int64
	inodes    int   // the last inode's number
	used      int64 // pages
	mapped    []*inode
	discarded bool
}

// dir is one directory. Files only: directories know nothing of each other but their paths.
type dir struct {
	volatile map[string]*inode
	durable  map[string]*inode
	pending  []dirOp
}

// dirOp is an operation on a directory that is not durable yet.
type dirOp struct {
	seq  uint64
	ino  *inode
	from string // "" for a create
	to   string // "" for a remove
	by   *origin
}

func (o dirOp) touches(p dirOp) bool {
	same := func(a, b string) bool { return a != "" && a == b }
	return same(o.from, p.from) || same(o.from, p.to) || same(o.to, p.from) || same(o.to, p.to)
}

func (o dirOp) apply(names map[string]*inode) {
	if o.from != "" {
		delete(names, o.from)
	}
	if o.to != "" {
		names[o.to] = o.ino
	}
}

// New makes an empty disk. Its root directory exists.
func New(opt Options) *FS {
	if opt.SectorSize == 0 {
		opt.SectorSize = 512
	}
	if opt.SectorSize != 512 && opt.SectorSize != pageSize {
		panic(fmt.Sprintf("simfs: sectors of %d bytes", opt.SectorSize))
	}
	d := newFS(opt)
	d.dirs["/"] = newDir()
	return d
}

// Memory is an environment whose files live in memory, with the machine's clock and random numbers: for tests that want a
// database without a disk.
func Memory() *env.Env {
	return &env.Env{FS: New(Options{Forgetful: true}), Clock: env.RealClock(), Rand: env.RealRand()}
}

// Env is an environment on this disk without a scheduler: goroutines are real, the clock stands still but for
// [Clock.Advance] and Sleep, and random numbers come from seed.
func (d *FS) Env(seed uint64) *env.Env {
	return &env.Env{FS: d, Clock: NewClock(), Rand: NewRand(seed)}
}

func newFS(opt Options) *FS {
	return &FS{opt: opt, dirs: map[string]*dir{}, locks: map[string]bool{}}
}

func newDir() *dir { return &dir{volatile: map[string]*inode{}, durable: map[string]*inode{}} }

// SetHooks replaces the hooks. No call may be running.
func (d *FS) SetHooks(h Hooks) { d.opt.Hooks = h }

// SetYield makes every call, and every part of a long one, a point where a scheduler may switch; caller names the running
// task for reports. Both may be nil.
func (d *FS) SetYield(yield func(point string), caller func() string) {
	d.yield, d.caller = yield, caller
}

// SetCapacity changes the size of the disk; 0 is no limit.
func (d *FS) SetCapacity(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opt.Capacity = n
}

// Used is how many bytes files take, removed ones that are still open included.
func (d *FS) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used * pageSize
}

// Calls is how many calls have been made: the number of the last one.
func (d *FS) Calls() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Discard frees mappings and descriptors. Every later call fails, and a slice of a mapping is invalid memory.
func (d *FS) Discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.discarded = true
	for _, ino := range d.mapped {
		ino.view.discard()
		ino.view = nil
	}
	d.mapped = nil
}

func clean(p string) string             { return path.Clean("/" + p) }
func split(p string) (dir, name string) { p = clean(p); return path.Dir(p), path.Base(p) }
func pathErr(op Op, p string, err error) error {
	return &fs.PathError{Op: string(op), Path: p, Err: err}
}
func (d *FS) lookup(dirName string) (*dir, error) {
	if d.discarded {
		return nil, fs.ErrClosed
	}
	if dd := d.dirs[dirName]; dd != nil {
		return dd, nil
	}
	return nil, syscall.ENOENT
}

// find is the file of that path. d.mu is held.
func (d *FS) find(p string) (dd *dir, name string, ino *inode, err error) {
	dirName, name := split(p)
	dd, err = d.lookup(dirName)
	if err != nil {
		return nil, "", nil, err
	}
	if d.dirs[clean(p)] != nil {
		return nil, "", nil, syscall.EISDIR
	}
	if ino = dd.volatile[name]; ino == nil {
		err = syscall.ENOENT
	}
	return dd, name, ino, err
}

func (d *FS) Open(p string, flag env.OpenFlag) (env.File, error) {
	op := OpOpen
	if flag == env.OpenCreate || flag == env.OpenExclusive {
		d.mu.Lock()
		if _, _, _, err := d.find(p); err == syscall.ENOENT {
			op = OpCreate
		}
		d.mu.Unlock()
	}
	c := d.begin(Call{Op: op, Path: p})
	if c.fault != nil && c.fault.Err != nil {
		return nil, c.end(c.fault.Err)
	}
	f, err := d.open(c, flag)
	if err != nil {
		return nil, c.end(err)
	}
	if err := c.end(nil); err != nil {
		return nil, err
	}
	return f, nil
}

func (d *FS) open(c *call, flag env.OpenFlag) (*file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dd, name, ino, err := d.find(c.Path)
	switch {
	case err == syscall.ENOENT && dd != nil && (flag == env.OpenCreate || flag == env.OpenExclusive):
		d.inodes++
		ino = &inode{fs: d, id: d.inodes, dirty: map[int64][]version{}, path: clean(c.Path)}
		d.change(dd, dirOp{ino: ino, to: name, by: c.origin()})
	case err != nil:
		return nil, err
	case flag == env.OpenExclusive:
		return nil, syscall.EEXIST
	}
	ino.opens++
	return &file{fs: d, ino: ino, path: c.Path, readOnly: flag == env.OpenReadOnly}, nil
}

// change applies op to the directory and remembers it as pending.
func (d *FS) change(dd *dir, op dirOp) {
	old := dd.volatile[op.to]
	if op.to == "" {
		old = op.ino
	}
	op.apply(dd.volatile)
	if old != nil && old != op.ino || op.to == "" {
		old.links--
		d.release(old)
	}
	if op.from == "" {
		op.ino.links++
	}
	if d.opt.Forgetful {
		return
	}
	d.seq++
	op.seq = d.seq
	dd.pending = append(dd.pending, op)
}

// release gives the space of a file back that nobody can reach any more.
func (d *FS) release(ino *inode) {
	if ino.links == 0 && ino.opens == 0 {
		d.used -= ino.blocks
		ino.blocks = 0
	}
}

func (d *FS) Rename(oldPath, newPath string) error {
	c := d.begin(Call{Op: OpRename, Path: oldPath, To: newPath})
	return c.run(func() error {
		dd, from, ino, err := d.find(oldPath)
		if err != nil {
			return err
		}
		dirName, to := split(newPath)
		if d.dirs[dirName] != dd {
			return syscall.EXDEV
		}
		if d.dirs[clean(newPath)] != nil {
			return syscall.EISDIR
		}
		if from != to {
			ino.path = clean(newPath)
			d.change(dd, dirOp{ino: ino, from: from, to: to, by: c.origin()})
		}
		return nil
	})
}

func (d *FS) Remove(p string) error {
	c := d.begin(Call{Op: OpRemove, Path: p})
	return c.run(func() error {
		dd, name, ino, err := d.find(p)
		if err != nil {
			return err
		}
		d.change(dd, dirOp{ino: ino, from: name, by: c.origin()})
		return nil
	})
}

func (d *FS) List(dirName string) (names []string, err error) {
	c := d.begin(Call{Op: OpList, Path: dirName})
	err = c.run(func() error {
		dd, err := d.lookup(clean(dirName))
		if err != nil {
			return err
		}
		for name := range dd.volatile {
			names = append(names, name)
		}
		for sub := range d.dirs {
			if sub != "/" && path.Dir(sub) == clean(dirName) {
				names = append(names, path.Base(sub))
			}
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

func (d *FS) Stat(p string) (info env.FileInfo, err error) {
	c := d.begin(Call{Op: OpStat, Path: p})
	err = c.run(func() error {
		if !d.discarded && d.dirs[clean(p)] != nil {
			info = env.FileInfo{IsDir: true}
			return nil
		}
		_, _, ino, err := d.find(p)
		if err == nil {
			info = env.FileInfo{Size: ino.volatile.size, Allocated: ino.blocks * pageSize}
		}
		return err
	})
	return info, err
}

func (d *FS) Mkdir(dirName string) error {
	c := d.begin(Call{Op: OpMkdir, Path: dirName})
	return c.run(func() error {
		if d.discarded {
			return fs.ErrClosed
		}
		var missing []string
		for p := clean(dirName); d.dirs[p] == nil; p = path.Dir(p) {
			if dd := d.dirs[path.Dir(p)]; dd != nil && dd.volatile[path.Base(p)] != nil {
				return syscall.ENOTDIR
			}
			missing = append(missing, p)
		}
		for _, p := range missing {
			d.dirs[p] = newDir()
		}
		return nil
	})
}

// SyncDir makes durable what was done to the directory before the call.
func (d *FS) SyncDir(dirName string) error {
	c := d.begin(Call{Op: OpSyncDir, Path: dirName})
	d.mu.Lock()
	upTo := d.seq
	d.mu.Unlock()
	c.step(Inside, nil)
	return c.run(func() error {
		dd, err := d.lookup(clean(dirName))
		if err != nil {
			return err
		}
		n := 0
		for n < len(dd.pending) && dd.pending[n].seq <= upTo {
			dd.pending[n].apply(dd.durable)
			n++
		}
		dd.pending = slices.Delete(dd.pending, 0, n)
		return nil
	})
}
