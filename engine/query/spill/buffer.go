package spill

import "github.com/multiforadb/multiforadb/engine/mongoerr"

// Buffer keeps records in memory as far as they fit, and the others in a Log.
type Buffer struct {
	o    BufferOptions
	used int64
	list [][]byte // the first records
	log  *Log     // the others; nil: there are none
	at   []int64  // by record of the log: its position
}

// BufferOptions bound a Buffer.
type BufferOptions struct {
	Who    string // for the error
	Memory int64  // bytes to hold
	Disk   Disk   // nil: more is error 292
}

// recordSize is about what a record in memory takes beside its bytes.
const recordSize = 32

func NewBuffer(o BufferOptions) *Buffer { return &Buffer{o: o} }

// Append adds a copy of a record.
func (b *Buffer) Append(record []byte) error {
	if b.log == nil {
		if b.used += int64(len(record)) + recordSize; b.used <= b.o.Memory {
			b.list = append(b.list, append(make([]byte, 0, len(record)), record...))
			return nil
		}
		if b.o.Disk == nil {
			return mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed.Errorf(
				"Exceeded memory limit of %d bytes for %s, but didn't allow external spilling. Pass allowDiskUse:true to opt in.", b.o.Memory, b.o.Who)
		}
		var err error
		if b.log, err = Create(b.o.Disk); err != nil {
			return err
		}
	}
	at, err := b.log.Append(record)
	b.at = append(b.at, at)
	return err
}

// Len is how many records there are.
func (b *Buffer) Len() int { return len(b.list) + len(b.at) }

// Close lets go of the disk.
func (b *Buffer) Close() error {
	b.list = nil
	if b.log == nil {
		return nil
	}
	l := b.log
	b.log = nil
	return l.Close()
}

// Reader stands before the first record. Nothing may be appended while it is used.
func (b *Buffer) Reader() (*BufferReader, error) {
	r := &BufferReader{b: b}
	var err error
	if b.log != nil {
		r.log, err = b.log.Reader()
	}
	return r, err
}

// BufferReader gives the records of a Buffer.
type BufferReader struct {
	b    *Buffer
	next int
	log  *Reader
}

// Next is the next record, which dies with the call after; nil without an error is the end.
func (r *BufferReader) Next() ([]byte, error) {
	if r.next == r.b.Len() {
		return nil, nil
	}
	r.next++
	return r.At(r.next - 1)
}

// At is record number i. It dies with the next call.
func (r *BufferReader) At(i int) ([]byte, error) {
	if i < len(r.b.list) {
		return r.b.list[i], nil
	}
	return r.log.At(r.b.at[i-len(r.b.list)])
}
