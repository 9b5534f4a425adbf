package storage

import (
	"errors"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
)

// Writer is one write under way: a private set of pages, built beside everything that others can reach, and installed whole.
// It belongs to one goroutine, and only within the function given to Store.Write.
//
// It is the page.Editor of the trees and tables it edits. A page is its own, and may be changed in place, if and only if the
// page's birth is the Writer's generation, which no other Writer has.
type Writer struct {
	s      *Store
	kind   kind
	gen    page.Gen
	ticket *page.Ticket
	colls  []*Collection // locked, ascending

	born    []*frame // single pages it made; nil if retired again
	retired []retired
	large   bool       // the batch has grown so large that it is to be committed
	unseen  []page.Run // of those it retired, what no snapshot will have: free once it is installed
	log     []byte
	edits   int

	short need // what the ticket lacked, beside what it gave
	took  need
}

// need is what a ticket must hold.
type need struct {
	pages int
	runs  []uint32
}

// errShort and errMoved end a run of f that has to be repeated. They never leave Write.
var (
	errShort = errors.New("the ticket was too small")
	errMoved = errors.New("a head was moved by a checkpoint's seal")
)

// firstTicket is the number of page ids that a write has at its first try: enough for one document and a few indexes.
const firstTicket = 32

// Write runs f, which locks the collections it touches, looks and edits, and installs what it built: all of it, at one
// point of the order of writes. If f returns an error nothing is installed.
//
// f may be run more than once (when the space reserved for it was too small, or a checkpoint moved the place where records
// are appended): it must reset whatever it keeps outside. It must not wait for anything but the locks of the Writer.
// Everything f reads through w is at head: newer than any snapshot, and not durable yet.
//
// The Commit, which is valid also beside an error from f, must be waited for before anything that f saw or did is told to
// anyone: a reply rests on what it looked at.
func (s *Store) Write(f func(w *Writer) error) (Commit, error) { return s.write(f, logged) }

// WriteFreeing is Write for what gives space back (deletes, drops): on a full disk it may use the reserve.
func (s *Store) WriteFreeing(f func(w *Writer) error) (Commit, error) { return s.write(f, freeing) }

// kind of a write: where its space comes from.
type kind struct {
	freeing bool    // may use the reserve, does not wait at admission
	below   page.ID // if not 0, everything that it makes lies below this page
}

var (
	logged  = kind{}
	freeing = kind{freeing: true}
)

func (s *Store) write(f func(w *Writer) error, k kind) (Commit, error) {
	need := need{pages: firstTicket}
	for tries := 0; ; {
		if err := s.admit(k); err != nil {
			return Commit{}, err
		}
		w, err := s.begin(need, k)
		if errors.Is(err, ErrDiskFull) && tries < 2 && s.pendingHelps() {
			tries++
			continue
		}
		if err != nil {
			probe.FullDiskBetweenRuns.HitIf((need.pages > firstTicket || len(need.runs) > 0) && errors.Is(err, ErrDiskFull))
			return Commit{}, s.refused(err)
		}
		c, err := w.run(f)
		switch {
		case len(w.short.runs) > 0 || w.short.pages > 0:
			probe.TicketShort.Hit()
			need.pages = max(need.pages, 2*(w.took.pages+w.short.pages))
			need.runs = append(slices.Clone(w.took.runs), w.short.runs...)
		case errors.Is(err, errMoved):
			probe.HeadMoved.Hit()
		case errors.Is(err, errLogRoom):
			probe.LogRoomMade.Hit()
			if err := s.makeLogRoom(len(w.log), k); err != nil {
				return Commit{}, s.refused(err)
			}
		default:
			return c, err
		}
	}
}

// begin takes a ticket. It is the only step of a write that waits for space or does I/O to get it, and no lock is held.
func (s *Store) begin(n need, k kind) (*Writer, error) {
	t, err := s.alloc.Reserve(page.Request{Pages: n.pages, Runs: n.runs, Privileged: k.freeing, Below: k.below})
	if err != nil {
		return nil, s.noSpace(err)
	}
	return &Writer{s: s, kind: k, gen: s.nextGen(), ticket: t, log: s.buffers.get()}, nil
}

// noSpace gives the error for a reservation that did not succeed. Nothing was changed, so the database goes on.
func (s *Store) noSpace(err error) error {
	if errors.Is(err, env.ErrNoSpace) {
		return ErrDiskFull
	}
	return err
}

// refused passes on why a write cannot be. If that is the full disk, a checkpoint may free what is pending. (A checkpoint that
// itself finds no room must not ask so for the next one: it would fail in turn, for ever.)
func (s *Store) refused(err error) error {
	if errors.Is(err, ErrDiskFull) {
		probe.FullDiskRefused.Hit()
		s.wantCheckpoint()
	}
	return err
}

// pendingHelps publishes a checkpoint if pages wait for one to become free, and reports whether it did. It takes two until
// a page that was published can be used again.
func (s *Store) pendingHelps() bool {
	return !s.o.Manual && s.alloc.Stats().Pending > 0 && s.Checkpoint() == nil
}

// logSpare is room in the log, in raw bytes, that only what frees space may use.
const logSpare = 64 << 10

// logPromised is what the log must still take in, with n more bytes by a write of kind k. The gate is held.
func (s *Store) logPromised(n int, k kind) int {
	n += s.inFlight + s.open.logBytes
	if k == logged {
		n += logSpare
	}
	return n
}

// makeLogRoom has segments made for a write of n bytes.
func (s *Store) makeLogRoom(n int, k kind) error {
	s.gate.Lock()
	room := s.logPromised(n, k)
	s.gate.Unlock()
	err := s.log.PrepareFor(room)
	switch {
	case err == nil:
		return nil
	case s.log.Err() != nil:
		return s.fail(err)
	}
	return s.noSpace(err)
}

func (w *Writer) run(f func(w *Writer) error) (c Commit, err error) {
	installed := false
	defer func() {
		// Also when f panics: nothing that others can reach was touched.
		if !installed {
			w.drop()
		}
		w.ticket.Release()
		for _, c := range slices.Backward(w.colls) {
			c.c.lock.Unlock()
		}
		w.s.free(w.unseen)
		if w.large {
			w.s.committer.want()
		}
	}()
	err = w.s.mapping.Guard(func() error { return f(w) })
	if w.short.pages > 0 || len(w.short.runs) > 0 {
		return Commit{}, errShort
	}
	if err == nil {
		if err = w.install(); err == nil {
			installed = true
		}
	}
	return w.rests(), err
}

// rests is what a reply must wait for: the last batches that changed the collections it looked at.
func (w *Writer) rests() Commit {
	c := Commit{s: w.s}
	for _, l := range w.colls {
		c = c.Later(Commit{w.s, l.c.last})
	}
	return c
}

// drop gives back everything that the write made.
func (w *Writer) drop() {
	w.s.buffers.put(w.log)
	for _, f := range w.born {
		if f != nil {
			w.s.frames.reclaim(f.first)
			w.s.alloc.Free(page.Run{First: f.first, Count: 1})
		}
	}
	for _, c := range w.colls {
		for _, x := range c.fresh {
			w.s.frames.drop(x.run)
			w.s.alloc.Free(x.run)
		}
	}
}

// Lock takes the collection's writer lock, until f is done, and gives the collection at head; nil if there is none.
// Several are locked in ascending order of ids. Readers are not hindered.
func (w *Writer) Lock(id CollID) *Collection {
	c := w.lock(id)
	if c == nil || c.head == nil || c.head.dropped {
		return nil
	}
	return c
}

// lock is Lock, and gives dropped collections too.
func (w *Writer) lock(id CollID) *Collection {
	for _, c := range w.colls {
		if c.id == id {
			return c
		}
	}
	st := w.s.coll(id)
	if st == nil {
		return nil
	}
	st.lock.Lock()
	c := &Collection{s: w.s, w: w, id: id, c: st, head: st.head.Load()}
	c.base = c.head
	w.colls = append(w.colls, c)
	return c
}

// Create makes an empty collection, locked. Collection 0 must be locked by this writer.
func (w *Writer) Create(desc []byte) (*Collection, error) {
	id := w.s.vacantID(w)
	c, err := w.createAs(id)
	if err != nil {
		return nil, err
	}
	if len(desc) > 0 {
		if err := c.SetDesc(desc); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (w *Writer) createAs(id CollID) (*Collection, error) {
	st := newColl(w.s.env, id)
	st.lock.Lock()
	c := &Collection{s: w.s, w: w, id: id, c: st, head: &head{}, changed: true}
	w.colls = append(w.colls, c)
	w.edits++
	w.log = wal.AppendCreateCollection(w.log, uint32(id), nil)
	return c, nil
}

// Size tells how much this write has built so far: edits, and bytes of log. A statement on many documents ends its
// write when this has grown large (64 KiB or 128 documents are good measures) and goes on in the next one.
func (w *Writer) Size() (edits, logBytes int) { return w.edits, len(w.log) }

// Page, New, Edit, Retire and Own make it a page.Editor.

func (w *Writer) Page(ref page.Ref) ([]byte, error) { return w.s.Page(ref) }

func (w *Writer) New(t page.Type, level uint8) (page.Ref, []byte, error) {
	f, err := w.newFrame()
	if err != nil {
		return 0, nil, err
	}
	page.Init(f.buf, t, level, f.first, w.gen)
	return page.MakeRef(f.first, w.gen), f.buf, nil
}

func (w *Writer) newFrame() (*frame, error) {
	id, ok := w.ticket.Page()
	if !ok {
		w.short.pages++
		return nil, errShort
	}
	w.took.pages++
	f := w.s.frames.newPage(id)
	w.s.frames.put(f)
	w.born = append(w.born, f)
	return f, nil
}

func (w *Writer) Edit(ref page.Ref) (page.Ref, []byte, error) {
	b, err := w.s.Page(ref)
	if err != nil {
		return 0, nil, err
	}
	birth := page.BirthOf(b)
	if birth == w.gen {
		return ref, b, nil
	}
	f, err := w.newFrame()
	if err != nil {
		return 0, nil, err
	}
	copy(f.buf, b)
	page.Rebirth(f.buf, f.first, w.gen)
	w.retired = append(w.retired, retired{page.Run{First: ref.ID(), Count: 1}, birth})
	return page.MakeRef(f.first, w.gen), f.buf, nil
}

func (w *Writer) Retire(ref page.Ref) {
	birth := w.s.birth(ref.ID())
	if birth == w.gen {
		for i, f := range slices.Backward(w.born) {
			if f != nil && f.first == ref.ID() {
				w.born[i] = nil
				break
			}
		}
		w.s.frames.reclaim(ref.ID())
		w.s.alloc.Free(page.Run{First: ref.ID(), Count: 1})
		return
	}
	w.retired = append(w.retired, retired{page.Run{First: ref.ID(), Count: 1}, birth})
}

// birth is a page's, if that can be told without reading from the disk. 0 stands for older than every snapshot, so that each is
// taken to reach the page.
func (s *Store) birth(id page.ID) page.Gen {
	if f := s.frames.get(id); f != nil {
		return page.BirthOf(f.page(id))
	}
	if s.verified.has(id) {
		return page.BirthOf(s.mapping.Bytes()[int64(id)*page.Size:])
	}
	return 0
}

func (w *Writer) Own(ref page.Ref) bool {
	f := w.s.frames.get(ref.ID())
	return f != nil && page.BirthOf(f.page(ref.ID())) == w.gen
}
