package simfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Crash makes the disk that a power cut at this moment leaves if c is what survives. It has no hooks, no scheduler, no
// locks, and nothing pending; this disk is not touched. Discard it after use if anything mapped its files.
func (d *FS) Crash(c Choice) *FS {
	if c.Gen == Killed || d.opt.Forgetful {
		return d.Kill()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	plain := c.Gen == DropAll && !c.Garbage // only what is durable, without a look at what is not
	var f fate
	if !plain {
		f = d.fate(c)
	}
	n := d.heir()
	images := map[*inode]*inode{}
	for name, dd := range d.dirs {
		names := maps.Clone(dd.durable)
		for _, op := range dd.pending {
			if !plain && !f.dirs[op.seq] {
				op.apply(names)
			}
		}
		to := n.dirs[name]
		for file, ino := range names {
			k := images[ino]
			if k == nil {
				if plain {
					k = ino.image(n, ino.durable.clone())
				} else {
					k = ino.image(n, ino.crash(f))
				}
				n.used += k.blocks
				images[ino] = k
			}
			k.links++
			to.volatile[file], to.durable[file] = k, k
		}
	}
	return n
}

// heir is a disk of the same kind, with the same directories, empty.
func (d *FS) heir() *FS {
	opt := d.opt
	opt.Hooks = Hooks{}
	n := newFS(opt)
	n.seq, n.inodes = d.seq, d.inodes
	for name := range d.dirs {
		n.dirs[name] = newDir()
	}
	return n
}

// crash is the content that f leaves.
func (ino *inode) crash(f fate) content {
	if len(ino.dirty) == 0 && len(ino.sizes) == 0 {
		return ino.durable.clone()
	}
	sizes, ok := f.sizes[ino.id]
	if !ok {
		sizes = len(ino.sizes)
	}
	n := int64(ino.fs.sectors())
	return ino.merge(sizes, 0, func(i int64, s int, vs []version) int {
		of := versionsOf(vs, s)
		pick, ok := f.sectors[place{ino.id, i*n + int64(s)}]
		switch {
		case !ok || pick > len(of):
			return of[len(of)-1]
		case pick < 0:
			return pickGarbage
		case pick == 0:
			return pickDurable
		}
		return of[pick-1]
	})
}

// Kill makes the disk that the next process finds after this one died: everything is as seen, and what is not synced is
// pending still, for a later power cut to take.
func (d *FS) Kill() *FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.heir()
	images := map[*inode]*inode{}
	of := func(ino *inode) *inode {
		if images[ino] == nil {
			images[ino] = ino.kill(n)
		}
		return images[ino]
	}
	for name, dd := range d.dirs {
		to := n.dirs[name]
		for file, ino := range dd.volatile {
			k := of(ino)
			if k.links == 0 {
				k.blocks = ino.blocks
				n.used += k.blocks
			}
			k.links++
			to.volatile[file] = k
		}
		for file, ino := range dd.durable {
			to.durable[file] = of(ino)
		}
		for _, op := range dd.pending {
			op.ino = of(op.ino)
			to.pending = append(to.pending, op)
		}
	}
	return n
}

// WriteBack is the kernel writing pages out by itself: each dirty page becomes durable, as it is now, with probability p
// by seed. It takes choices from a crash and adds none. Files with a pending shrink are left alone.
func (d *FS) WriteBack(seed uint64, p float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ino := range d.files() {
		if slices.ContainsFunc(ino.sizes, func(ch sizeChange) bool { return ch.shrink }) {
			continue
		}
		for _, i := range slices.Sorted(maps.Keys(ino.dirty)) {
			if chance(seed, ino.id, i) >= p {
				continue
			}
			sizes := ino.sizesUpTo(ino.dirty[i][len(ino.dirty[i])-1].seq)
			if sizes > 0 {
				ino.durable.size = ino.sizes[sizes-1].size
				ino.sizes = slices.Delete(ino.sizes, 0, sizes)
			}
			merged := ino.mergePage(i, ino.durable.page(i), nil, latest(func(uint64) bool { return true }))
			ino.durable.set(i, merged)
			delete(ino.dirty, i)
		}
	}
}

// Describe tells what a choice loses, with the stack of everything lost. It is for a failure's report, so a long list is cut.
func (d *FS) Describe(c Choice) string {
	const most = 40
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := d.explain(c).Lost
	if c.Gen == Killed || len(lost) == 0 {
		return "nothing is lost\n"
	}
	origins, files := map[uint64]Unit{}, d.byNumber()
	for _, u := range d.pending() {
		origins[u.Seq] = u
	}
	var b strings.Builder
	lastBy := ""
	for i, l := range lost {
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", len(lost)-most)
			break
		}
		u := origins[l.Seq]
		switch l.Kind {
		case KindDir:
			fmt.Fprintf(&b, "  lost: what was done to the directory entry of %s\n", u.Path)
		case KindSize:
			fmt.Fprintf(&b, "  lost: from here on, the changes of the size of %s (to %d)\n", u.Path, u.Size)
		case KindSector:
			vs := files[l.Inode].versionsAt(l.Sector)
			if len(vs) == 0 {
				continue
			}
			u = origins[vs[len(vs)-1].seq]
			off := l.Sector * int64(d.opt.SectorSize)
			holds := "its durable content"
			if l.Pick < 0 {
				holds = "garbage"
			} else if l.Pick > 0 {
				holds = fmt.Sprintf("version %d of %d", l.Pick, len(vs))
			}
			fmt.Fprintf(&b, "  lost: bytes [%d, %d) of %s, which hold %s\n", off, off+int64(d.opt.SectorSize), u.Path, holds)
		}
		if by := fmt.Sprint(u.Origin); by != lastBy {
			fmt.Fprintf(&b, "    done by %s\n", by)
			lastBy = by
		}
	}
	return b.String()
}

// Minimise moves a failing choice towards keeping everything, for as long as fails says that the image still fails, and
// answers an explicit choice of which no single loss can be left out.
func (d *FS) Minimise(c Choice, fails func(Choice) bool) Choice {
	if c.Gen == Killed {
		return c
	}
	lost := d.Explain(c).Lost
	for size := max(len(lost)/2, 1); ; size = max(size/2, 1) {
		smaller := false
		for at := 0; at < len(lost); {
			rest := slices.Concat(lost[:at], lost[min(at+size, len(lost)):])
			if fails(Choice{Lost: rest}) {
				lost, smaller = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !smaller {
			return Choice{Lost: lost}
		}
	}
}
