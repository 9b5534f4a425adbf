package engine

import "github.com/multiforadb/multiforadb/engine/storage/page"

// What MaxMemory is divided into. The rest is for messages, cursors, the log's buffers and what the collector has not come to yet.
const (
	sortMemoryDefault = 100 << 20
	sortMemoryMin     = 4 << 20

	pagesShare = 16 // pages in memory only that call for a checkpoint; writers wait at four times as many
	pagesMin   = 512
	pagesMax   = 16384
	sortShare  = 8 // one sort or stage
)

// divideMemory sets what the caller has not.
func (o *Options) divideMemory() {
	sort, pages := int64(sortMemoryDefault), int64(0)
	if o.MaxMemory > 0 {
		sort = min(max(o.MaxMemory/sortShare, sortMemoryMin), sortMemoryDefault)
		pages = min(max(o.MaxMemory/pagesShare/page.Size, pagesMin), pagesMax)
	}
	if o.SortMemory == 0 {
		o.SortMemory = int(sort)
	}
	if o.Storage.CheckpointPages == 0 {
		o.Storage.CheckpointPages = pages
	}
}
