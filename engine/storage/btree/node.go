package btree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// node is a leaf or a branch. Its methods check what they read from it; those that change it rely on load (which
// checked the header) and on the caller having made sure of the room.
type node [page.Size]byte

const (
	countAt    = page.HeaderSize
	heapAt     = countAt + 2
	usedAt     = heapAt + 2
	prefixAt   = usedAt + 2
	runPosAt   = prefixAt + 2
	runLenAt   = runPosAt + 2
	leafBase   = runLenAt + 2 // where the slots begin
	firstAt    = leafBase
	branchBase = firstAt + 8

	slotSize  = 2
	childSize = 8
	chainSize = 16 // of the end of a cell that has a chain

	entryMax  = 980                  // bytes of an entry in the page, without sizes
	keyMax    = entryMax - childSize // a larger key is cut, so that a branch can always hold its child beside
	keyInline = 256                  // what stays of a key that is cut; also the longest prefix
)

var le = binary.LittleEndian

// load gives the page at ref, which must be a leaf or branch of that level.
func load(r page.Reader, ref page.Ref, level int) (*node, error) {
	if ref.ID() == 0 {
		return nil, corrupt(0, "is referred to as a page of a tree")
	}
	b, err := r.Page(ref)
	if err != nil {
		return nil, err
	}
	return sound(b, ref, level)
}

// sound checks the header of a page.
func sound(b []byte, ref page.Ref, level int) (*node, error) {
	n := (*node)(b)
	t := page.TypeLeaf
	if level != 0 {
		t = page.TypeBranch
	}
	count, heap, prefix := n.count(), n.heap(), n.prefixLen()
	switch {
	case page.IDOf(b) != ref.ID():
		return nil, corrupt(ref.ID(), fmt.Sprintf("holds page %d", page.IDOf(b)))
	case page.TypeOf(b) != t || int(page.LevelOf(b)) != level:
		return nil, corrupt(ref.ID(), fmt.Sprintf("has type %d and level %d where the tree has level %d", b[4], b[5], level))
	case n.base()+slotSize*count > heap || heap+n.used()+prefix > page.Size || prefix > keyInline || count == 0 && level == 0:
		return nil, corrupt(ref.ID(), fmt.Sprintf("impossible header: %d cells from %d on, of %d bytes, prefix %d",
			count, heap, n.used(), prefix))
	}
	return n, nil
}

func (n *node) id() page.ID    { return page.ID(le.Uint64(n[8:])) }
func (n *node) leaf() bool     { return page.Type(n[4]) == page.TypeLeaf }
func (n *node) count() int     { return int(le.Uint16(n[countAt:])) }
func (n *node) heap() int      { return int(le.Uint16(n[heapAt:])) }
func (n *node) used() int      { return int(le.Uint16(n[usedAt:])) }
func (n *node) prefixLen() int { return int(le.Uint16(n[prefixAt:])) }
func (n *node) prefix() []byte { return n[page.Size-n.prefixLen():] }

func (n *node) base() int {
	if n.leaf() {
		return leafBase
	}
	return branchBase
}

// free is the room between slots and cells, live the bytes that the page would have in use if it were repacked.
func (n *node) free() int { return n.heap() - n.base() - slotSize*n.count() }
func (n *node) live() int { return n.base() + slotSize*n.count() + n.used() + n.prefixLen() }

func (n *node) put16(at, v int) { le.PutUint16(n[at:], uint16(v)) }

// corrupt reports damage to cell i.
func (n *node) corrupt(i int, what string) error {
	return corrupt(n.id(), fmt.Sprintf("cell %d: %s", i, what))
}

// item is an entry of a leaf, or a separator and its child, as a page has it or is to get it.
type item struct {
	prefix, suffix []byte // together what of the key is in the page
	value          []byte // what of the value is in the page
	chain          page.Ref
	keyRest        uint32 // bytes in the chain: of the key,
	valueRest      uint32 // and then of the value
}

// suffix gives the key bytes in cell i and whether the cell has a chain.
func (n *node) suffix(base, i int) (suffix []byte, over, ok bool) {
	at := int(le.Uint16(n[base+slotSize*i:]))
	if at > page.Size-2 {
		return nil, false, false
	}
	k := int(n[at])
	at++
	if k >= 0x80 {
		k = k&0x7f | int(n[at])<<7
		at++
	}
	end := at + k>>1
	if end > page.Size {
		return nil, false, false
	}
	return n[at:end], k&1 != 0, true
}

// item gives cell i.
func (n *node) item(i int) (item, error) {
	limit := page.Size - n.prefixLen()
	suffix, over, ok := n.suffix(n.base(), i)
	if !ok || n.slot(i) < n.heap() {
		return item{}, n.corrupt(i, "lies outside the page")
	}
	it := item{prefix: n.prefix(), suffix: suffix}
	at := n.slot(i) + sizeOf(n[n.slot(i)]) + len(suffix)
	if at >= limit || at+sizeOf(n[at]) > limit {
		return item{}, n.corrupt(i, "key runs out of the page")
	}
	v := int(n[at])
	at += sizeOf(n[at])
	if v >= 0x80 {
		v = v&0x7f | int(n[at-1])<<7
	}
	end := at + v
	if over {
		end += chainSize
	}
	if end > limit {
		return item{}, n.corrupt(i, "runs out of the page")
	}
	it.value = n[at : at+v : at+v]
	if over {
		tail := n[at+v : end]
		it.chain = page.Ref(le.Uint64(tail))
		it.keyRest = le.Uint32(tail[8:])
		it.valueRest = le.Uint32(tail[12:])
		switch {
		case it.chain.ID() == 0 || it.keyRest == 0 && it.valueRest == 0,
			it.keyRest > KeySizeMax || it.valueRest > ValueSizeMax,
			it.keyRest > 0 && it.inline() != keyInline,
			it.valueRest > 0 && v > 0:
			return item{}, n.corrupt(i, "impossible sizes in overflow pages")
		}
	}
	if it.inline()+v > entryMax {
		return item{}, n.corrupt(i, "is larger than any entry")
	}
	if !n.leaf() && (v != childSize || it.valueRest > 0) {
		return item{}, n.corrupt(i, "is not a separator and a child")
	}
	return it, nil
}

// sizeOf is the length of a size that begins with b.
func sizeOf(b byte) int { return 1 + int(b>>7) }

func (n *node) slot(i int) int { return int(le.Uint16(n[n.base()+slotSize*i:])) }

// child gives child i of a branch; child 0 is before the first separator.
func (n *node) child(i int) (page.Ref, error) {
	if i == 0 {
		return page.Ref(le.Uint64(n[firstAt:])), nil
	}
	it, err := n.item(i - 1)
	if err != nil {
		return 0, err
	}
	return it.child(), nil
}

func (n *node) setFirst(ref page.Ref) { le.PutUint64(n[firstAt:], uint64(ref)) }

// setChild replaces the reference of child i.
func (n *node) setChild(i int, ref page.Ref) error {
	if i == 0 {
		n.setFirst(ref)
		return nil
	}
	it, err := n.item(i - 1)
	if err != nil {
		return err
	}
	le.PutUint64(it.value, uint64(ref))
	return nil
}

// search gives the position of the first cell whose key is not less than key, and whether it is equal.
func (n *node) search(r page.Reader, key []byte) (pos int, equal bool, err error) {
	prefix := n.prefix()
	if len(key) < len(prefix) {
		if bytes.Compare(key, prefix[:len(key)]) > 0 {
			return n.count(), false, nil
		}
		return 0, false, nil
	}
	switch bytes.Compare(key[:len(prefix)], prefix) {
	case -1:
		return 0, false, nil
	case +1:
		return n.count(), false, nil
	}
	rest := key[len(prefix):]
	base := n.base()
	lo, hi := 0, n.count()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		suffix, over, ok := n.suffix(base, mid)
		if !ok {
			return 0, false, n.corrupt(mid, "lies outside the page")
		}
		c := bytes.Compare(suffix, rest)
		if over && c <= 0 {
			if c, err = n.compareCut(r, mid, rest, c); err != nil {
				return 0, false, err
			}
		}
		switch {
		case c < 0:
			lo = mid + 1
		case c > 0:
			hi = mid
		default:
			return mid, true, nil
		}
	}
	return lo, false, nil
}

// compareCut compares the key of cell i with one that continues rest behind the page's prefix. c is the outcome for the
// bytes in the page; the chain is read only if they are a prefix of rest.
func (n *node) compareCut(r page.Reader, i int, rest []byte, c int) (int, error) {
	it, err := n.item(i)
	switch {
	case err != nil:
		return 0, err
	case it.keyRest == 0:
		return c, nil
	case c == 0:
		return +1, nil // the cell's key goes on in the chain
	case !bytes.HasPrefix(rest, it.suffix):
		return c, nil
	}
	return it.openChain(r).compare(int(it.keyRest), rest[len(it.suffix):])
}

// insert puts it, which has the page's prefix, before cell i. There are size bytes for it and a slot.
func (n *node) insert(i int, it *item, size int) {
	count, heap := n.count(), n.heap()-size
	slots := n[n.base() : n.base()+slotSize*(count+1)]
	copy(slots[slotSize*(i+1):], slots[slotSize*i:])
	le.PutUint16(slots[slotSize*i:], uint16(heap))
	it.encode(n[heap:heap+size], n.prefixLen())
	n.put16(countAt, count+1)
	n.put16(heapAt, heap)
	n.put16(usedAt, n.used()+size)
	n.noteRun(i)
}

// remove takes cell i, of size bytes, out.
func (n *node) remove(i, size int) {
	count, at := n.count(), n.slot(i)
	slots := n[n.base() : n.base()+slotSize*count]
	copy(slots[slotSize*i:], slots[slotSize*(i+1):])
	n.put16(countAt, count-1)
	n.put16(usedAt, max(n.used()-size, 0)) // no less than 0 on a damaged page
	if at == n.heap() && at+size <= page.Size-n.prefixLen() {
		n.put16(heapAt, at+size)
	}
	n.put16(runPosAt, 0)
	n.put16(runLenAt, 0)
}

// overwrite puts it into the place of cell i, which is as large or larger.
func (n *node) overwrite(i int, it *item, size, sizeOld int) {
	at := n.slot(i)
	it.encode(n[at:at+size], n.prefixLen())
	n.put16(usedAt, max(n.used()-(sizeOld-size), 0))
}

// noteRun keeps the hint about runs after an insertion at i.
func (n *node) noteRun(i int) {
	run := n.run()
	switch i - int(le.Uint16(n[runPosAt:])) {
	case 1:
		run = max(run, 0) + 1
	case 0:
		run = min(run, 0) - 1
	default:
		run = 0
	}
	n.setRun(i, run)
}

func (n *node) run() int { return int(int16(le.Uint16(n[runLenAt:]))) }

func (n *node) setRun(i, run int) {
	n.put16(runPosAt, i)
	n.put16(runLenAt, max(min(run, 1<<14), -1<<14))
}

// inline is how many bytes of the key are in the page.
func (it *item) inline() int { return len(it.prefix) + len(it.suffix) }

func (it *item) over() bool { return it.chain != 0 }

func (it *item) child() page.Ref { return page.Ref(le.Uint64(it.value)) }

// size is the size of the item's cell in a page with a prefix of that length.
func (it *item) size(prefix int) int {
	k := it.inline() - prefix
	size := sizeLen(k<<1) + k + sizeLen(len(it.value)) + len(it.value)
	if it.over() {
		size += chainSize
	}
	return size
}

func sizeLen(v int) int {
	if v < 0x80 {
		return 1
	}
	return 2
}

func putSize(b []byte, v int) []byte {
	if v < 0x80 {
		b[0] = byte(v)
		return b[1:]
	}
	b[0], b[1] = byte(v)|0x80, byte(v>>7)
	return b[2:]
}

// encode writes the cell into b, which has its size, leaving out the first prefix bytes of the key.
func (it *item) encode(b []byte, prefix int) {
	k := (it.inline() - prefix) << 1
	if it.over() {
		k |= 1
	}
	b = putSize(b, k)
	b = b[copy(b, it.prefix[min(prefix, len(it.prefix)):]):]
	b = b[copy(b, it.suffix[max(prefix-len(it.prefix), 0):]):]
	b = putSize(b, len(it.value))
	b = b[copy(b, it.value):]
	if it.over() {
		le.PutUint64(b, uint64(it.chain))
		le.PutUint32(b[8:], it.keyRest)
		le.PutUint32(b[12:], it.valueRest)
	}
}

// flatten copies the item's bytes behind buf, and gives an item that refers to nothing else.
func (it *item) flatten(buf []byte) item {
	buf = append(append(buf, it.prefix...), it.suffix...)
	k := len(buf)
	buf = append(buf, it.value...)
	return item{suffix: buf[:k:k], value: buf[k:], chain: it.chain, keyRest: it.keyRest, valueRest: it.valueRest}
}

// hasPrefix reports whether a flat item can go into a page with that prefix.
func (it *item) hasPrefix(prefix []byte) bool { return bytes.HasPrefix(it.suffix, prefix) }

// wholeKey appends the key to buf, wholeValue gives the value: where it lies, or appended to buf.
func (it *item) wholeKey(r page.Reader, buf []byte) ([]byte, error) {
	buf = append(append(buf, it.prefix...), it.suffix...)
	if it.keyRest == 0 {
		return buf, nil
	}
	return it.openChain(r).read(buf, 0, int(it.keyRest))
}

func (it *item) wholeValue(r page.Reader, buf []byte) ([]byte, error) {
	if it.valueRest == 0 {
		return it.value, nil
	}
	return it.openChain(r).read(buf, int(it.keyRest), int(it.valueRest))
}
