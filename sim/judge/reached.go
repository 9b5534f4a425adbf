package judge

import (
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// Reached is what one of the two meta pages of an image reaches.
type Reached struct {
	Meta    *page.Meta // nil: the page is not valid
	Pages   []page.Run // of trees and record tables, each alone, and extents
	Bitmaps []page.ID  // the slots that it stands on
	Err     error      // what was in the way; then there is more than is known
}

// ReachedFrom tells, of both meta pages of the database in dir, what they reach on an image. It is for reports: nothing is judged.
func ReachedFrom(img *simfs.FS, dir string) (all [2]Reached) {
	data := dir + "/data"
	for slot, m := range metasOf(img, data) {
		if m == nil {
			continue
		}
		r := &reach{disk: disk{img, data}}
		g := &guard{slots: map[page.ID]bool{}}
		err := r.meta(m)
		if err == nil {
			err = g.fixed(img, data, m)
		}
		var slots []page.ID
		for id := range g.slots {
			slots = append(slots, id)
		}
		slices.Sort(slots)
		all[slot] = Reached{Meta: m, Pages: r.runs, Bitmaps: slots, Err: err}
	}
	return all
}
