package storage

import (
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/env/probe"
)

// committer makes the open batch durable when it has grown large, while the writers that fill it go on.
//
// A client's statement waits for its commit at its end only. Without the committer the log of a large insert would be
// compressed, written and synced when the last document is in, with nothing else to do meanwhile, and all pages that its writes
// replaced would be held until then.
type committer struct {
	mu       env.Mutex
	cond     env.Cond
	done     env.WaitGroup
	wanted   bool
	stopping bool
}

func (c *committer) init(e *env.Env) {
	c.mu.Init(e, env.RankLeaf, "committer")
	c.cond.Init(e, &c.mu, "committer")
	c.done.Init(e, "committer")
}

// want wakes the committer.
func (c *committer) want() {
	c.mu.Lock()
	if !c.wanted {
		c.wanted = true
		c.cond.Signal()
	}
	c.mu.Unlock()
}

func (c *committer) stop() {
	c.mu.Lock()
	c.stopping = true
	c.cond.Signal()
	c.mu.Unlock()
	c.done.Wait()
}

// run commits until it is stopped. What fails is kept by the Store, and told to the writers that wait.
func (s *Store) runCommitter() {
	c := &s.committer
	for {
		c.mu.Lock()
		for !c.wanted && !c.stopping {
			c.cond.Wait()
		}
		stop := c.stopping
		c.wanted = false
		c.mu.Unlock()
		if stop {
			return
		}
		s.lead(func() {
			// Another leader may have come first.
			if s.openIsLarge() && s.Failed() == nil {
				probe.CommittedAhead.Hit()
				s.commitOpen(false)
			}
		})
	}
}

// openIsLarge reports whether the open batch is worth a commit that nobody has asked for yet.
func (s *Store) openIsLarge() bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	return int64(s.open.logBytes) >= s.o.CommitBytes
}
