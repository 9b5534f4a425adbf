package sim

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// committer is group commit in thirty lines: whoever finds no leader leads, writes and syncs what is queued, and wakes the
// rest. After a failed sync nothing is acknowledged any more. bug names what is wrong with it.
type committer struct {
	e       *env.Env
	bug     string
	f       env.File
	mu      env.Mutex
	durable env.Cond
	queue   []byte
	queued  int64 // bytes ever
	synced  int64
	leading bool
	failed  error
}

func newCommitter(e *env.Env, bug string) (*committer, error) {
	c := &committer{e: e, bug: bug}
	c.mu.Init(e, env.RankPipeline, "queue")
	c.durable.Init(e, &c.mu, "durable")
	var err error
	if c.f, err = e.FS.Open("log", env.OpenCreate); err != nil {
		return nil, err
	}
	return c, e.FS.SyncDir("/")
}

// commit appends b, and returns when it is durable.
func (c *committer) commit(b byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, b)
	c.queued++
	mine := c.queued
	for c.synced < mine && c.failed == nil {
		if c.leading {
			c.durable.Wait()
			continue
		}
		c.leading = true
		batch, end := c.queue, c.queued
		c.queue = nil
		c.mu.Unlock()
		_, err := c.f.WriteAt(batch, end-int64(len(batch)))
		if c.bug == "covers what came later" {
			c.mu.Lock()
			end = c.queued
			c.mu.Unlock()
		}
		if err == nil && c.bug != "no sync" {
			err = c.f.Datasync()
		}
		c.mu.Lock()
		c.leading = false
		switch {
		case err == nil:
			c.synced = end
		case c.bug != "goes on after a failure":
			c.failed = err
		default:
			c.synced = end
			return err
		}
		if c.bug == "wakes one" {
			c.durable.Signal()
		} else {
			c.durable.Broadcast()
		}
	}
	return c.failed
}

// TestEveryScheduleOfGroupCommit runs three committers, of whose syncs any may fail, under every schedule with at most two
// preemptions, and after every step demands that a power cut keeps what was acknowledged.
func TestEveryScheduleOfGroupCommit(t *testing.T) {
	for _, c := range []struct {
		bug   string
		right bool
	}{
		{"none", true}, {"no sync", false}, {"covers what came later", false}, {"goes on after a failure", false}, {"wakes one", false},
	} {
		var mu sync.Mutex // for what the judge knows; held across no call of the Env
		var acked []byte
		var lost error
		program := func(w *World) {
			acked, lost = nil, nil
			w.FS().SetHooks(simfs.Hooks{
				Fault: func(call simfs.Call) *simfs.Fault {
					if call.Op == simfs.OpSync && w.Choose(2) == 1 {
						return &simfs.Fault{Err: simfs.EIO, Sync: simfs.CleanKept}
					}
					return nil
				},
				Watch: func(simfs.Event) {
					log, err := w.FS().Crash(simfs.Choice{Gen: simfs.DropAll}).Peek("log", 0, 100)
					mu.Lock()
					defer mu.Unlock()
					for _, b := range acked {
						if !bytes.Contains(log, []byte{b}) {
							lost = fmt.Errorf("%q was acknowledged, the disk holds %q, %v", acked, log, err)
						}
					}
				},
			})
			g, err := newCommitter(w.Env(), c.bug)
			if err != nil {
				w.Fail(err)
			}
			client := func(b byte) func() {
				return func() {
					if g.commit(b) == nil {
						mu.Lock()
						acked = append(acked, b)
						mu.Unlock()
						if err := w.Env().FS.SyncDir("/"); err != nil { // any call: the judge looks
							w.Fail(err)
						}
					}
				}
			}
			w.Parallel("client", client('a'), client('b'), client('c'))
		}
		judge := func(r Result) error {
			mu.Lock()
			defer mu.Unlock()
			return errors.Join(r.Err, lost)
		}
		preemptions := 2
		if testing.Short() {
			preemptions = 1
		}
		e := Explore(Options{}, Bounds{Preemptions: preemptions, Runs: 200_000}, program, judge)
		if right := e.Err == nil && e.Complete; right != c.right {
			t.Errorf("%s: right %v in %d runs, complete %v: %v", c.bug, right, e.Runs, e.Complete, e.Err)
		}
		t.Logf("%s: %d runs, complete %v", c.bug, e.Runs, e.Complete)
	}
}
