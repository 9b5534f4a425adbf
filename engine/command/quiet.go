package command

import (
	"context"
	"time"

	"github.com/multiforadb/multiforadb/engine/env"
)

// quiet is where clients wait for changes of the topology, which never come: each until its time is over, or all until the server closes.
type quiet struct {
	env     *env.Env
	mu      env.Mutex
	changed env.Cond
	over    bool
}

func (q *quiet) init(e *env.Env) {
	q.env = e
	q.mu.Init(e, env.RankNone, "quiet")
	q.changed.Init(e, &q.mu, "quiet is over")
}

// wait returns after d, or when the quiet or ctx is over, which it looks for now and then.
func (q *quiet) wait(ctx context.Context, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for d > 0 && !q.over && ctx.Err() == nil {
		step := min(d, awaitStep)
		d -= step
		late := false
		stop := q.env.Clock.AfterFunc(step, func() {
			q.mu.Lock()
			late = true
			q.changed.Broadcast()
			q.mu.Unlock()
		})
		for !late && !q.over {
			q.changed.Wait()
		}
		stop()
	}
}

// end wakes all that wait, and all that are going to.
func (q *quiet) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.changed.Broadcast()
}

// Quiesce answers the clients that wait for nothing in particular, so that their connections can end.
func (d *Dispatcher) Quiesce() { d.quiet.end() }
