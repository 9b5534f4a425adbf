package simfs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// Choice says which of the states that a power cut could leave becomes the image. The zero value keeps everything. It
// prints as JSON, and means the same on every disk on which the same calls were made.
type Choice struct {
	Gen Gen `json:"gen,omitempty"`
	// K and J are units, counted from 0 in the order of [FS.Pending].
	K int `json:"k,omitempty"`
	J int `json:"j,omitempty"`
	// Mask has a bit for each sector of a torn unit that survives.
	Mask uint8 `json:"mask,omitempty"`
	// P is how likely a unit survives in Random.
	P    float64 `json:"p,omitempty"`
	Seed uint64  `json:"seed,omitempty"`
	// Garbage fills every second sector that is lost, chosen by Seed, with rubbish instead of what it held before.
	Garbage bool `json:"garbage,omitempty"`
	// Lost is what an explicit choice loses: all else is kept.
	Lost []Loss `json:"lost,omitempty"`
}

func (c Choice) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Gen names a rule that makes choices.
type Gen string

const (
	Explicit Gen = ""         // keep all but Lost
	DropAll  Gen = "drop-all" // nothing that was not synced survives
	KeepAll  Gen = "keep-all" // everything survives
	Prefix   Gen = "prefix"   // the first K units survive
	OmitOne  Gen = "omit-one" // the first J units survive, but for unit K
	OnlyOne  Gen = "only-one" // unit K survives, with the changes of size that it stands on
	Torn     Gen = "torn"     // the first K units survive whole, and of unit K the sectors in Mask
	Random   Gen = "random"   // each survives with probability P; a sector may also keep an older version
	Killed   Gen = "killed"   // the process dies and the page cache survives: see [FS.Kill]
)

// Loss is one thing that an explicit choice loses: a directory operation or a change of size (Seq says which), or the
// newest versions of a sector.
type Loss struct {
	Kind   Kind   `json:"kind"`
	Seq    uint64 `json:"seq,omitempty"`
	Inode  int    `json:"inode,omitempty"`
	Sector int64  `json:"sector,omitempty"`
	// Pick is what the sector holds: 0 is the durable content, n its n-th pending version, -1 garbage.
	Pick int `json:"pick,omitempty"`
}

// Kind is a kind of pending thing.
type Kind string

const (
	KindDir    Kind = "dir"
	KindSize   Kind = "size"
	KindSector Kind = "sector" // in a Loss
	KindWrite  Kind = "write"  // in a Unit: a part of a write, or of a hole, within one page
)

// Unit is one thing that is pending: a power cut loses it or not (a write also in part).
type Unit struct {
	Seq    uint64
	Kind   Kind
	Inode  int
	Path   string // of the file at the time
	Page   int64  // KindWrite
	Mask   uint8  // KindWrite: the sectors of the page that it has
	Size   int64  // KindSize
	Origin fmt.Stringer
}

// Pending is everything that a power cut could lose, in the order in which it was done.
func (d *FS) Pending() []Unit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending()
}

func (d *FS) pending() (units []Unit) {
	for _, name := range slices.Sorted(maps.Keys(d.dirs)) {
		for _, op := range d.dirs[name].pending {
			units = append(units, Unit{Seq: op.seq, Kind: KindDir, Inode: op.ino.id, Path: op.by.Path, Origin: op.by})
		}
	}
	for _, ino := range d.files() {
		for _, ch := range ino.sizes {
			units = append(units, Unit{Seq: ch.seq, Kind: KindSize, Inode: ino.id, Path: ino.path, Size: ch.size, Origin: ch.by})
		}
		for i, vs := range ino.dirty {
			for _, v := range vs {
				units = append(units, Unit{Seq: v.seq, Kind: KindWrite, Inode: ino.id, Path: ino.path, Page: i, Mask: v.mask, Origin: v.by})
			}
		}
	}
	slices.SortFunc(units, func(a, b Unit) int { return cmp.Compare(a.Seq, b.Seq) })
	return units
}

// files is every inode that a crash could leave with a name, in the order of numbers.
func (d *FS) files() []*inode {
	return slices.SortedFunc(maps.Values(d.byNumber()), func(a, b *inode) int { return cmp.Compare(a.id, b.id) })
}

func (d *FS) byNumber() map[int]*inode {
	seen := map[int]*inode{}
	for _, dd := range d.dirs {
		for _, ino := range dd.durable {
			seen[ino.id] = ino
		}
		for _, op := range dd.pending {
			seen[op.ino.id] = op.ino
		}
		for _, ino := range dd.volatile {
			seen[ino.id] = ino
		}
	}
	return seen
}

// fate is a choice worked out: what is not in it is kept.
type fate struct {
	dirs    map[uint64]bool // lost operations
	sizes   map[int]int     // by inode: how many changes are kept
	sectors map[place]int   // as Loss.Pick
}

type place struct {
	inode  int
	sector int64
}

// fate works out what c means now. d.mu is held.
func (d *FS) fate(c Choice) fate {
	f := fate{dirs: map[uint64]bool{}, sizes: map[int]int{}, sectors: map[place]int{}}
	if c.Gen == Explicit {
		d.fateOfLosses(c.Lost, &f)
	} else {
		d.fateOfUnits(c, &f)
	}
	// A name's operations survive in order: what is lost takes the later ones on the same name with it.
	for _, dd := range d.dirs {
		for i, op := range dd.pending {
			for _, before := range dd.pending[:i] {
				if f.dirs[before.seq] && before.touches(op) {
					f.dirs[op.seq] = true
				}
			}
		}
	}
	return f
}

func (d *FS) fateOfLosses(lost []Loss, f *fate) {
	for _, l := range lost {
		switch l.Kind {
		case KindDir:
			f.dirs[l.Seq] = true
		case KindSector:
			f.sectors[place{l.Inode, l.Sector}] = l.Pick
		}
	}
	for _, ino := range d.files() {
		for n, ch := range ino.sizes {
			if slices.ContainsFunc(lost, func(l Loss) bool { return l.Kind == KindSize && l.Seq == ch.seq }) {
				f.sizes[ino.id] = n
				break
			}
		}
	}
}

// order is the numbers of all pending units, in order.
func (d *FS) order() (seqs []uint64) {
	for _, dd := range d.dirs {
		for _, op := range dd.pending {
			seqs = append(seqs, op.seq)
		}
	}
	for _, ino := range d.byNumber() {
		for _, ch := range ino.sizes {
			seqs = append(seqs, ch.seq)
		}
		for _, vs := range ino.dirty {
			for _, v := range vs {
				seqs = append(seqs, v.seq)
			}
		}
	}
	slices.Sort(seqs)
	return seqs
}

// fateOfUnits decides for each unit whether it is kept, and for each sector which version that leaves.
func (d *FS) fateOfUnits(c Choice, f *fate) {
	if c.Gen == KeepAll {
		return
	}
	var seqs []uint64
	if c.Gen != Random && c.Gen != DropAll {
		seqs = d.order()
	}
	// at is the K-th unit's number, end the J-th's; later than all, if there are not so many.
	seqOf := func(i int) uint64 {
		if i < len(seqs) {
			return seqs[max(i, 0)]
		}
		return math.MaxUint64
	}
	at, end := seqOf(c.K), seqOf(c.J)
	kept := func(ino int, seq uint64, sector int) bool {
		switch c.Gen {
		case Prefix:
			return seq < at
		case OmitOne:
			return seq < end && seq != at
		case OnlyOne:
			return seq == at
		case Torn:
			return seq < at || seq == at && (sector < 0 || c.Mask&(1<<sector) != 0)
		case Random:
			return chance(c.Seed, ino, int64(seq)<<4+int64(sector+1)) < c.P
		}
		return false
	}
	for _, dd := range d.dirs {
		for _, op := range dd.pending {
			if !kept(op.ino.id, op.seq, -1) {
				f.dirs[op.seq] = true
			}
		}
	}
	for _, ino := range d.files() {
		standsOn := c.Gen == OnlyOne && ino.has(at)
		for n, ch := range ino.sizes {
			if !kept(ino.id, ch.seq, -1) && !(standsOn && ch.seq < at) {
				f.sizes[ino.id] = n
				break
			}
		}
		for i, vs := range ino.dirty {
			for s := range d.sectors() {
				of := versionsOf(vs, s)
				pick := len(of)
				for pick > 0 && !kept(ino.id, vs[of[pick-1]].seq, s) {
					pick--
				}
				if pick == len(of) {
					continue
				}
				at := i*int64(d.sectors()) + int64(s)
				if c.Garbage && chance(^c.Seed, ino.id, at) < 0.5 {
					pick = -1
				}
				f.sectors[place{ino.id, at}] = pick
			}
		}
	}
}

// has reports whether a pending unit is the inode's.
func (ino *inode) has(seq uint64) bool {
	for _, vs := range ino.dirty {
		if slices.ContainsFunc(vs, func(v version) bool { return v.seq == seq }) {
			return true
		}
	}
	return slices.ContainsFunc(ino.sizes, func(ch sizeChange) bool { return ch.seq == seq })
}

// Explain is c as an explicit choice.
func (d *FS) Explain(c Choice) Choice {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.explain(c)
}

func (d *FS) explain(c Choice) Choice {
	if c.Gen == Explicit || c.Gen == Killed {
		return c
	}
	f := d.fate(c)
	type dated struct {
		seq uint64
		Loss
	}
	var lost []dated
	for seq := range f.dirs {
		lost = append(lost, dated{seq, Loss{Kind: KindDir, Seq: seq}})
	}
	for _, ino := range d.files() {
		if n, ok := f.sizes[ino.id]; ok {
			lost = append(lost, dated{ino.sizes[n].seq, Loss{Kind: KindSize, Seq: ino.sizes[n].seq}})
		}
	}
	files := d.byNumber()
	for at, pick := range f.sectors {
		vs := files[at.inode].versionsAt(at.sector)
		lost = append(lost, dated{vs[len(vs)-1].seq, Loss{Kind: KindSector, Inode: at.inode, Sector: at.sector, Pick: pick}})
	}
	slices.SortFunc(lost, func(a, b dated) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.Inode, b.Inode), cmp.Compare(a.Sector, b.Sector))
	})
	e := Choice{}
	for _, l := range lost {
		e.Lost = append(e.Lost, l.Loss)
	}
	return e
}

// versionsAt is the pending versions of a sector.
func (ino *inode) versionsAt(sector int64) (vs []version) {
	if ino == nil {
		return nil
	}
	n := int64(ino.fs.sectors())
	all := ino.dirty[sector/n]
	for _, j := range versionsOf(all, int(sector%n)) {
		vs = append(vs, all[j])
	}
	return vs
}

// fingerprint is equal for equal fates, and different for different ones but by accident.
func (f fate) fingerprint() (x uint64) {
	for seq := range f.dirs {
		x += mix(seq)
	}
	for ino, n := range f.sizes {
		x += mix(mix(uint64(ino)) + uint64(n) + 1<<40)
	}
	for at, pick := range f.sectors {
		x += mix(mix(uint64(at.inode)+mix(uint64(at.sector))) + uint64(pick+2) + 1<<41)
	}
	return x
}

// Choices is at most n choices worth trying: all there are, if they are that few ([FS.Exhaustive]); otherwise the two
// extremes and a mixture of all rules by seed. Equal ones appear once.
func (d *FS) Choices(seed uint64, n int) []Choice {
	if all, ok := d.Exhaustive(n); ok {
		return all
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	units := d.pending()
	r := Rand{state: seed}
	pick := func(n int) int { return int(r.next() % uint64(n)) }
	list := []Choice{{Gen: DropAll}, {Gen: KeepAll}}
	seen := map[uint64]bool{d.fate(list[0]).fingerprint(): true, d.fate(list[1]).fingerprint(): true}
	writes := slices.DeleteFunc(slices.Clone(units), func(u Unit) bool { return u.Kind != KindWrite })
	for tries := 0; len(list) < n && tries < 4*n; tries++ {
		c := Choice{Gen: Random, Seed: r.next() >> 11, P: []float64{0.1, 0.5, 0.9, 0.98}[pick(4)], Garbage: pick(4) == 0}
		switch pick(6) {
		case 0:
			c = Choice{Gen: Prefix, K: pick(len(units) + 1)}
		case 1:
			j := 1 + pick(len(units))
			c = Choice{Gen: OmitOne, K: pick(j), J: j}
		case 2:
			c = Choice{Gen: OnlyOne, K: pick(len(units))}
		case 3:
			if len(writes) > 0 {
				u := writes[pick(len(writes))]
				k := slices.IndexFunc(units, func(v Unit) bool { return v.Seq == u.Seq })
				mask := []uint8{0x0F, 0xF0, 0x55, 0xAA, 0x01, 0x80, 0xFE, 0x7F}[pick(8)]
				c = Choice{Gen: Torn, K: k, Mask: mask, Garbage: pick(4) == 0, Seed: c.Seed}
			}
		}
		if id := d.fate(c).fingerprint(); !seen[id] {
			seen[id] = true
			list = append(list, c)
		}
	}
	return list
}

// Exhaustive is every choice that leaves a different image (garbage aside), if there are at most limit.
func (d *FS) Exhaustive(limit int) (all []Choice, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 1
	var dims [][][]Loss // for each independent thing, its possible losses
	add := func(dim [][]Loss) bool {
		if hi, lo := bits.Mul64(uint64(total), uint64(len(dim))); hi > 0 || lo > uint64(limit) {
			return false
		}
		total *= len(dim)
		if len(dim) > 1 {
			dims = append(dims, dim)
		}
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(d.dirs)) {
		subsets := d.dirSubsets(d.dirs[name].pending, limit)
		if subsets == nil || !add(subsets) {
			return nil, false
		}
	}
	for _, ino := range d.files() {
		sizes := [][]Loss{nil}
		for _, ch := range slices.Backward(ino.sizes) {
			sizes = append(sizes, []Loss{{Kind: KindSize, Seq: ch.seq}})
		}
		if !add(sizes) {
			return nil, false
		}
		for _, i := range slices.Sorted(maps.Keys(ino.dirty)) {
			for s := range d.sectors() {
				if !add(d.sectorLosses(ino, i, s)) {
					return nil, false
				}
			}
		}
	}
	for n := range total {
		var c Choice
		for _, dim := range dims {
			c.Lost = append(c.Lost, dim[n%len(dim)]...)
			n /= len(dim)
		}
		all = append(all, c)
	}
	return all, true
}

// sectorLosses is what may become of a sector: its newest version, or any older content that differs from all newer ones.
func (d *FS) sectorLosses(ino *inode, i int64, s int) [][]Loss {
	size := d.opt.SectorSize
	sector := func(p *page) string {
		if p == nil {
			p = zeroPage
		}
		return string(p[s*size : (s+1)*size])
	}
	losses := [][]Loss{nil}
	of := versionsOf(ino.dirty[i], s)
	seen := map[string]bool{}
	for pick := len(of); pick >= 0 && len(of) > 0; pick-- {
		held := ino.durable.page(i)
		if pick > 0 {
			held = ino.dirty[i][of[pick-1]].data
		}
		if id := sector(held); !seen[id] {
			if seen[id] = true; pick < len(of) {
				losses = append(losses, []Loss{{Kind: KindSector, Inode: ino.id, Sector: i*int64(d.sectors()) + int64(s), Pick: pick}})
			}
		}
	}
	return losses
}

// dirSubsets is the sets of operations that may be lost together, or nil if there are more than limit.
func (d *FS) dirSubsets(ops []dirOp, limit int) (subsets [][]Loss) {
	if len(ops) > 16 {
		return nil
	}
	for lost := range 1 << len(ops) {
		closed := true
		for i, op := range ops {
			for j, before := range ops[:i] {
				if lost&(1<<j) != 0 && lost&(1<<i) == 0 && before.touches(op) {
					closed = false
				}
			}
		}
		if !closed {
			continue
		}
		var losses []Loss
		for i, op := range ops {
			if lost&(1<<i) != 0 {
				losses = append(losses, Loss{Kind: KindDir, Seq: op.seq})
			}
		}
		if subsets = append(subsets, losses); len(subsets) > limit {
			return nil
		}
	}
	return subsets
}
