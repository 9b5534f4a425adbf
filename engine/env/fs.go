package env

import "io"

// FS is a file system. Paths are slash-separated and passed as the caller has them. Errors wrap the io/fs sentinels
// (fs.ErrNotExist, fs.ErrExist) and the errno where there is one; no space is reported as [ErrNoSpace].
type FS interface {
	// Open opens a regular file for reading and writing. A created name is durable only after SyncDir of its directory.
	Open(path string, flag OpenFlag) (File, error)
	// Rename replaces newPath if it exists. Both are in one directory. Durable only after SyncDir.
	Rename(oldPath, newPath string) error
	Remove(path string) error
	// List returns the names (not paths) in dir, sorted.
	List(dir string) ([]string, error)
	Stat(path string) (FileInfo, error)
	// Mkdir creates dir and missing parents, and makes the names that it made durable. It is no error if dir exists.
	Mkdir(dir string) error
	// SyncDir makes the directory's entries durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on path, creating the file if need be, and keeps it until Close. It does not wait: a
	// lock that another process or another Lock holds is [ErrLocked].
	Lock(path string) (io.Closer, error)
}

// OpenFlag says how a file is opened.
type OpenFlag int

const (
	OpenExisting  OpenFlag = iota // must exist
	OpenCreate                    // is created empty if it does not exist
	OpenExclusive                 // is created; must not exist
	OpenReadOnly                  // must exist; only ReadAt, Size and Map are allowed
)

// FileInfo is what Stat tells.
type FileInfo struct {
	Size      int64 // bytes, as ReadAt sees it
	Allocated int64 // bytes of storage that the file takes
	IsDir     bool
}

// File is an open regular file. All methods are safe for concurrent use.
type File interface {
	// ReadAt reads len(p) bytes unless it returns an error; at the end of the file that is io.EOF.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes len(p) bytes unless it returns an error. It extends the file if need be. What is not synced may be
	// lost, torn at 512-byte sectors or reordered by a crash; bytes outside the range are never damaged.
	WriteAt(p []byte, off int64) (int, error)
	Size() (int64, error)
	// Truncate sets the size. A crash before Datasync may undo it.
	Truncate(size int64) error
	// Allocate reserves storage for [off, off+n), so that writing there cannot run out of space, and extends the size
	// to at least off+n. New bytes read as zeros. ErrNoSpace if the disk is full. Nobody writes into the range meanwhile.
	Allocate(off, n int64) error
	// PunchHole gives the storage of [off, off+n) back; the range reads as zeros, or after a crash as before. The size
	// stays. The error is errors.ErrUnsupported, and the file as it was, where the file system has no holes.
	PunchHole(off, n int64) error
	// Datasync returns after everything written before the call, and the size, is durable. After an error nothing is
	// known about what was written since the last success; there is no sense in calling it again.
	Datasync() error
	// Map maps the file read-only over a reserved address range of reserve bytes, of which the first Size() are
	// readable. See Mapping.Grow.
	Map(reserve int64) (Mapping, error)
	Close() error
}

// Mapping is a read-only view of a file, coherent with WriteAt, at an address that never moves.
type Mapping interface {
	// Bytes is the readable part. A store into it faults. A load from a part whose storage fails, or that the file no
	// longer has, faults too: see Guard. The slice stays valid, as far as it reaches, until Unmap.
	Bytes() []byte
	// Grow makes the first size bytes of the file readable. Within the reserved range the address does not move;
	// beyond it the answer is an error.
	Grow(size int64) error
	// Guard runs f and turns a fault inside this or any other mapping, in the calling goroutine, into an error that
	// wraps ErrFault. Other panics pass.
	Guard(f func() error) error
	Advise(off, n int64, a Advice) error
	Unmap() error
}

// Advice tells the kernel how a range of a mapping will be used.
type Advice int

const (
	AdviseNormal Advice = iota
	AdviseSequential
	AdviseRandom
	AdviseWillNeed
	AdviseDontNeed
)
