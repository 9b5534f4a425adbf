package judge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// guard is what must not be written: what the durable meta pages reach, and the one that is being made durable.
type guard struct {
	metas []*page.Meta
	maps  []*page.Allocator // of each meta
	tails [][]page.Run      // of each meta: pages of open extents that it marks, but which hold nothing yet
	slots map[page.ID]bool  // bitmap and directory slots that they stand on
	end   page.ID           // of the longest: the file must not become shorter
}

func newGuard(img *simfs.FS, data string, durable [2]*page.Meta, writing *page.Meta) (*guard, error) {
	g := &guard{slots: map[page.ID]bool{}}
	for _, m := range []*page.Meta{durable[0], durable[1], writing} {
		if m != nil {
			g.metas = append(g.metas, m)
		}
	}
	for _, m := range g.metas {
		a, err := load(img, data, m, nil)
		if err != nil {
			return nil, fmt.Errorf("meta page %d, generation %d: %w", m.Page(), m.Generation, err)
		}
		heads, err := (&reach{disk: disk{img, data}}).heads(m)
		if err != nil {
			return nil, fmt.Errorf("meta page %d, generation %d: %w", m.Page(), m.Generation, err)
		}
		var tails []page.Run
		for _, h := range heads {
			tails = append(tails, h.tail)
		}
		g.maps, g.tails = append(g.maps, a), append(g.tails, tails)
		g.end = max(g.end, m.HighWater)
		if err := g.fixed(img, data, m); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// The places of the slots, as package page's Geometry draws them.

func regionHead(g page.Geometry, region int) page.ID {
	id := page.ID(region) * page.ID(g.RegionPages)
	if region == 0 {
		id += 2
	}
	return id
}

// fixed finds the slots that m stands on.
func (g *guard) fixed(img *simfs.FS, data string, m *page.Meta) error {
	d := m.Directory
	slots := d.Slots
	if len(slots) != d.Regions || d.Regions > int(m.Geometry.Inline) {
		slots = nil
		for i, s := range d.Slots {
			id := regionHead(m.Geometry, i*int(m.Geometry.PerPage)) + 3 + page.ID(s.Number-1)
			g.slots[id] = true
			b, err := img.Peek(data, int64(id)*page.Size, page.Size)
			if err != nil {
				return err
			}
			for k := 0; k < int(m.Geometry.PerPage) && len(slots) < d.Regions; k++ {
				slots = append(slots, page.Slot{Number: uint8(binary.LittleEndian.Uint64(b[12*k+4:]) & 3)})
			}
		}
	}
	for i, s := range slots {
		if s.Number > 0 {
			g.slots[regionHead(m.Geometry, i)+page.ID(s.Number-1)] = true
		}
	}
	return nil
}

// isFixed reports whether the page belongs to the allocator.
func (g *guard) isFixed(id page.ID) bool {
	geo := g.metas[0].Geometry
	region := int(id / page.ID(geo.RegionPages))
	end := regionHead(geo, region) + 3
	if region%int(geo.PerPage) == 0 {
		end += 3
	}
	return id < end
}

// hits names the meta page that reaches the page, if any does.
func (g *guard) hits(id page.ID) string {
	if g.isFixed(id) {
		if g.slots[id] {
			return "a durable meta page stands on that bitmap"
		}
		return ""
	}
	for i, a := range g.maps {
		empty := func(tail page.Run) bool { return tail.First <= id && id < tail.End() }
		if uint64(id) < a.Stats().File && a.Reached(page.Run{First: id, Count: 1}) && !slices.ContainsFunc(g.tails[i], empty) {
			return fmt.Sprintf("meta page %d, generation %d, reaches it", g.metas[i].Page(), g.metas[i].Generation)
		}
	}
	return ""
}

// guarded brings the guard up to date with what the disk holds: a meta page also becomes durable when the kernel writes it
// out by itself.
func (j *Judge) guarded(img *simfs.FS) *guard {
	var now [2][page.Size]byte
	for slot := range now {
		b, err := img.Peek(j.data, int64(slot)*page.Size, page.Size)
		if err != nil {
			return nil
		}
		copy(now[slot][:], b)
	}
	if j.guard != nil && bytes.Equal(now[0][:], j.seen[0][:]) && bytes.Equal(now[1][:], j.seen[1][:]) {
		return j.guard
	}
	metas := metasOf(img, j.data)
	if metas[0] == nil && metas[1] == nil {
		return nil
	}
	var writing *page.Meta
	if old := j.guard; old != nil {
		// The one written last stays protected until it is seen on the disk, or another is written.
		if m := old.metas[len(old.metas)-1]; metas[m.Page()] == nil || metas[m.Page()].Generation < m.Generation {
			writing = m
		}
	}
	g, err := newGuard(img, j.data, metas, writing)
	if err != nil {
		j.fault("publish", "%v", err)
		return nil
	}
	j.guard, j.seen = g, now
	return g
}

// written judges a change of pages of the data file.
func (j *Judge) written(e simfs.Event, run page.Run) {
	j.counts.Writes++
	g := j.guarded(j.durable())
	for id := run.First; id < run.End(); id++ {
		if g != nil {
			if by := g.hits(id); by != "" {
				j.fault("immutability", "%v: page %d is changed, but %s", e.Call, id, by)
				return
			}
		}
		for _, ref := range j.held[id] {
			if e.Op != simfs.OpWrite || len(e.Data) != page.Size || page.Verify(e.Data, ref) != nil {
				j.fault("immutability", "%v: page %d is changed, but a pinned snapshot reaches it as %v", e.Call, id, ref)
				return
			}
		}
	}
}

// cut judges a truncation of the data file.
func (j *Judge) cut(e simfs.Event) {
	j.counts.Writes++
	if g := j.guarded(j.durable()); g != nil && e.Off < int64(g.end)*page.Size {
		j.fault("immutability", "%v: a meta page counts on %d pages", e.Call, g.end)
	}
}
