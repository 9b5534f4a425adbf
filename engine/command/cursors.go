package command

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

const (
	// cursorIdle is how long a cursor lives that nobody asks for more.
	cursorIdle = 10 * time.Minute
	// cursorSweep is how often idle ones are looked for.
	cursorSweep = time.Minute
	// cursorsMax bounds what clients that open and never close can take; each costs a few hundred bytes.
	cursorsMax = 100_000

	// firstBatch is how many documents come with the answer to find, if the client does not say.
	firstBatch = 101
	// batchBytes bounds a batch, but for its first document. What grows beyond batchCounted asks for room first.
	batchBytes   = 16 << 20
	batchCounted = 256 << 10
)

// Cursors are what clients hold and ask for more. A cursor is a position and pins nothing, so one that was forgotten costs its few
// bytes, and the temporary files of a sort that needed some, until it has been idle for ten minutes.
type Cursors struct {
	env *env.Env

	mu     env.Mutex
	open   map[int64]*cursor
	stop   func() bool // ends the next sweep
	closed bool
	timed  int64 // how many ended by being idle
}

// cursor is one of them. While a batch is read it is busy, and belongs to that command.
type cursor struct {
	id      int64
	ns      engine.Namespace
	src     source
	session session
	// keep: the client asked that it never be too idle.
	keep bool
	// await: a getMore that finds nothing waits for documents to come.
	await bool
	// left is what remains of the maxTimeMS that the query came with; 0 if it came without.
	left time.Duration

	// Of Cursors.mu:
	busy   bool
	killed bool
	used   time.Duration // when it was asked last
}

// source is where a cursor's documents come from: the engine's Cursor, or a list.
type source interface {
	Batch(ctx context.Context, docs int, emit func(doc bson.Raw) bool) (more bool, err error)
	// Close ends the source before Batch has said that there is no more. It may be called again.
	Close() error
}

// list is a source of documents in memory.
type list []bson.Raw

func (l *list) Batch(_ context.Context, docs int, emit func(doc bson.Raw) bool) (bool, error) {
	for ; docs > 0 && len(*l) > 0 && emit((*l)[0]); docs-- {
		*l = (*l)[1:]
	}
	return len(*l) > 0, nil
}

func (l *list) Close() error { return nil }

func newCursors(e *env.Env) *Cursors {
	cs := &Cursors{env: e, open: make(map[int64]*cursor)}
	cs.mu.Init(e, env.RankNone, "cursors")
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.stop = e.Clock.AfterFunc(cursorSweep, cs.sweepLater)
	return cs
}

// sweepLater sweeps and comes again.
func (cs *Cursors) sweepLater() {
	cs.sweep()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !cs.closed {
		cs.stop = cs.env.Clock.AfterFunc(cursorSweep, cs.sweepLater)
	}
}

// sweep ends the cursors that have been idle for too long.
func (cs *Cursors) sweep() {
	now := cs.env.Clock.Monotonic()
	var gone []*cursor
	cs.mu.Lock()
	// order: whichever comes first, the same ones go
	for id, c := range cs.open {
		if !c.busy && !c.keep && now-c.used >= cursorIdle {
			delete(cs.open, id)
			cs.timed++
			gone = append(gone, c)
		}
	}
	cs.mu.Unlock()
	closeAll(gone)
}

// closeAll closes the sources of cursors that nobody can find any more. What a close fails to give back, the end of the process does.
func closeAll(gone []*cursor) {
	for _, c := range gone {
		c.src.Close()
	}
}

// close ends all cursors; the database closes those that are busy.
func (cs *Cursors) close() {
	var gone []*cursor
	cs.mu.Lock()
	cs.closed = true
	cs.stop()
	// order: all of them go
	for _, c := range cs.open {
		if !c.busy {
			gone = append(gone, c)
		}
	}
	clear(cs.open)
	cs.mu.Unlock()
	closeAll(gone)
}

// add keeps c and gives it an id.
func (cs *Cursors) add(c *cursor) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.open) >= cursorsMax {
		return mongoerr.ExceededMemoryLimit.Errorf("there are %d open cursors already", len(cs.open))
	}
	for c.id == 0 || cs.open[c.id] != nil {
		c.id = int64(cs.env.Rand.Uint64() >> 1)
	}
	c.used = cs.env.Clock.Monotonic()
	cs.open[c.id] = c
	return nil
}

// take makes a cursor busy.
func (cs *Cursors) take(id int64, ns engine.Namespace, s session) (*cursor, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.open[id]
	switch {
	case c == nil:
		return nil, mongoerr.CursorNotFound.Errorf("cursor id %d not found", id)
	case c.ns != ns:
		return nil, mongoerr.Unauthorized.Errorf("Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.session != s:
		return nil, mongoerr.Code(50738).Errorf("Cannot run getMore on cursor %d, which was created in another session", id)
	case c.busy:
		return nil, mongoerr.CursorInUse.Errorf("cursor id %d is already in use", id)
	}
	c.busy = true
	return c, nil
}

// give ends what take began: the cursor stays if keep says so and nobody killed it meanwhile.
func (cs *Cursors) give(c *cursor, keep bool) (kept bool) {
	cs.mu.Lock()
	c.busy = false
	c.used = cs.env.Clock.Monotonic()
	if !keep || c.killed {
		delete(cs.open, c.id)
	}
	kept = cs.open[c.id] == c
	cs.mu.Unlock()
	if !kept {
		c.src.Close()
	}
	return kept
}

// kill ends the cursors that match says. One that is busy ends with its batch.
func (cs *Cursors) kill(match func(c *cursor) bool) {
	var gone []*cursor
	cs.mu.Lock()
	// order: whichever comes first, the same ones go
	for _, c := range cs.open {
		if match(c) {
			gone = cs.killLocked(c, gone)
		}
	}
	cs.mu.Unlock()
	closeAll(gone)
}

// killLocked appends c to gone if the caller is to close it.
func (cs *Cursors) killLocked(c *cursor, gone []*cursor) []*cursor {
	if c.killed = true; c.busy {
		return gone
	}
	delete(cs.open, c.id)
	return append(gone, c)
}

// killOne ends one cursor of ns, and says whether there was such a one.
func (cs *Cursors) killOne(id int64, ns engine.Namespace) bool {
	cs.mu.Lock()
	c := cs.open[id]
	if c == nil || c.killed || c.ns != ns {
		cs.mu.Unlock()
		return false
	}
	gone := cs.killLocked(c, nil)
	cs.mu.Unlock()
	closeAll(gone)
	return true
}

// isKilled says whether a cursor that is busy shall end with its batch.
func (cs *Cursors) isKilled(c *cursor) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.killed
}

// counts are for serverStatus.
func (cs *Cursors) counts() (open, keep, timed int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	// order: a sum
	for _, c := range cs.open {
		if c.keep {
			keep++
		}
	}
	return int64(len(cs.open)), keep, cs.timed
}

// readBatch appends the array called name with the next documents of src: at most docs of them, and about 16 MiB, or less if
// there is no room for as much.
func (c *call) readBatch(name string, src source, docs int64) (n int, more bool, err error) {
	at, out := bsoncore.AppendArrayElementStart(c.out, name)
	start, room := len(out), batchCounted
	more = true
	full := false
	if docs > 0 {
		more, err = src.Batch(c.ctx, int(min(docs, 1<<30)), func(doc bson.Raw) bool {
			size := len(out) - start + len(doc)
			if n > 0 && size > batchBytes {
				return false
			}
			if size > room {
				next := max(2*room, size)
				if c.req.Room != nil && !c.req.Room(int64(next-room)) {
					full = true
					return false
				}
				room = next
			}
			if len(out)+len(doc)+16 > cap(out) {
				// Twice as much: append would go in small steps, and copy the batch five times.
				out = slices.Grow(out, max(len(doc)+16, cap(out)))
			}
			out = appendElement(out, n, doc)
			n++
			return true
		})
	}
	if err == nil && full && n == 0 {
		err = noRoom()
	}
	c.out, _ = bsoncore.AppendArrayEnd(out, at)
	return n, more, err
}

func noRoom() error {
	return mongoerr.ExceededMemoryLimit.Errorf("the replies under way take all the memory that replies may take")
}

// cursorReply appends the reply of a command that opens a cursor: its first documents, and an id if there may be more.
func (c *call) cursorReply(cur *cursor, docs int64, single bool) error {
	kept := false
	defer func() {
		if !kept {
			cur.src.Close()
		}
	}()
	start := c.env.Clock.Monotonic()
	at, out := bsoncore.AppendDocumentElementStart(c.out, "cursor")
	c.out = out
	_, more, err := c.readBatch("firstBatch", cur.src, docs)
	if err != nil {
		return err
	}
	if more && !single {
		if c.generic.maxTime > 0 && !cur.await {
			cur.left = max(c.generic.maxTime-(c.env.Clock.Monotonic()-start), time.Millisecond)
		}
		cur.session = c.generic.session
		if err := c.cursors.add(cur); err != nil {
			return err
		}
		kept = true
	}
	c.endCursor(at, cur.id, cur.ns.String())
	return nil
}

// endCursor ends the cursor's document.
func (c *call) endCursor(at int32, id int64, ns string) {
	c.out = bsoncore.AppendInt64Element(c.out, "id", id)
	c.out = bsoncore.AppendStringElement(c.out, "ns", ns)
	c.out, _ = bsoncore.AppendDocumentEnd(c.out, at)
}

// cursorOptions reads the field cursor: {batchSize: n} of aggregate, listCollections and listIndexes.
func (f field) cursorOptions(batch *int64) error {
	var doc bson.Raw
	if err := f.document(&doc); err != nil || doc == nil {
		return err
	}
	return fieldsOf(f.parent+"."+f.name, doc, func(f field) (bool, error) {
		if f.name == "batchSize" {
			return true, f.natural(batch)
		}
		return false, nil
	})
}
