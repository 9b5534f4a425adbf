package query

import (
	"bytes"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// access walks the records that a scan finds. Between attach and detach it reads one Source; what it remembers beyond that is
// the place of the last record or entry that it gave, so that it goes on behind it in another.
type access struct {
	*scan
	src  Source
	tick func() error

	place []byte // key of the last entry, or nil
	again bool   // the next entry is the one at place, if it is still there
	head  head   // of a part of a merge
	last  uint64 // id of the last record, or 0
	ended bool
	tail  bool     // the end of the records is not the end
	part  int      // of a union, the scan under way
	parts []access // made when the union or merge starts
	taken int      // of a merge, the part that the last entry came from

	records RecordIter
	entries EntryIter
	seekBuf []byte

	keys, docs int // examined
	work       int // since the last tick
}

// workTick is how much work, in about half a microsecond, is done between two ticks.
const workTick = 100

// attach readies a for src.
func (a *access) attach(src Source, tick func() error) { a.src, a.tick = src, tick }

// detach lets go of the source.
func (a *access) detach() {
	a.src, a.tick, a.records, a.entries = nil, nil, nil, nil
	for i := range a.parts {
		a.parts[i].detach()
	}
}

func (a *access) count(work int) error {
	if a.work += work; a.work < workTick {
		return nil
	}
	a.work = 0
	return a.tick()
}

// next gives the next record's id, and its bytes if the walk came by them.
func (a *access) next() (id uint64, doc []byte, ok bool, err error) {
	if a.ended {
		return 0, nil, false, nil
	}
	switch a.kind {
	case scanRecords:
		id, doc, ok, err = a.nextRecord()
	case scanID:
		id, ok, err = a.lookUp()
	case scanIndex:
		id, ok, err = a.nextEntry()
	case scanUnion:
		id, ok, err = a.nextOfUnion()
	case scanMerge:
		id, ok, err = a.nextMerged()
	}
	if err == nil && !ok && !a.tail {
		a.ended = true
	}
	return id, doc, ok, err
}

func (a *access) nextRecord() (uint64, []byte, bool, error) {
	if a.records == nil {
		from := a.last
		switch {
		case from == 0:
		case !a.reverse:
			from++
		case from == 1:
			return 0, nil, false, nil
		default:
			from--
		}
		a.records = a.src.Records(from, a.reverse)
	}
	if !a.records.Next() {
		return 0, nil, false, a.records.Err()
	}
	doc := a.records.Bytes()
	a.last = a.records.ID()
	a.docs++
	return a.last, doc, true, a.count(1 + len(doc)>>12)
}

// lookUp finds the one record with an _id.
func (a *access) lookUp() (uint64, bool, error) {
	it, ok := a.src.Entries(a.index.Tree)
	if !ok {
		return 0, false, fmt.Errorf("index %s: its tree is not there", a.index.Name)
	}
	a.ended = true
	if !it.Seek(a.id) {
		return 0, false, it.Err()
	}
	k, id, ok := key.CutRecordID(it.Key())
	a.keys++
	return id, ok && bytes.Equal(k, a.id), it.Err()
}

func (a *access) nextEntry() (uint64, bool, error) {
	more, err := a.step()
	for more && err == nil {
		a.keys++
		k := a.entries.Key()
		if k == nil {
			break // damage: see Err below
		}
		var v verdict
		if a.reverse {
			v, a.seekBuf = a.bounds.backward(k, a.seekBuf[:0])
		} else {
			v, a.seekBuf = a.bounds.forward(k, a.seekBuf[:0])
		}
		if v == inside && a.distinct && a.sameAsLast(k) {
			v = outside
		}
		switch v {
		case inside:
			a.place = append(a.place[:0], k...)
			_, id, ok := key.CutRecordID(k)
			if !ok {
				return 0, false, fmt.Errorf("index %s: an entry of %d bytes is too short", a.index.Name, len(k))
			}
			return id, true, a.count(1)
		case beyond:
			return 0, false, nil
		}
		if err = a.count(1); err != nil {
			break
		}
		if a.reverse {
			more = a.entries.SeekBefore(a.seekBuf)
		} else {
			more = a.entries.Seek(a.seekBuf)
		}
	}
	if err == nil {
		err = a.entries.Err()
	}
	return 0, false, err
}

// sameAsLast says whether an entry has the first field of the last one that was given, and if so puts into seekBuf where the next value
// begins.
func (a *access) sameAsLast(k []byte) bool {
	n := key.FieldLen(k, a.index.Fields[0].Kind == key.Descending)
	if a.place == nil || !bytes.HasPrefix(a.place, k[:n]) {
		return false
	}
	a.seekBuf = append(a.seekBuf[:0], k[:n]...)
	if a.reverse {
		return true
	}
	next := key.Successor(a.seekBuf)
	if next != nil {
		a.seekBuf = next
	}
	return next != nil
}

// step moves to the entry after the last one, opening the index first if need be.
func (a *access) step() (bool, error) {
	if a.entries != nil {
		if a.reverse {
			return a.entries.Prev(), nil
		}
		return a.entries.Next(), nil
	}
	var ok bool
	if a.entries, ok = a.src.Entries(a.index.Tree); !ok {
		return false, mongoerr.QueryPlanKilled.Errorf("query plan killed :: index '%s' dropped", a.index.Name)
	}
	switch {
	case a.bounds.empty():
		return false, nil
	case a.place != nil:
		// No entry's key is the beginning of another's, so there is nothing between place and what is behind it.
		behind := append(append(a.seekBuf[:0], a.place...), 0)
		again := a.again
		a.again = false
		switch {
		case a.reverse && again:
			return a.entries.SeekBefore(behind), nil
		case a.reverse:
			return a.entries.SeekBefore(a.place), nil
		case again:
			return a.entries.Seek(a.place), nil
		}
		return a.entries.Seek(behind), nil
	}
	var key []byte
	key, ok = a.bounds.start(a.seekBuf[:0], a.reverse)
	switch {
	case ok && a.reverse:
		return a.entries.SeekBefore(key), nil
	case ok:
		return a.entries.Seek(key), nil
	case a.reverse:
		return a.entries.SeekLast(), nil
	}
	return a.entries.Seek(nil), nil
}

func (a *access) nextOfUnion() (uint64, bool, error) {
	if a.parts == nil {
		a.startParts()
	}
	for ; a.part < len(a.parts); a.part++ {
		p := &a.parts[a.part]
		p.attach(a.src, a.tick)
		id, _, ok, err := p.next()
		if ok || err != nil {
			return id, ok, err
		}
	}
	return 0, false, nil
}

func (a *access) startParts() {
	a.parts = make([]access, len(a.scan.parts))
	for i := range a.parts {
		a.parts[i].scan = &a.scan.parts[i]
	}
}

// fetch reads a record that an entry names.
func (a *access) fetch(id uint64) ([]byte, error) {
	doc, err := a.src.Record(id)
	if err != nil {
		return nil, fmt.Errorf("record %d of an index scan: %w", id, err)
	}
	a.docs++
	return doc, a.count(1 + len(doc)>>12)
}
