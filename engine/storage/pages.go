package storage

import (
	"sync/atomic"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// pageSet remembers pages of the file, one bit a page.
type pageSet struct {
	top atomic.Pointer[[]*pageSetChunk]
	mu  env.Mutex
}

const pageSetPages = 32768

type pageSetChunk [pageSetPages / 32]atomic.Uint32

func (v *pageSet) init(e *env.Env, name string) {
	v.mu.Init(e, env.RankLeaf, name)
	v.top.Store(new([]*pageSetChunk))
}

func (v *pageSet) has(id page.ID) bool {
	top := *v.top.Load()
	i := id / pageSetPages
	return i < page.ID(len(top)) && top[i] != nil && top[i][id%pageSetPages/32].Load()&(1<<(id%32)) != 0
}

func (v *pageSet) set(id page.ID) {
	i := int(id / pageSetPages)
	top := *v.top.Load()
	if i >= len(top) || top[i] == nil {
		v.mu.Lock()
		top = *v.top.Load()
		if i >= len(top) || top[i] == nil {
			grown := make([]*pageSetChunk, max(len(top), i+1))
			copy(grown, top)
			grown[i] = new(pageSetChunk)
			v.top.Store(&grown)
			top = grown
		}
		v.mu.Unlock()
	}
	top[i][id%pageSetPages/32].Or(1 << (id % 32))
}

// retract forgets page id, whose storage is about to change.
func (v *pageSet) retract(id page.ID) {
	if v.has(id) {
		(*v.top.Load())[id/pageSetPages][id%pageSetPages/32].And(^uint32(1 << (id % 32)))
	}
}

// clear forgets everything: after a failed sync the cached pages may not be what was checked.
func (v *pageSet) clear() { v.top.Store(new([]*pageSetChunk)) }
