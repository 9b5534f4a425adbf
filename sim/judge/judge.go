// Package judge watches a simulated disk on which a storage engine runs, and says at once when the engine does what could
// lose data, whether or not a crash image happens to show it. It decodes durable bytes by itself, with packages page, btree,
// slab and wal and the descriptions of their formats, and knows nothing of the engine's memory.
//
// # The four judges
//
//	ack           what was acknowledged, or shown to anyone, is in the log as a power cut now would leave it ([Judge.Visible])
//	publish       when a meta page is written, all that it reaches is durable and sound, its bitmaps mark exactly that, the file
//	              is as long as it says, the other meta page is valid, and it is the one that recovery would choose
//	log removal   a segment of the log that is renamed, removed, cut or overwritten is needed by neither durable meta page:
//	              without it the log is read to the same end from each of them
//	immutability  no write, hole or cut in the data file meets a page that a durable meta page reaches, or the one written
//	              last, or a bitmap that one of them stands on, or a page that a pinned snapshot reaches ([Judge.Pin])
//
// Each is exact: a verdict is a fault of the engine, whatever happens later. They hold for runs without damage (lost and
// misdirected writes, rot), on disks that keep their promises.
//
// # Use
//
//	j := judge.New(disk, "/db", judge.Options{})
//	disk.SetHooks(simfs.Hooks{Watch: j.Watch})
//	… run, and call j.Visible(snapshot.LSN()) now and then …
//	if err := j.Err(); err != nil { … }
package judge

import (
	"fmt"
	"strings"
	"sync"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// Options of a Judge. The zero value judges everything that is cheap.
type Options struct {
	// LogShare: one in so many writes to the log is judged (each costs two readings of the whole log); 0 means 32.
	LogShare int
}

// Counts are how often each judge has judged. A run in which one of them is 0 proves nothing about its rule.
type Counts struct {
	Acks, Publishes, Removals, Writes int
}

// Add adds d.
func (c *Counts) Add(d Counts) {
	c.Acks += d.Acks
	c.Publishes += d.Publishes
	c.Removals += d.Removals
	c.Writes += d.Writes
}

// Judge watches one disk. It is safe for concurrent use.
type Judge struct {
	disk *simfs.FS
	dir  string
	data string
	o    Options

	mu        sync.Mutex // held across no call of the watched disk that could yield
	counts    Counts
	err       error
	logWrites int

	// The durable meta pages as they were last looked at, and what they protect.
	seen  [2][page.Size]byte
	guard *guard

	held map[page.ID][]page.Ref
}

// New makes the judge of the database in dir of disk. Its Watch must see every event from the database's first opening on.
func New(disk *simfs.FS, dir string, o Options) *Judge {
	if o.LogShare == 0 {
		o.LogShare = 32
	}
	return &Judge{disk: disk, dir: dir, data: dir + "/data", o: o, held: map[page.ID][]page.Ref{}}
}

// Err is the first verdict, or nil.
func (j *Judge) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Counts tells how often each judge has judged.
func (j *Judge) Counts() Counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// fault notes a verdict.
func (j *Judge) fault(name, format string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf("judge %s: %s", name, fmt.Sprintf(format, args...))
	}
}

// Watch is the hook of the disk.
func (j *Judge) Watch(e simfs.Event) {
	log := strings.HasPrefix(e.Path, j.dir+"/wal-")
	if !log && e.Path != j.data {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.err != nil:
	case log:
		j.watchLog(e)
	default:
		j.watchData(e)
	}
}

func (j *Judge) watchData(e simfs.Event) {
	switch {
	case e.Op == simfs.OpWrite && e.When == simfs.Part:
		if id := page.ID(e.Off / page.Size); id <= 1 {
			j.publish(e, id)
		} else {
			j.written(e, page.Run{First: id, Count: 1})
		}
	case e.When != simfs.Before:
	case e.Op == simfs.OpPunch:
		first, end := e.Off/page.Size, (e.Off+e.Len+page.Size-1)/page.Size
		j.written(e, page.Run{First: page.ID(first), Count: uint32(end - first)})
	case e.Op == simfs.OpTruncate:
		j.cut(e)
	}
}

// durable is the disk as a power cut would leave it that loses all it can.
func (j *Judge) durable() *simfs.FS { return j.disk.Crash(simfs.Choice{Gen: simfs.DropAll}) }

// Pin says that the pages of refs must stay as they are: a snapshot that can reach them is pinned. A page that is not in
// the file yet may still be written, if it is written as what the reference says.
type Pin struct {
	j    *Judge
	refs []page.Ref
}

// Pin begins to protect the pages.
func (j *Judge) Pin(refs []page.Ref) *Pin {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := &Pin{j: j, refs: refs}
	for _, r := range refs {
		j.held[r.ID()] = append(j.held[r.ID()], r)
	}
	return p
}

// Release ends the protection. It comes before the snapshot's own.
func (p *Pin) Release() {
	p.j.mu.Lock()
	defer p.j.mu.Unlock()
	for _, r := range p.refs {
		list := p.j.held[r.ID()]
		for i, o := range list {
			if o == r {
				list = append(list[:i:i], list[i+1:]...)
				break
			}
		}
		if p.j.held[r.ID()] = list; len(list) == 0 {
			delete(p.j.held, r.ID())
		}
	}
}
