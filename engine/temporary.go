package engine

import (
	"errors"
	"io/fs"
	"path"
	"strconv"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/spill"
)

const (
	// temporaryDir is the directory for temporary files, in the database's.
	temporaryDir     = "tmp"
	temporaryDefault = 64 << 30
)

// temporary gives commands files for what they cannot hold in memory: the Disk of the query column.
//
// A file loses its name as soon as it is open, so that it is gone with the process, however that ends; what a crash in between has
// left, Open removes. Nothing is synced, and nothing is read that this process has not written. All files together have at most max
// bytes: a command that would need more fails, and the database has the rest of the disk.
type temporary struct {
	env *env.Env
	dir string
	max int64

	mu     env.Mutex // guards what follows
	made   bool      // the directory is there
	number uint64    // of the last file
	files  map[*temporaryFile]struct{}
	used   int64
}

func (t *temporary) init(e *env.Env, dir string, max int64) {
	t.env, t.dir, t.max, t.files = e, path.Join(dir, temporaryDir), max, map[*temporaryFile]struct{}{}
	t.mu.Init(e, env.RankNone, "temporary files")
}

// clean removes what a crash has left.
func (t *temporary) clean() error {
	names, err := t.env.FS.List(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err := t.env.FS.Remove(path.Join(t.dir, name)); err != nil {
			return err
		}
	}
	return err
}

// Create is spill.Disk's.
func (t *temporary) Create() (spill.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.made {
		if err := t.env.FS.Mkdir(t.dir); err != nil {
			return nil, temporaryError(err)
		}
		t.made = true
	}
	t.number++
	name := path.Join(t.dir, strconv.FormatUint(t.number, 10))
	f, err := t.env.FS.Open(name, env.OpenExclusive)
	if err != nil {
		return nil, temporaryError(err)
	}
	if err := t.env.FS.Remove(name); err != nil {
		f.Close()
		return nil, temporaryError(err)
	}
	file := &temporaryFile{of: t, f: f}
	t.files[file] = struct{}{}
	return file, nil
}

// disk is where a command may spill to; nil if it shall not.
func (db *DB) disk(memoryOnly bool) spill.Disk {
	if memoryOnly {
		return nil
	}
	return &db.temp
}

// close closes the files of cursors that nobody has closed.
func (t *temporary) close() {
	t.mu.Lock()
	var open []*temporaryFile
	// order: all of them go
	for f := range t.files {
		open = append(open, f)
	}
	t.mu.Unlock()
	for _, f := range open {
		f.Close()
	}
}

// usage is how many temporary files there are, and how many bytes they have.
func (t *temporary) usage() (files int, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.files), t.used
}

// temporaryFile is one of them. It belongs to one command, which writes it from front to end.
type temporaryFile struct {
	of   *temporary
	f    env.File
	size int64
}

func (f *temporaryFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	return n, temporaryError(err)
}

func (f *temporaryFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.grow(off + int64(len(p)) - f.size); err != nil {
		return 0, err
	}
	n, err := f.f.WriteAt(p, off)
	return n, temporaryError(err)
}

func (f *temporaryFile) grow(n int64) error {
	if n <= 0 {
		return nil
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.used+n > f.of.max {
		return mongoerr.OutOfDiskSpace.Errorf("temporary files may have %d bytes together, and sorting and grouping needs more", f.of.max)
	}
	f.of.used += n
	f.size += n
	return nil
}

// Close may be called again.
func (f *temporaryFile) Close() error {
	f.of.mu.Lock()
	_, open := f.of.files[f]
	if open {
		delete(f.of.files, f)
		f.of.used -= f.size
	}
	f.of.mu.Unlock()
	if !open {
		return nil
	}
	return temporaryError(f.f.Close())
}

// temporaryError is what a client hears.
func temporaryError(err error) error {
	if errors.Is(err, env.ErrNoSpace) {
		return mongoerr.OutOfDiskSpace.Errorf("no space for temporary files: %w", err)
	}
	return err
}
