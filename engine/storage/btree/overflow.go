package btree

import (
	"bytes"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

const (
	nextAt       = page.HeaderSize
	restAt       = nextAt + 8
	overflowBase = restAt + 4
	overflowSize = page.Size - overflowBase // bytes of a chain in each page but the last

	readAhead = 1 << 20 // bytes allocated for a chain before its pages have been seen
)

// chain reads overflow pages in order.
type chain struct {
	r    page.Reader
	next page.Ref
	rest int // bytes still to come
}

func (it *item) openChain(r page.Reader) *chain {
	return &chain{r: r, next: it.chain, rest: int(it.keyRest) + int(it.valueRest)}
}

// page gives the bytes of the next page and its reference. There must be a rest.
func (c *chain) page() (part []byte, ref page.Ref, err error) {
	ref = c.next
	if ref.ID() == 0 {
		return nil, 0, corrupt(0, "is referred to as an overflow page")
	}
	b, err := c.r.Page(ref)
	if err != nil {
		return nil, 0, err
	}
	next := page.Ref(le.Uint64(b[nextAt:]))
	switch {
	case page.TypeOf(b) != page.TypeOverflow || page.LevelOf(b) != 0 || page.IDOf(b) != ref.ID():
		return nil, 0, corrupt(ref.ID(), "is not the overflow page it should be")
	case int64(le.Uint32(b[restAt:])) != int64(c.rest):
		return nil, 0, corrupt(ref.ID(), fmt.Sprintf("the chain has %d bytes from here on, not %d", le.Uint32(b[restAt:]), c.rest))
	case (next == 0) != (c.rest <= overflowSize):
		return nil, 0, corrupt(ref.ID(), "the chain ends too early or too late")
	}
	size := min(c.rest, overflowSize)
	c.next, c.rest = next, c.rest-size
	return b[overflowBase : overflowBase+size], ref, nil
}

// compare compares the first size bytes of the chain with b.
func (c *chain) compare(size int, b []byte) (int, error) {
	for size > 0 {
		part, _, err := c.page()
		if err != nil {
			return 0, err
		}
		part = part[:min(size, len(part))]
		if o := bytes.Compare(part, b[:min(len(part), len(b))]); o != 0 {
			return o, nil
		}
		size -= len(part)
		b = b[len(part):]
	}
	return bytes.Compare(nil, b), nil
}

// read appends size bytes, after the first skip, to buf.
func (c *chain) read(buf []byte, skip, size int) ([]byte, error) {
	if room := min(size, readAhead); cap(buf)-len(buf) < room {
		buf = append(make([]byte, 0, len(buf)+room), buf...)
	}
	for size > 0 {
		part, _, err := c.page()
		if err != nil {
			return nil, err
		}
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		part = part[skip:]
		part = part[:min(size, len(part))]
		buf = append(buf, part...)
		skip, size = 0, size-len(part)
	}
	return buf, nil
}

// writeChain makes overflow pages for a, then b.
func (ed *edit) writeChain(a, b []byte) (page.Ref, error) {
	var first page.Ref
	var last []byte
	for rest := len(a) + len(b); rest > 0; {
		probe.OverflowWritten.HitIf(last == nil)
		ref, p, err := ed.e.New(page.TypeOverflow, 0)
		if err != nil {
			return 0, err
		}
		ed.h.Pages++
		ed.h.Overflow++
		if last == nil {
			first = ref
		} else {
			le.PutUint64(last[nextAt:], uint64(ref))
		}
		le.PutUint32(p[restAt:], uint32(rest))
		to := p[overflowBase:]
		n := copy(to, a)
		a = a[n:]
		m := copy(to[n:], b)
		b = b[m:]
		rest -= n + m
		last = p
	}
	return first, nil
}

// retireChain retires the item's overflow pages, and says how many.
func (ed *edit) retireChain(it *item) (pages int, err error) {
	if !it.over() {
		return 0, nil
	}
	probe.OverflowRetired.Hit()
	for c := it.openChain(ed.e); c.rest > 0; pages++ {
		_, ref, err := c.page()
		if err != nil {
			return pages, err
		}
		ed.retire(ref)
		ed.h.Overflow--
	}
	return pages, nil
}
