package judge

import (
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
	"github.com/multiforadb/multiforadb/simfs"
)

// publish judges the write of a meta page, at the moment at which its bytes can first reach the disk. All that it needs must
// be there by then; the sync that follows says nothing about what the disk does first.
func (j *Judge) publish(e simfs.Event, slot page.ID) {
	img := j.durable()
	metas := metasOf(img, j.data)
	other := metas[1-slot]
	if other == nil {
		j.fault("publish", "%v: meta page %d is written, while the other one is not valid on the disk", e.Call, slot)
		return
	}
	j.counts.Publishes++
	if err := j.replaceable(img, metas, slot); err != nil {
		j.fault("publish", "%v: %v", e.Call, err)
		return
	}
	if len(e.Data) < page.Size {
		return // the call fails, and leaves a part: no page, whatever the disk makes of it
	}
	m, err := page.DecodeMeta(e.Data, slot)
	if err != nil {
		j.fault("publish", "%v: the page that is written is none: %v", e.Call, err)
		return
	}
	if err := sound(img, j.data, &m, other); err != nil {
		j.fault("publish", "%v: meta page %d, generation %d: %v", e.Call, slot, m.Generation, err)
		return
	}
	g, err := newGuard(img, j.data, metas, &m)
	if err != nil {
		j.fault("publish", "%v: %v", e.Call, err)
		return
	}
	j.guard = g
}

// replaceable says why the meta page in slot must not be overwritten, if so: a recovery would choose it.
func (j *Judge) replaceable(img *simfs.FS, metas [2]*page.Meta, slot page.ID) error {
	old, other := metas[slot], metas[1-slot]
	if old == nil || old.LSN == other.LSN && old.Heads == other.Heads && old.Space == other.Space {
		return nil // a copy of the other one, made by a recovery
	}
	log, err := wal.Open(img.Env(1), j.dir, wal.Options{})
	if err != nil {
		return fmt.Errorf("the log cannot be read: %w", err)
	}
	defer log.Close()
	if proven, known := log.Proven(); known && other.Generation <= proven || other.Generation < old.Generation {
		return nil
	}
	return fmt.Errorf("meta page %d is overwritten, while the log does not say that generation %d, in the other one, is durable", slot, other.Generation)
}

// metasOf gives the valid meta pages of an image.
func metasOf(img *simfs.FS, data string) (metas [2]*page.Meta) {
	for slot := range page.ID(2) {
		b, err := img.Peek(data, int64(slot)*page.Size, page.Size)
		if err != nil {
			return metas
		}
		if m, err := page.DecodeMeta(b, slot); err == nil {
			metas[slot] = &m
		}
	}
	return metas
}

// sound says what is wrong with what m reaches on the image, if anything.
func sound(img *simfs.FS, data string, m, other *page.Meta) error {
	r := &reach{disk: disk{img, data}, runs: nil}
	if err := r.meta(m); err != nil {
		return err
	}
	a, err := load(img, data, m, other)
	if err != nil {
		return err
	}
	faults, err := a.Audit(page.MapPublished, func(yield func(page.Run)) error {
		for _, run := range r.runs {
			yield(run)
		}
		return nil
	})
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("its bitmaps: %v", faults[0])
	}
	return err
}

// load makes the allocator of an image.
func load(img *simfs.FS, data string, chosen, fallback *page.Meta) (*page.Allocator, error) {
	e := img.Env(1)
	f, err := e.FS.Open(data, env.OpenExisting)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fallback == nil {
		fallback = chosen
	}
	return page.Load(e, f, page.Choice{Chosen: *chosen, Fallback: fallback, Durable: true})
}
