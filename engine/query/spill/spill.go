// Package spill keeps what a command cannot hold in memory: records of bytes in temporary files.
//
// A Log is written from front to end and then read, as often as one likes, from any of its records on. It lives no longer than the
// command that made it: nothing of it is synced, and nothing reads it after a restart. What it holds comes back as it was written or
// not at all, since each record has a checksum:
//
//	0      4      8
//	┌──────┬──────┬───────┐
//	│ size │ crc  │ bytes │   little endian; crc is CRC-32C of the bytes
//	└──────┴──────┴───────┘
//
// A record is valid if and only if size bytes follow within what was written and crc is theirs.
//
// Where the files lie, and how large all of them may become together, is the Disk's business. A Log belongs to one goroutine, and
// must be closed: an open one takes room on the disk.
package spill

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Disk gives temporary files.
type Disk interface {
	// Create opens a new, empty file, which is gone with its Close.
	Create() (File, error)
}

// File is a temporary file. ReadAt is only asked for what was written.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	Close() error
}

const (
	headerSize = 8
	// bufferSize is how much is written and read at a time.
	bufferSize = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log is records in a file.
type Log struct {
	file    File
	buf     []byte // what follows the written bytes
	written int64
	count   int
}

// Create is a new Log.
func Create(d Disk) (*Log, error) {
	f, err := d.Create()
	if err != nil {
		return nil, err
	}
	return &Log{file: f}, nil
}

// Append adds a record, made of parts, and gives the position at which Reader.At finds it.
func (l *Log) Append(parts ...[]byte) (at int64, err error) {
	at, start := l.Size(), len(l.buf)
	l.buf = append(l.buf, make([]byte, headerSize)...)
	for _, p := range parts {
		l.buf = append(l.buf, p...)
	}
	data := l.buf[start+headerSize:]
	binary.LittleEndian.PutUint32(l.buf[start:], uint32(len(data)))
	binary.LittleEndian.PutUint32(l.buf[start+4:], crc32.Checksum(data, castagnoli))
	l.count++
	if len(l.buf) >= bufferSize {
		err = l.flush()
	}
	return at, err
}

func (l *Log) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	if _, err := l.file.WriteAt(l.buf, l.written); err != nil {
		return err
	}
	l.written += int64(len(l.buf))
	l.buf = l.buf[:0]
	if cap(l.buf) > 2*bufferSize { // a large record was among them
		l.buf = nil
	}
	return nil
}

// Size is how many bytes the log has, Count how many records.
func (l *Log) Size() int64 { return l.written + int64(len(l.buf)) }
func (l *Log) Count() int  { return l.count }

// Close lets go of the file.
func (l *Log) Close() error {
	l.buf = nil
	return l.file.Close()
}

// Reader stands before the first record. Nothing may be appended while it is used.
func (l *Log) Reader() (*Reader, error) {
	if err := l.flush(); err != nil {
		return nil, err
	}
	l.buf = nil
	return &Reader{log: l}, nil
}

// Reader gives the records of a Log.
type Reader struct {
	log  *Log
	next int64
	from int64 // where buf begins in the file
	buf  []byte
}

// Next is the next record, which dies with the call after; nil without an error is the end.
func (r *Reader) Next() ([]byte, error) {
	if r.next == r.log.written {
		return nil, nil
	}
	return r.At(r.next)
}

// At is the record at a position that Append gave; Next goes on behind it.
func (r *Reader) At(at int64) ([]byte, error) {
	header, err := r.bytes(at, headerSize)
	if err != nil {
		return nil, err
	}
	size, crc := int(binary.LittleEndian.Uint32(header)), binary.LittleEndian.Uint32(header[4:])
	data, err := r.bytes(at+headerSize, size)
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(data, castagnoli) != crc {
		return nil, fmt.Errorf("spill: temporary file, offset %d: checksum mismatch", at)
	}
	r.next = at + headerSize + int64(size)
	return data[:size:size], nil
}

// bytes is n bytes of the file as a view of the buffer.
func (r *Reader) bytes(at int64, n int) ([]byte, error) {
	if at < r.from || at+int64(n) > r.from+int64(len(r.buf)) {
		if at < 0 || at+int64(n) > r.log.written {
			return nil, fmt.Errorf("spill: temporary file, offset %d: a record is cut off", at)
		}
		size := int(min(int64(max(n, bufferSize)), r.log.written-at))
		if cap(r.buf) < size || cap(r.buf) > 2*bufferSize && size <= bufferSize {
			r.buf = make([]byte, size)
		}
		r.buf, r.from = r.buf[:size], at
		if _, err := r.log.file.ReadAt(r.buf, at); err != nil {
			r.buf = r.buf[:0]
			return nil, err
		}
	}
	return r.buf[at-r.from:][:n], nil
}
