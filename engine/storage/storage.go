package storage

import (
	"errors"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// CollID is a collection's number. Collection 0 always exists: it is the caller's, for its catalog. Numbers of collections
// that were dropped and cleared away are used again, so what outlives a snapshot (a client's cursor) must remember
// something of the descriptor as well.
type CollID uint32

// TreeID is a tree's number within its collection, chosen by the caller.
type TreeID uint32

// RecordID is a record's number within its collection: 1, 2, 3 … in the order of insertion, never used twice.
type RecordID uint64

// LSN is a position in the endless log.
type LSN uint64

var (
	// ErrCorrupt is damage to bytes that were durable; the error names the place.
	ErrCorrupt = page.ErrCorrupt
	// ErrFailed: a log write or a sync failed earlier. Reads go on from the last durable state; writes are refused until the
	// database is reopened. For a write that was waiting it means "outcome unknown".
	ErrFailed = errors.New("the database has failed: a write to the disk did not succeed, and it takes no further writes until it is reopened")
	// ErrDiskFull: nothing was changed; reads and deletes go on.
	ErrDiskFull = errors.New("the disk is full")
	// ErrNoRecord: the collection has no record of that number.
	ErrNoRecord = errors.New("no such record")
	// ErrNoCollection: no collection of that number.
	ErrNoCollection = errors.New("no such collection")
	// ErrClosed: the database was closed.
	ErrClosed = errors.New("the database is closed")
)

// Open opens the database in dir, and creates it if there is none.
func Open(e *env.Env, dir string, o Options) (*Store, error) { panic("not built yet") }

// Close waits for writes under way, publishes a checkpoint and closes. Snapshots must have been released.
func (s *Store) Close() error { panic("not built yet") }

// Snapshot pins the newest durable state. It takes no lock and never waits. Release it soon: the pages it can reach are
// not reused meanwhile.
func (s *Store) Snapshot() *Snapshot { panic("not built yet") }

// Release ends the pin. All slices that came from the snapshot die.
func (sn *Snapshot) Release() { panic("not built yet") }

// LSN is the end of the batch that made the snapshot.
func (sn *Snapshot) LSN() LSN { panic("not built yet") }

// Guard runs f and turns a fault of the mapped file into an error. All reads of one command belong into one Guard.
func (sn *Snapshot) Guard(f func() error) error { panic("not built yet") }

// Collection is the collection's state in the snapshot, or nil.
func (sn *Snapshot) Collection(id CollID) *Collection { panic("not built yet") }

// Collection is one collection's state as of a snapshot or, inside Write, as the write has left it so far.
type Collection struct{ _ int }

func (c *Collection) ID() CollID { panic("not built yet") }

// Desc is the descriptor that the caller keeps with the collection, opaque here. Equal slices of one head are identical:
// &Desc()[0] may serve as the key of a cache as long as the cache keeps the slice.
func (c *Collection) Desc() []byte { panic("not built yet") }

// Count is the number of records, Bytes the sum of their sizes.
func (c *Collection) Count() uint64 { panic("not built yet") }
func (c *Collection) Bytes() uint64 { panic("not built yet") }

// Tree gives a tree to read. It is false if there is none of that number.
func (c *Collection) Tree(id TreeID) (btree.Tree, bool) { panic("not built yet") }

// Record gives a record's bytes, or ErrNoRecord.
func (c *Collection) Record(id RecordID) ([]byte, error) { panic("not built yet") }

// Records iterates in the order of RecordIDs, beginning at from (0: at the end that the direction starts from).
func (c *Collection) Records(from RecordID, reverse bool) *RecordIter { panic("not built yet") }

// RecordIter is a position among the records of a collection.
//
//	it := c.Records(0, false)
//	for it.Next() { use(it.ID(), it.Bytes()) }
//	return it.Err()
type RecordIter struct{ _ int }

func (it *RecordIter) Next() bool    { panic("not built yet") }
func (it *RecordIter) ID() RecordID  { panic("not built yet") }
func (it *RecordIter) Bytes() []byte { panic("not built yet") }
func (it *RecordIter) Err() error    { panic("not built yet") }

// Write runs f, which locks the collections it touches, looks and edits, and installs what it built: all of it, at one
// point of the order of writes. If f returns an error nothing is installed.
//
// f may be run more than once (when the space reserved for it was too small, or a checkpoint moved the place where records
// are appended): it must reset whatever it keeps outside. It must not wait for anything but the locks of the Writer.
// Everything f reads through w is at head: newer than any snapshot, and not durable yet.
//
// The Commit, which is valid also beside an error from f, must be waited for before anything that f saw or did is told to
// anyone: a reply rests on what it looked at.
func (s *Store) Write(f func(w *Writer) error) (Commit, error) { panic("not built yet") }

// Commit is a point that a reply rests on.
type Commit struct{ _ int }

// Wait returns once everything that the write looked at and did is durable and visible, or ErrFailed.
func (c Commit) Wait() error { panic("not built yet") }

// Later is the later of two commits.
func (c Commit) Later(d Commit) Commit { panic("not built yet") }

// Writer is one write under way. It belongs to one goroutine, and only within f.
type Writer struct{ _ int }

// Lock takes the collection's writer lock, until f is done, and gives the collection at head; nil if there is none.
// Several are locked in ascending order of ids. Readers are not hindered.
func (w *Writer) Lock(id CollID) *Collection { panic("not built yet") }

// Create makes an empty collection, locked. Collection 0 must be locked by this writer.
func (w *Writer) Create(desc []byte) (*Collection, error) { panic("not built yet") }

// The edits below are for collections that this Writer has locked. An error means that the write must be given up: return
// it from f.

// Drop removes the collection with all it holds.
func (c *Collection) Drop() error { panic("not built yet") }

func (c *Collection) SetDesc(desc []byte) error             { panic("not built yet") }
func (c *Collection) CreateTree(id TreeID) error            { panic("not built yet") }
func (c *Collection) DropTree(id TreeID) error              { panic("not built yet") }
func (c *Collection) Put(t TreeID, key, value []byte) error { panic("not built yet") }

// Delete reports whether there was such a key.
func (c *Collection) Delete(t TreeID, key []byte) (bool, error) { panic("not built yet") }

func (c *Collection) Insert(record []byte) (RecordID, error)   { panic("not built yet") }
func (c *Collection) Replace(id RecordID, record []byte) error { panic("not built yet") }
func (c *Collection) Remove(id RecordID) error                 { panic("not built yet") }

// Size tells how much this write has built so far: edits, and bytes of log. A statement on many documents ends its
// write when this has grown large (64 KiB or 128 documents are good measures) and goes on in the next one.
func (w *Writer) Size() (edits, logBytes int) { panic("not built yet") }

type Store struct{ _ int }
type Snapshot struct{ _ int }
type Options struct{ _ int }
