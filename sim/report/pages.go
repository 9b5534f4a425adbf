package report

import (
	"slices"
	"strings"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/sim/workload"
	"github.com/multiforadb/multiforadb/simfs"
)

// File is one file of a crash image, page by page: each string has a letter for each page.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// State is what became of the page: see the constants.
	State string `json:"state"`
	// Reach, of the data file only, is which meta page reaches it: 0 none, 1 the first, 2 the second, 3 both.
	Reach string `json:"reach,omitempty"`
	// Kind is what the page holds: m meta page, b bitmap, B branch, L leaf, O overflow, T record table, R records, - unknown.
	Kind string `json:"kind,omitempty"`
	// Torn has the states of the sectors, for pages whose sectors differ.
	Torn map[int]string `json:"torn,omitempty"`
}

// The states of a page, and of a sector.
const (
	durable = '.' // nothing was pending
	kept    = 'k' // pending, and survived
	older   = 'o' // pending, and an older version survived
	lost    = 'l' // pending, and lost
	garbage = 'g' // pending, and rubbish took its place
	torn    = 't' // a page of which some sectors survived, and others did not
	rotten  = 'x' // damaged
)

// Meta is one of the meta pages of a crash image.
type Meta struct {
	Valid      bool   `json:"valid"`
	Generation uint64 `json:"generation"`
	LSN        uint64 `json:"lsn"`
	Pages      int    `json:"pages"`
	Err        string `json:"err,omitempty"`
}

const sectors = page.Size / 512

// cut draws the map of an image.
func (r *Recording) cut(step int, where string, disk *simfs.FS, cut workload.Cut, err error) Cut {
	out := Cut{Cut: cut, Step: step, Where: where, Loses: disk.Describe(cut.Choice)}
	if err != nil {
		out.Err = err.Error()
	}
	image := disk.Crash(cut.Choice)
	defer image.Discard()
	names, listErr := image.List(workload.Dir)
	if listErr != nil {
		return out
	}
	states := statesOf(disk, cut)
	for _, name := range names {
		path := workload.Dir + "/" + name
		info, err := image.Stat(path)
		if err != nil || info.Size == 0 {
			continue
		}
		f := File{Path: path, Size: info.Size}
		f.draw(states[path])
		if name == "data" {
			out.Metas = f.reach(image)
		}
		out.Files = append(out.Files, f)
	}
	return out
}

// statesOf gives, by file and page, the states of the sectors of which anything was pending, or which were damaged.
func statesOf(disk *simfs.FS, cut workload.Cut) map[string]map[int64]*[sectors]byte {
	states := map[string]map[int64]*[sectors]byte{}
	at := func(path string, p int64) *[sectors]byte {
		if states[path] == nil {
			states[path] = map[int64]*[sectors]byte{}
		}
		if states[path][p] == nil {
			states[path][p] = &[sectors]byte{}
			for i := range states[path][p] {
				states[path][p][i] = durable
			}
		}
		return states[path][p]
	}
	paths := map[int]string{}
	for _, u := range disk.Pending() {
		if paths[u.Inode] = u.Path; u.Kind != simfs.KindWrite {
			continue
		}
		s := at(u.Path, u.Page)
		for i := range s {
			if u.Mask&(1<<i) != 0 {
				s[i] = kept
			}
		}
	}
	for _, l := range disk.Explain(cut.Choice).Lost {
		if l.Kind != simfs.KindSector {
			continue
		}
		state := byte(older)
		switch {
		case l.Pick < 0:
			state = garbage
		case l.Pick == 0:
			state = lost
		}
		at(paths[l.Inode], l.Sector/sectors)[l.Sector%sectors] = state
	}
	if d := cut.Rot; d != nil {
		off := d.Bit / 8
		at(d.Path, off/page.Size)[off%page.Size/512] = rotten
	}
	return states
}

// draw fills in State and Torn.
func (f *File) draw(states map[int64]*[sectors]byte) {
	var b strings.Builder
	for p := range (f.Size + page.Size - 1) / page.Size {
		s := states[p]
		switch {
		case s == nil:
			b.WriteByte(durable)
		case slices.Contains(s[:], rotten):
			b.WriteByte(rotten)
		case slices.ContainsFunc(s[:], func(c byte) bool { return c != s[0] && c != durable }) || s[0] == durable && slices.ContainsFunc(s[:], isGone):
			b.WriteByte(torn)
			if f.Torn == nil {
				f.Torn = map[int]string{}
			}
			f.Torn[int(p)] = string(s[:])
		case s[0] == durable:
			b.WriteByte(kept)
		default:
			b.WriteByte(s[0])
		}
	}
	f.State = b.String()
}

func isGone(c byte) bool { return c != durable && c != kept }

// reach fills in Reach and Kind of the data file.
func (f *File) reach(image *simfs.FS) (metas [2]Meta) {
	reach := slices.Repeat([]byte{'0'}, len(f.State))
	kind := slices.Repeat([]byte{'-'}, len(f.State))
	mark := func(id page.ID, by int, what byte) {
		if id < page.ID(len(reach)) {
			reach[id] |= byte(1 << by)
			kind[id] = what
		}
	}
	for i, m := range judge.ReachedFrom(image, workload.Dir) {
		kind[min(i, len(kind)-1)] = 'm'
		if m.Meta == nil {
			continue
		}
		metas[i] = Meta{Valid: true, Generation: m.Meta.Generation, LSN: m.Meta.LSN}
		if m.Err != nil {
			metas[i].Err = m.Err.Error()
		}
		mark(page.ID(i), i, 'm')
		for _, id := range m.Bitmaps {
			mark(id, i, 'b')
		}
		for _, run := range m.Pages {
			metas[i].Pages += int(run.Count)
			for id := run.First; id < run.End(); id++ {
				what := byte('R')
				if b, err := image.Peek(f.Path, int64(id)*page.Size, page.Size); run.Count == 1 && err == nil && len(b) == page.Size {
					what = kindOf(page.TypeOf(b))
				}
				mark(id, i, what)
			}
		}
	}
	f.Reach, f.Kind = string(reach), string(kind)
	return metas
}

func kindOf(t page.Type) byte {
	switch t {
	case page.TypeBranch:
		return 'B'
	case page.TypeLeaf:
		return 'L'
	case page.TypeOverflow:
		return 'O'
	case page.TypeTable:
		return 'T'
	}
	return '-'
}
