package query

// Source is a collection as it is at one moment: in a snapshot, or inside a write. Slices that come from it die with it,
// and those of an iterator when the iterator moves.
type Source interface {
	// Records iterates over the records in the order of their ids, beginning with from (0: at the end that the
	// direction starts from).
	Records(from uint64, reverse bool) RecordIter
	// Record gives the record, which an index of the same moment names.
	Record(id uint64) ([]byte, error)
	// Entries opens an index by its tree. It is false if the collection has it no more.
	Entries(tree uint32) (EntryIter, bool)
}

// RecordIter stands before the first record until Next.
type RecordIter interface {
	Next() bool
	ID() uint64
	Bytes() []byte
	Err() error
}

// EntryIter is a position among the entries of an index, which stands nowhere until a seek. Each step says whether there is an
// entry; if not, Err says whether that is the end.
type EntryIter interface {
	Seek(key []byte) bool       // the first entry at or after key; nil is before all
	SeekBefore(key []byte) bool // the last entry before key
	SeekLast() bool
	Next() bool
	Prev() bool
	Key() []byte
	Value() []byte // what the key forgets: its trailer
	Err() error
}
