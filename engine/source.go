package engine

import (
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/storage"
)

// source is a stored collection as the query column sees it.
type source struct{ sc *storage.Collection }

func (s source) Records(from uint64, reverse bool) query.RecordIter {
	return recordIter{s.sc.Records(storage.RecordID(from), reverse)}
}

func (s source) Record(id uint64) ([]byte, error) { return s.sc.Record(storage.RecordID(id)) }

func (s source) Entries(tree uint32) (query.EntryIter, bool) {
	t, ok := s.sc.Tree(storage.TreeID(tree))
	if !ok {
		return nil, false
	}
	return t.Iter(), true
}

// Estimate counts without reading. Damage is not its business: the scan will meet it.
func (s source) Estimate(tree uint32, lo, hi string) uint64 {
	t, ok := s.sc.Tree(storage.TreeID(tree))
	if !ok {
		return 0
	}
	if lo == "" && hi == "" {
		return t.Head.Entries
	}
	n, _ := t.EstimateRange(bound(lo), bound(hi))
	return n
}

type recordIter struct{ *storage.RecordIter }

func (it recordIter) ID() uint64 { return uint64(it.RecordIter.ID()) }

// bound is a bound of a range as trees have it: nil is open.
func bound(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
