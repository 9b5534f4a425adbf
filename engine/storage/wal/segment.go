package wal

import (
	"fmt"
	"io"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// segment is an open segment file.
type segment struct {
	header
	name   string
	file   env.File
	bytes  int64   // size of the file; below header.size if it was trimmed
	limit  LSN     // where what counts of its range ends: its end, or a later epoch's cut
	blocks []block // the valid ones, in order; dropped once recovery is over
}

// badSegment is a file that has a segment's name and no valid header.
type badSegment struct {
	id  uint64
	err error
}

// openSegment reads the header of a segment. An unsound one is an error that wraps page.ErrCorrupt.
func openSegment(e *env.Env, dir string, id uint64) (*segment, error) {
	s := &segment{name: segmentName(id)}
	f, err := e.FS.Open(dir+"/"+s.name, env.OpenExisting)
	if err != nil {
		return nil, fmt.Errorf("wal: %s: %w", s.name, err)
	}
	s.file = f
	if err := s.readHeader(id); err != nil {
		f.Close()
		return nil, fmt.Errorf("wal: %s, offset 0: %w", s.name, err)
	}
	return s, nil
}

func (s *segment) readHeader(id uint64) (err error) {
	if s.bytes, err = s.file.Size(); err != nil {
		return err
	}
	b := make([]byte, segmentHeaderSize)
	if s.bytes < unit {
		return fmt.Errorf("the file has only %d bytes: %w", s.bytes, page.ErrCorrupt)
	}
	if _, err := s.file.ReadAt(b, 0); err != nil {
		return err
	}
	if s.header, err = decodeHeader(b, id); err != nil {
		return err
	}
	s.limit = s.end()
	return nil
}

// scan finds the valid blocks, wherever they are. Bytes that are none are passed at steps of unit. buf is as long as the
// file or as blockSizeMax.
func (s *segment) scan(buf []byte) error {
	w := window{f: s.file, buf: buf, size: min(s.bytes, s.header.size)}
	for off := int64(unit); off+unit <= w.size; {
		d, err := w.at(off, unit)
		if err != nil {
			return fmt.Errorf("wal: %s, offset %d: %w", s.name, off, err)
		}
		b, ok := decodeBlock(d, &s.header, s.first+LSN(off-unit))
		if ok {
			if d, err = w.at(off, blockHeaderSize+int(b.stored)); err != nil {
				return fmt.Errorf("wal: %s, offset %d: %w", s.name, off, err)
			}
			ok = d != nil && verifyBlock(d, &b)
		}
		if !ok {
			off += unit
			continue
		}
		s.blocks = append(s.blocks, b)
		off += int64(b.size())
	}
	return nil
}

// read reads block b and checks it again. The result is valid until buf is used again, its capacity grown to what is needed.
func (s *segment) read(b *block, buf *[]byte) ([]byte, error) {
	n := blockHeaderSize + int(b.stored)
	if cap(*buf) < n {
		*buf = make([]byte, padded(n))
	}
	d := (*buf)[:n]
	off := s.offset(b.lsn)
	if _, err := s.file.ReadAt(d, off); err != nil {
		return nil, fmt.Errorf("wal: %s, offset %d, LSN %d: %w", s.name, off, b.lsn, err)
	}
	got, ok := decodeBlock(d, &s.header, b.lsn)
	if !ok || got != *b || !verifyBlock(d, b) {
		return nil, fmt.Errorf("wal: %s, offset %d, LSN %d: the block was valid and is not any more: %w", s.name, off, b.lsn, page.ErrCorrupt)
	}
	return d, nil
}

// window reads a file front to back in large pieces.
type window struct {
	f    io.ReaderAt
	buf  []byte
	base int64
	n    int
	size int64
}

// at gives n bytes at off and more if it has them, or nil if the file is too short.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off+int64(n) > w.size {
		return nil, nil
	}
	if off < w.base || off+int64(n) > w.base+int64(w.n) {
		m := int(min(int64(len(w.buf)), w.size-off))
		w.n = 0
		if _, err := w.f.ReadAt(w.buf[:m], off); err != nil {
			return nil, err
		}
		w.base, w.n = off, m
	}
	return w.buf[off-w.base : w.n], nil
}
