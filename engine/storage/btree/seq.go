package btree

import (
	"bytes"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// seq is the items of one or two pages to be, in order: parts of pages as they were, and single items between. It measures
// what pages would hold, chooses where to cut, and writes. The pages it draws from must not be those it writes.
type seq struct {
	parts [3]part
	len   int // items
}

type part struct {
	from   *node // items lo … hi-1 of a page,
	lo, hi int
	one    *item // or one item
}

// splice is the items of a page before lo, then it, then those from hi on.
func splice(n *node, lo, hi int, it *item) seq {
	count := n.count()
	return seq{
		parts: [3]part{{from: n, hi: lo}, {one: it, hi: 1}, {from: n, lo: hi, hi: count}},
		len:   lo + 1 + count - hi,
	}
}

// single is one item.
func single(it *item) seq { return seq{parts: [3]part{{one: it, hi: 1}}, len: 1} }

// join is the items of two pages, and mid between them if it is not nil.
func join(left, right *node, mid *item) seq {
	s := seq{parts: [3]part{{from: left, hi: left.count()}, {one: mid}, {from: right, hi: right.count()}}}
	s.len = s.parts[0].hi + s.parts[2].hi
	if mid != nil {
		s.parts[1].hi = 1
		s.len++
	}
	return s
}

func (s *seq) at(i int) (item, error) {
	for p := range s.parts {
		p := &s.parts[p]
		if i >= p.hi-p.lo {
			i -= p.hi - p.lo
			continue
		}
		if p.one != nil {
			return *p.one, nil
		}
		return p.from.item(p.lo + i)
	}
	panic("btree: seq.at: out of range")
}

// prefix is the length of the prefix that items a … b-1 have in common. Only what lies in the page of every key counts, and
// that is no less than keyInline bytes.
func (s *seq) prefix(a, b int) (int, error) {
	if a == b {
		return 0, nil
	}
	first, err := s.at(a)
	if err != nil {
		return 0, err
	}
	last, err := s.at(b - 1)
	if err != nil {
		return 0, err
	}
	skip := 0
	if len(first.prefix) > 0 && len(last.prefix) > 0 && &first.prefix[0] == &last.prefix[0] {
		skip = len(first.prefix)
	}
	var x, y [entryMax]byte
	keyA := append(append(x[:0], first.prefix[skip:]...), first.suffix...)
	keyB := append(append(y[:0], last.prefix[skip:]...), last.suffix...)
	return min(skip+commonPrefix(keyA, keyB), keyInline), nil
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && le.Uint64(a[i:]) == le.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// size is how many bytes a page would have in use, its headers included, if it held items a … b-1.
func (s *seq) size(base, a, b int) (int, error) {
	prefix, err := s.prefix(a, b)
	if err != nil {
		return 0, err
	}
	size := base + slotSize*(b-a) + prefix
	for i := a; i < b; i++ {
		it, err := s.at(i)
		if err != nil {
			return 0, err
		}
		if it.inline() < prefix {
			return 0, errUnordered(s)
		}
		size += it.size(prefix)
	}
	return size, nil
}

// write makes n hold items a … b-1, and nothing else. They fit.
func (s *seq) write(n *node, a, b int) error {
	prefix, err := s.prefix(a, b)
	if err != nil {
		return err
	}
	heap := page.Size - prefix
	if a < b {
		first, err := s.at(a)
		if err != nil {
			return err
		}
		k := copy(n[heap:], first.prefix)
		copy(n[heap+k:], first.suffix)
	}
	base := n.base()
	bottom := base + slotSize*(b-a)
	for i := a; i < b; i++ {
		it, err := s.at(i)
		if err != nil {
			return err
		}
		if it.inline() < prefix {
			return errUnordered(s)
		}
		size := it.size(prefix)
		if heap-size < bottom {
			return corrupt(n.id(), "its cells do not fit a page")
		}
		heap -= size
		it.encode(n[heap:heap+size], prefix)
		le.PutUint16(n[base+slotSize*(i-a):], uint16(heap))
	}
	n.put16(countAt, b-a)
	n.put16(heapAt, heap)
	n.put16(usedAt, page.Size-prefix-heap)
	n.put16(prefixAt, prefix)
	n.setRun(0, 0)
	return nil
}

// errUnordered: the first and the last key have a prefix in common that one between them lacks.
func errUnordered(s *seq) error {
	for _, p := range s.parts {
		if p.from != nil {
			return corrupt(p.from.id(), "keys do not ascend")
		}
	}
	return corrupt(0, "keys do not ascend")
}

// cut chooses where to divide the items between two pages: the left gets those before the cut, the right the rest; in
// branches the item at the cut goes up between them. The first of the wishes is taken with which both halves fit. If there
// is none, bytes are balanced, and then the cut is shifted until both halves fit. A half only grows as the cut moves away from
// it (a shorter prefix never makes a page smaller), so this is a binary search.
func (s *seq) cut(base, entries int, wishes [2]int) (int, error) {
	up := 0
	if base == branchBase {
		up = 1
	}
	lo, hi := 1, s.len-1-up
	for _, wish := range wishes {
		if wish < lo || wish > hi {
			continue
		}
		left, right, err := s.fit(base, entries, wish, up)
		if err != nil || left && right {
			return wish, err
		}
	}
	cut, err := s.middle(lo)
	if err != nil {
		return 0, err
	}
	for lo <= hi {
		cut = min(max(cut, lo), hi)
		left, right, err := s.fit(base, entries, cut, up)
		switch {
		case err != nil:
			return 0, err
		case !left:
			hi = cut - 1
		case !right:
			lo = cut + 1
		default:
			return cut, nil
		}
		cut = (lo + hi) / 2
	}
	return 0, corrupt(s.parts[0].from.id(), "cannot be divided")
}

// fit tells which halves fit their pages.
func (s *seq) fit(base, entries, cut, up int) (left, right bool, err error) {
	l, err := s.size(base, 0, cut)
	if err != nil {
		return false, false, err
	}
	r, err := s.size(base, cut+up, s.len)
	return l <= page.Size && cut <= entries, r <= page.Size && s.len-cut-up <= entries, err
}

// middle is the cut that comes closest to equal bytes on both sides.
func (s *seq) middle(lo int) (int, error) {
	prefix, err := s.prefix(0, s.len)
	if err != nil {
		return 0, err
	}
	total := 0
	for i := range s.len {
		it, err := s.at(i)
		if err != nil {
			return 0, err
		}
		if it.inline() < prefix {
			return 0, errUnordered(s)
		}
		total += slotSize + it.size(prefix)
	}
	sum := 0
	for i := range s.len {
		it, err := s.at(i)
		if err != nil {
			return 0, err
		}
		size := slotSize + it.size(prefix)
		if 2*sum+size >= total { // the middle of this item is behind the middle of all
			return max(i, lo), nil
		}
		sum += size
	}
	return s.len, nil
}

// separator gives the shortest prefix of right that is greater than left, for the keys of the items around the cut.
func (s *seq) separator(r page.Reader, cut int) ([]byte, error) {
	a, err := s.at(cut - 1)
	if err != nil {
		return nil, err
	}
	b, err := s.at(cut)
	if err != nil {
		return nil, err
	}
	left, err := a.wholeKey(r, nil)
	if err != nil {
		return nil, err
	}
	right, err := b.wholeKey(r, nil)
	if err != nil {
		return nil, err
	}
	return shortest(left, right), nil
}

// shortest is the shortest prefix of right that is greater than left, which is less than right.
func shortest(left, right []byte) []byte {
	if bytes.Compare(left, right) >= 0 {
		return right // only in damaged trees
	}
	return right[:commonPrefix(left, right)+1]
}
