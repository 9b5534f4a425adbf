package simfs

import (
	"maps"
	"slices"
)

// page is 4 KiB of content. It never changes once it can be seen, so contents share pages freely.
type page [pageSize]byte

// zeroPage is a page of zeros that has storage. A nil *page is a hole: zeros without storage.
var zeroPage = new(page)

// content is what a file holds. Bytes behind size are zero.
type content struct {
	pages []*page
	size  int64
}

func (c *content) page(i int64) *page {
	if i < int64(len(c.pages)) {
		return c.pages[i]
	}
	return nil
}

// set replaces a page and answers how the number of pages with storage changes.
func (c *content) set(i int64, p *page) (blocks int64) {
	if i >= int64(len(c.pages)) {
		if p == nil {
			return 0
		}
		c.pages = append(c.pages, make([]*page, i+1-int64(len(c.pages)))...)
	}
	if p != nil {
		blocks++
	}
	if c.pages[i] != nil {
		blocks--
	}
	c.pages[i] = p
	return blocks
}

// cut zeroes everything from size on.
func (c *content) cut(size int64) (blocks int64) {
	first := size / pageSize
	if tail := size % pageSize; tail != 0 {
		if p := c.page(first); p != nil && p != zeroPage {
			c.pages[first] = p.cut(tail)
		}
		first++
	}
	for i := first; i < int64(len(c.pages)); i++ {
		if c.pages[i] != nil {
			blocks--
		}
	}
	c.pages = c.pages[:min(first, int64(len(c.pages)))]
	return blocks
}

func (c *content) read(p []byte, off int64) {
	for len(p) > 0 {
		at := off % pageSize
		n := min(int64(len(p)), pageSize-at)
		if q := c.page(off / pageSize); q != nil {
			copy(p[:n], q[at:])
		} else {
			clear(p[:n])
		}
		p, off = p[n:], off+n
	}
}

func (c *content) clone() content { return content{pages: slices.Clone(c.pages), size: c.size} }

// cut is a copy of p that is zero from at on.
func (p *page) cut(at int64) *page {
	q := new(page)
	copy(q[:at], p[:])
	return q
}

// with is a copy of p, which may be nil, that has b at at.
func (p *page) with(at int64, b []byte) *page {
	q := new(page)
	if p != nil && len(b) < pageSize {
		*q = *p
	}
	copy(q[at:], b)
	return q
}

// version is one state of a page that is on its way to the disk.
type version struct {
	seq  uint64
	mask uint8 // the sectors that it is a version of
	data *page // of the whole page, as it was seen
	by   *origin
}

// sizeChange is a pending change of a file's size.
type sizeChange struct {
	seq    uint64
	size   int64
	shrink bool
	by     *origin
}

// allocation is a pending reservation of pages [first, end).
type allocation struct {
	seq        uint64
	first, end int64
}

// versionsMax bounds the pending versions of a sector.
const versionsMax = 4

// inode is a file, with or without a name.
type inode struct {
	fs    *FS
	id    int
	path  string // the last one, for reports
	links int
	opens int

	volatile content
	durable  content
	blocks   int64 // pages of volatile that have storage

	dirty   map[int64][]version // by page, in order
	sizes   []sizeChange        // in order
	allocs  []allocation
	syncing []uint64 // what running syncs cover

	view *view // nil if it is not mapped
	bad  []span
}

type span struct{ off, end int64 }

// sectors is how many there are in a page.
func (d *FS) sectors() int { return pageSize / d.opt.SectorSize }

// maskOf is the sectors that [at, at+n) of a page touches.
func (d *FS) maskOf(at, n int64) (mask uint8) {
	for s := at / int64(d.opt.SectorSize); s*int64(d.opt.SectorSize) < at+n; s++ {
		mask |= 1 << s
	}
	return mask
}

// put makes data the content of page i, of which [at, at+n) has changed. d.mu is held.
func (ino *inode) put(i int64, data *page, at, n int64, by *origin) {
	blocks := ino.volatile.set(i, data)
	ino.blocks += blocks
	ino.fs.used += blocks
	if visible := min(n, ino.volatile.size-i*pageSize-at); ino.view != nil && visible > 0 {
		ino.view.write(i*pageSize+at, data, at, visible)
	}
	if by != nil {
		ino.addVersion(i, data, ino.fs.maskOf(at, n), by)
	}
}

// addVersion remembers a version, and forgets the oldest of a sector that has too many, unless a running sync will make
// just that one durable.
func (ino *inode) addVersion(i int64, data *page, mask uint8, by *origin) {
	ino.fs.seq++
	vs := append(ino.dirty[i], version{seq: ino.fs.seq, mask: mask, data: data, by: by})
	for s := range ino.fs.sectors() {
		if mask&(1<<s) == 0 || len(vs) <= versionsMax {
			continue
		}
		of := versionsOf(vs, s)
		for j, v := range of {
			if len(of) <= versionsMax {
				break
			}
			covered := slices.ContainsFunc(ino.syncing, func(upTo uint64) bool {
				return vs[v].seq <= upTo && vs[of[j+1]].seq > upTo
			})
			if j+1 < len(of) && !covered {
				vs[v].mask &^= 1 << s
				break
			}
		}
	}
	ino.dirty[i] = slices.DeleteFunc(vs, func(v version) bool { return v.mask == 0 })
}

// versionsOf is the indexes of those that are of sector s.
func versionsOf(vs []version, s int) (of []int) {
	for j := range vs {
		if vs[j].mask&(1<<s) != 0 {
			of = append(of, j)
		}
	}
	return of
}

// resize changes the size. d.mu is held.
func (ino *inode) resize(size int64, by *origin) {
	shrink := size < ino.volatile.size
	if shrink {
		blocks := ino.volatile.cut(size)
		ino.blocks += blocks
		ino.fs.used += blocks
	}
	ino.volatile.size = size
	if ino.view != nil {
		ino.view.resize(size)
	}
	if by != nil {
		ino.fs.seq++
		ino.sizes = append(ino.sizes, sizeChange{seq: ino.fs.seq, size: size, shrink: shrink, by: by})
	}
}

// reserve gives storage to pages [first, end). d.mu is held; there is room.
func (ino *inode) reserve(first, end int64, by *origin) {
	for i := first; i < end; i++ {
		if ino.volatile.page(i) == nil {
			ino.blocks += ino.volatile.set(i, zeroPage)
			ino.fs.used++
		}
	}
	if by != nil {
		ino.fs.seq++
		ino.allocs = append(ino.allocs, allocation{seq: ino.fs.seq, first: first, end: end})
	}
}

// missing is how many of the pages [first, end) have no storage.
func (ino *inode) missing(first, end int64) (n int64) {
	for i := first; i < end; i++ {
		if ino.volatile.page(i) == nil {
			n++
		}
	}
	return n
}

// A pick is what becomes of one sector: the index of a version, or one of these.
const (
	pickDurable = -1
	pickGarbage = -2
)

// merge is the durable content after the first sizes changes of size, the allocations up to allocSeq, and for each
// sector what pick says.
//
// A kept shrink zeroes what is older than it, whatever pick says; one that is not kept leaves old sectors where they were.
func (ino *inode) merge(sizes int, allocSeq uint64, pick func(i int64, s int, vs []version) int) content {
	c := ino.durable.clone()
	kept := ino.sizes[:sizes]
	for _, ch := range kept {
		if ch.shrink {
			c.cut(ch.size)
		}
		c.size = ch.size
	}
	for _, i := range slices.Sorted(maps.Keys(ino.dirty)) {
		c.set(i, ino.mergePage(i, c.page(i), kept, pick))
	}
	for _, a := range ino.allocs {
		for i := a.first; i < a.end && a.seq <= allocSeq; i++ {
			if c.page(i) == nil {
				c.set(i, zeroPage)
			}
		}
	}
	c.cut(c.size)
	return c
}

// mergePage overlays base by the picked sectors.
func (ino *inode) mergePage(i int64, base *page, kept []sizeChange, pick func(int64, int, []version) int) *page {
	vs, n := ino.dirty[i], ino.fs.sectors()
	var picks [8]int
	var dirty uint8
	for _, v := range vs {
		dirty |= v.mask
	}
	same := true
	for s := range n {
		picks[s] = pickDurable
		if dirty&(1<<s) != 0 {
			picks[s] = pick(i, s, vs)
		}
		same = same && picks[s] == picks[0] && picks[s] >= 0
	}
	shrunk := slices.ContainsFunc(kept, func(ch sizeChange) bool { return ch.shrink })
	if same && !shrunk {
		return vs[picks[0]].data
	}
	q, size := new(page), ino.fs.opt.SectorSize
	if base != nil {
		*q = *base
	}
	touched := false
	for s := range n {
		to := q[s*size : (s+1)*size]
		switch v := picks[s]; v {
		case pickDurable:
			continue
		case pickGarbage:
			fillGarbage(to, ino.id, i*int64(n)+int64(s))
		default:
			clear(to)
			if vs[v].data != nil {
				copy(to, vs[v].data[s*size:])
			}
			for _, ch := range kept {
				if ch.shrink && ch.seq > vs[v].seq {
					at := min(max(ch.size-i*pageSize-int64(s*size), 0), int64(size))
					clear(to[at:])
				}
			}
		}
		touched = true
	}
	if !touched {
		return base
	}
	return q
}

// latest picks the newest version that keep wants.
func latest(keep func(seq uint64) bool) func(int64, int, []version) int {
	return func(_ int64, s int, vs []version) int {
		for j := len(vs) - 1; j >= 0; j-- {
			if vs[j].mask&(1<<s) != 0 && keep(vs[j].seq) {
				return j
			}
		}
		return pickDurable
	}
}

// sizesUpTo is how many changes of size are not newer.
func (ino *inode) sizesUpTo(upTo uint64) (n int) {
	for n < len(ino.sizes) && ino.sizes[n].seq <= upTo {
		n++
	}
	return n
}

// sync makes durable what pick says of everything up to upTo, and forgets the rest of it.
func (ino *inode) sync(upTo uint64, pick func(int64, int, []version) int) {
	sizes := ino.sizesUpTo(upTo)
	ino.durable = ino.merge(sizes, upTo, pick)
	ino.sizes = slices.Delete(ino.sizes, 0, sizes)
	ino.allocs = slices.DeleteFunc(ino.allocs, func(a allocation) bool { return a.seq <= upTo })
	for i, vs := range ino.dirty {
		vs = slices.DeleteFunc(vs, func(v version) bool { return v.seq <= upTo })
		if len(vs) == 0 {
			delete(ino.dirty, i)
		} else {
			ino.dirty[i] = vs
		}
	}
}

// revert shows the durable content again wherever nothing is pending.
func (ino *inode) revert() {
	n := max(len(ino.volatile.pages), len(ino.durable.pages))
	for i := range int64(n) {
		p := ino.durable.page(i)
		if i*pageSize >= ino.volatile.size || len(ino.dirty[i]) > 0 || ino.volatile.page(i) == p {
			continue
		}
		if at := ino.volatile.size - i*pageSize; p != nil && at < pageSize {
			p = p.cut(at)
		}
		ino.put(i, p, 0, pageSize, nil)
	}
}

// kill is the inode as the next process finds it.
func (ino *inode) kill(d *FS) *inode {
	k := &inode{
		fs: d, id: ino.id, path: ino.path,
		volatile: ino.volatile.clone(), durable: ino.durable.clone(), blocks: ino.blocks,
		dirty: make(map[int64][]version, len(ino.dirty)), sizes: slices.Clone(ino.sizes), allocs: slices.Clone(ino.allocs),
		bad: slices.Clone(ino.bad),
	}
	for i, vs := range ino.dirty {
		k.dirty[i] = slices.Clone(vs)
	}
	return k
}

// image is the inode with this content and nothing pending.
func (ino *inode) image(d *FS, c content) *inode {
	k := &inode{fs: d, id: ino.id, path: ino.path, volatile: c, durable: c.clone(), dirty: map[int64][]version{},
		bad: slices.Clone(ino.bad)}
	for _, p := range c.pages {
		if p != nil {
			k.blocks++
		}
	}
	return k
}

// fillGarbage fills a sector that the power cut trashed. It depends on the place alone.
func fillGarbage(to []byte, ino int, sector int64) {
	r := Rand{state: uint64(ino)<<40 ^ uint64(sector) ^ 0x6A09E667F3BCC908}
	for len(to) > 0 {
		x := r.next()
		to[0], to[1], to[2], to[3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
		to = to[4:]
	}
}
