package page

import (
	"errors"
	"fmt"
	"io"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// ErrNew: neither meta page was ever written. The first open was interrupted before it made anything, or is this one.
//
// An open that makes the file under a name of its own and renames it when both meta pages are durable never leaves one
// of them torn under the final name, so that anything else in them is damage.
var ErrNew = errors.New("no database yet")

// Choice is what [Pick] found.
type Choice struct {
	// Chosen is the meta to open.
	Chosen Meta
	// Fallback is the meta in the other page, if it is one that a damaged Chosen could be replaced by: published before
	// Chosen, durable, its pages and its log still there.
	Fallback *Meta
	// Next is the generation of the next publish. It goes to the page that is not Chosen's.
	Next uint64
	// Durable: Chosen is known to be on the disk, and not in the page cache only.
	Durable bool
}

// Pick decides which of two meta pages to open. proven is the newest generation that a valid log block calls durable; known
// tells whether any does.
//
// A valid page is not yet a durable one: a process that was killed between writing it and syncing it, or whose sync failed,
// leaves it in the page cache, to vanish with the next power cut. So a meta counts as durable if and only if it is valid and
//
//   - its generation is proven or below; or
//   - the other page holds a valid meta of a higher generation: a page is written only while the other one is durable.
//
// A meta in the page of proven itself, but of a lower generation, is what a lost write leaves: it was given up long ago, its
// pages belong to others, and it counts as invalid.
//
// The newest durable meta is chosen. A newer one that is not durable is as if it had not been written: what it alone
// reaches is free. If none is durable but one is valid, that one is all there is, and everything it reaches was synced
// before it was written: it is chosen. If both pages are invalid the answer is ErrCorrupt, naming both, and ErrNew if both
// are blank and no log block knows of a meta. slot0 and slot1 are the pages' bytes; empty ones stand for a file that ends
// before them.
func Pick(slot0, slot1 []byte, proven uint64, known bool) (Choice, error) {
	if !known && allZero(slot0) && allZero(slot1) {
		return Choice{}, ErrNew
	}
	var metas [2]Meta
	var errs [2]error
	for i, b := range [2][]byte{slot0, slot1} {
		metas[i], errs[i] = DecodeMeta(b, ID(i))
		if errors.Is(errs[i], ErrVersion) {
			return Choice{}, errs[i]
		}
		if m := &metas[i]; errs[i] == nil && known && m.Page() == ID(proven&1) && m.Generation < proven {
			errs[i] = fmt.Errorf("meta page %d: holds generation %d, generation %d is lost: %w", i, m.Generation, proven, ErrCorrupt)
		}
	}
	next := func(chosen *Meta) uint64 {
		n := chosen.Generation + 1
		for i := range metas {
			if errs[i] == nil {
				n = max(n, metas[i].Generation+1)
			}
		}
		if known {
			n = max(n, proven+1)
		}
		if n&1 == chosen.Generation&1 {
			n++
		}
		return n
	}
	isProven := func(m *Meta) bool { return known && m.Generation <= proven }

	if errs[0] != nil && errs[1] != nil {
		return Choice{}, fmt.Errorf("no valid meta page: %w; %w", errs[0], errs[1])
	}
	if errs[0] != nil || errs[1] != nil {
		probe.MetaTorn.Hit()
		only := &metas[0]
		if errs[0] != nil {
			only = &metas[1]
		}
		return Choice{Chosen: *only, Next: next(only), Durable: isProven(only)}, nil
	}
	newer, older := &metas[0], &metas[1]
	if newer.Generation < older.Generation {
		newer, older = older, newer
	}
	if newer.UUID != older.UUID || newer.Geometry != older.Geometry {
		return Choice{}, fmt.Errorf("meta pages 0 and 1 belong to different databases: %w", ErrCorrupt)
	}
	if isProven(newer) {
		fallback := *older
		return Choice{Chosen: *newer, Fallback: &fallback, Next: next(newer), Durable: true}, nil
	}
	// The newer one was written while the older one was durable, whether or not the block that says so survived.
	probe.MetaOlder.Hit()
	return Choice{Chosen: *older, Next: next(older), Durable: true}, nil
}

// ReadMetaPages gives the two pages for Pick, empty where the file is too short for them.
func ReadMetaPages(f env.File) (slot0, slot1 []byte, err error) {
	size, err := f.Size()
	if err != nil {
		return nil, nil, fmt.Errorf("meta pages: %w", err)
	}
	b := make([]byte, min(size, metaPages*Size))
	if n, err := f.ReadAt(b, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil, nil, fmt.Errorf("meta pages: %w", err)
	}
	cut := min(len(b), Size)
	return b[:cut], b[cut:], nil
}

// Settle makes both meta pages durable and known before anything else in the file is written. It must be called after Pick,
// and what it returns be opened. It does nothing if there is a fallback.
//
// Where there is none, what lies in the other page is not known: the page cache may show a meta that was never synced, or a
// torn one, while the disk still holds the one before. That one would come back with a power cut, and be taken for a
// fallback, although its bitmaps and pages had been written over meanwhile. So its page is first overwritten by a copy of
// the chosen meta, with a generation of its own. If the chosen one is not known to be durable either, its page is next.
func Settle(f env.File, c Choice) (Choice, error) {
	writes := 1
	switch {
	case c.Fallback != nil:
		return c, nil
	case !c.Durable:
		writes = 2
	}
	probe.MetaSettled.HitIf(writes == 1)
	probe.MetaSettledTwice.HitIf(writes == 2)
	for range writes {
		before, m := c.Chosen, c.Chosen
		m.Generation = c.Next
		if err := m.Write(f); err != nil {
			return c, err
		}
		if err := f.Datasync(); err != nil {
			return c, fmt.Errorf("meta page %d: %w", m.Page(), err)
		}
		c = Choice{Chosen: m, Fallback: &before, Next: m.Generation + 1, Durable: true}
	}
	return c, nil
}
