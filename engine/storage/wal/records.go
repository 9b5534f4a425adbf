package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// RecordType says what a record changes.
type RecordType uint8

// Numbers are the format's: they are never given to another type.
const (
	CreateCollection RecordType = 1 // Coll, Value: its descriptor
	DropCollection   RecordType = 2 // Coll
	SetDesc          RecordType = 3 // Coll, Value: its descriptor
	CreateTree       RecordType = 4 // Coll, Tree
	DropTree         RecordType = 5 // Coll, Tree
	TreePut          RecordType = 6 // Coll, Tree, Key, Value
	TreeDelete       RecordType = 7 // Coll, Tree, Key
	RecordPut        RecordType = 8 // Coll, ID, Value: the stored document
	RecordDelete     RecordType = 9 // Coll, ID
)

// Record is one change: physical in that it names trees and record numbers, logical in that it names no pages. So it may
// be applied to any state that has the same content, wherever its pages are.
type Record struct {
	Type  RecordType
	Coll  uint32
	Tree  uint32
	ID    uint64
	Key   []byte // into the decoder's input
	Value []byte // into the decoder's input
}

// ErrUnknownRecord: the log holds a record of a type that this version does not know.
var ErrUnknownRecord = errors.New("log record of an unknown type")

// A record is, where u is an unsigned varint (as encoding/binary has it):
//
//	┌─────────┬──────┬─────────┐
//	│ size: u │ type │ fields  │     size counts type and fields
//	└─────────┴──────┴─────────┘
//
//	CreateCollection, SetDesc    coll: u   descriptor: the rest
//	DropCollection               coll: u
//	CreateTree, DropTree         coll: u   tree: u
//	TreePut                      coll: u   tree: u   keySize: u   key   value: the rest
//	TreeDelete                   coll: u   tree: u   key: the rest
//	RecordPut                    coll: u   id: u     document: the rest
//	RecordDelete                 coll: u   id: u
//
// A record is valid if and only if its fields fill its size and its coll and tree are below 2^32. The size stands first, so
// that a reader finds the bounds of a record without knowing its type.

func AppendCreateCollection(buf []byte, coll uint32, desc []byte) []byte {
	return appendBytes(buf, CreateCollection, coll, desc)
}

func AppendDropCollection(buf []byte, coll uint32) []byte {
	return appendBytes(buf, DropCollection, coll, nil)
}

func AppendSetDesc(buf []byte, coll uint32, desc []byte) []byte {
	return appendBytes(buf, SetDesc, coll, desc)
}

func AppendCreateTree(buf []byte, coll, tree uint32) []byte {
	return appendNumber(buf, CreateTree, coll, uint64(tree), nil)
}

func AppendDropTree(buf []byte, coll, tree uint32) []byte {
	return appendNumber(buf, DropTree, coll, uint64(tree), nil)
}

func AppendTreePut(buf []byte, coll, tree uint32, key, value []byte) []byte {
	n := uvarintSize(uint64(coll)) + uvarintSize(uint64(tree)) + uvarintSize(uint64(len(key))) + len(key) + len(value)
	buf = appendStart(buf, TreePut, n)
	buf = binary.AppendUvarint(buf, uint64(coll))
	buf = binary.AppendUvarint(buf, uint64(tree))
	buf = binary.AppendUvarint(buf, uint64(len(key)))
	return append(append(buf, key...), value...)
}

func AppendTreeDelete(buf []byte, coll, tree uint32, key []byte) []byte {
	return appendNumber(buf, TreeDelete, coll, uint64(tree), key)
}

func AppendRecordPut(buf []byte, coll uint32, id uint64, document []byte) []byte {
	return appendNumber(buf, RecordPut, coll, id, document)
}

func AppendRecordDelete(buf []byte, coll uint32, id uint64) []byte {
	return appendNumber(buf, RecordDelete, coll, id, nil)
}

func appendStart(buf []byte, t RecordType, fields int) []byte {
	return append(binary.AppendUvarint(buf, uint64(1+fields)), byte(t))
}

func appendBytes(buf []byte, t RecordType, coll uint32, rest []byte) []byte {
	buf = appendStart(buf, t, uvarintSize(uint64(coll))+len(rest))
	return append(binary.AppendUvarint(buf, uint64(coll)), rest...)
}

func appendNumber(buf []byte, t RecordType, coll uint32, n uint64, rest []byte) []byte {
	buf = appendStart(buf, t, uvarintSize(uint64(coll))+uvarintSize(n)+len(rest))
	buf = binary.AppendUvarint(buf, uint64(coll))
	return append(binary.AppendUvarint(buf, n), rest...)
}

func uvarintSize(x uint64) int {
	n := 1
	for ; x >= 0x80; x >>= 7 {
		n++
	}
	return n
}

// Decoder iterates over records. It allocates nothing: Key and Value point into its input.
//
//	d := wal.NewDecoder(records)
//	for d.Next() { apply(d.Record()) }
//	return d.Err()
type Decoder struct {
	rest []byte
	pos  int
	rec  Record
	err  error
}

// NewDecoder begins at the first of records.
func NewDecoder(records []byte) *Decoder { return &Decoder{rest: records} }

// Next goes to the next record. It is false at the end and at the first record that is not valid; see Err.
func (d *Decoder) Next() bool {
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	n := nextRecord(d.rest)
	if n == 0 {
		d.err = fmt.Errorf("log record at byte %d of its batch: size exceeds the batch: %w", d.pos, page.ErrCorrupt)
		return false
	}
	var err error
	if d.rec, err = decodeRecord(d.rest[:n]); err != nil {
		d.err = fmt.Errorf("log record at byte %d of its batch: %w", d.pos, err)
		return false
	}
	d.rest, d.pos = d.rest[n:], d.pos+n
	return true
}

// Record is the record that Next went to.
func (d *Decoder) Record() Record { return d.rec }

// Err is what ended the iteration: nil, page.ErrCorrupt or ErrUnknownRecord, wrapped.
func (d *Decoder) Err() error { return d.err }

// nextRecord is the size, its prefix included, of the record at the beginning of b; 0 if b does not hold all of it.
func nextRecord(b []byte) int {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return 0
	}
	return n + int(size)
}

// decodeRecord reads the one record that b is.
func decodeRecord(b []byte) (Record, error) {
	_, n := binary.Uvarint(b)
	f := fields{b: b[n:]}
	r := Record{Type: RecordType(f.byte())}
	switch r.Type {
	case CreateCollection, SetDesc:
		r.Coll, r.Value = f.uint32(), f.rest()
	case DropCollection:
		r.Coll = f.uint32()
	case CreateTree, DropTree:
		r.Coll, r.Tree = f.uint32(), f.uint32()
	case TreePut:
		r.Coll, r.Tree, r.Key, r.Value = f.uint32(), f.uint32(), f.sized(), f.rest()
	case TreeDelete:
		r.Coll, r.Tree, r.Key = f.uint32(), f.uint32(), f.rest()
	case RecordPut:
		r.Coll, r.ID, r.Value = f.uint32(), f.uint64(), f.rest()
	case RecordDelete:
		r.Coll, r.ID = f.uint32(), f.uint64()
	case 0:
		f.bad = true
	default:
		return Record{}, fmt.Errorf("%w: %d", ErrUnknownRecord, r.Type)
	}
	if f.bad || len(f.b) > 0 {
		return Record{}, fmt.Errorf("type %d: fields do not fill its size: %w", r.Type, page.ErrCorrupt)
	}
	return r, nil
}

// fields takes fields off the front of b. After one that is not there, bad is set and all others are zero.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) byte() byte {
	if len(f.b) == 0 {
		f.bad = true
		return 0
	}
	c := f.b[0]
	f.b = f.b[1:]
	return c
}

func (f *fields) uint64() uint64 {
	x, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return x
}

func (f *fields) uint32() uint32 {
	x := f.uint64()
	if x > math.MaxUint32 {
		f.bad = true
		return 0
	}
	return uint32(x)
}

func (f *fields) sized() []byte {
	n := f.uint64()
	if n > uint64(len(f.b)) {
		f.bad = true
		return nil
	}
	s := f.b[:n:n]
	f.b = f.b[n:]
	return s
}

func (f *fields) rest() []byte {
	s := f.b[:len(f.b):len(f.b)]
	f.b = nil
	return s
}
