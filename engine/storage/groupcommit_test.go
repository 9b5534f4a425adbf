package storage_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/judge"
	"github.com/multiforadb/multiforadb/simfs"
)

// TestEveryScheduleOfCommit runs three committers, one of whose syncs may fail, under every schedule of the commit pipeline with
// at most one preemption, and with two at the points that matter most (short runs: one, there). At each acknowledgement the durable log must hold what is visible; in the end a
// power cut must leave everything that was acknowledged, and nothing that was not submitted.
func TestEveryScheduleOfCommit(t *testing.T) {
	o := storage.Options{
		Manual:      true,
		SegmentSize: 32 << 10,
		MapReserve:  1 << 28,
		Geometry:    page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8},
	}
	disk := simfs.New(simfs.Options{})
	s, err := storage.Open(disk.Env(1), "/db", o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Write(func(w *storage.Writer) error {
		w.Lock(0)
		for range 2 {
			c, err := w.Create([]byte("committed to"))
			if err == nil {
				err = c.CreateTree(1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, c.Wait(), s.Close()); err != nil {
		t.Fatal(err)
	}

	const committers = 3
	var mu sync.Mutex // for what the judge knows; held across no call of the Env
	var acked [committers]bool
	program := func(w *sim.World) {
		acked = [committers]bool{}
		s, err := storage.Open(w.Env(), "/db", o)
		if err != nil {
			w.Fail(err)
		}
		j := judge.New(w.FS(), "/db", judge.Options{})
		w.FS().SetHooks(simfs.Hooks{
			Watch: j.Watch,
			Fault: func(call simfs.Call) *simfs.Fault {
				if call.Op == simfs.OpSync && w.Choose(2) == 1 {
					return &simfs.Fault{Err: simfs.EIO, Sync: simfs.CleanKept}
				}
				return nil
			},
		})
		var tasks []func()
		for k := range committers {
			tasks = append(tasks, func() {
				c, err := s.Write(func(wr *storage.Writer) error {
					// Two of them share a collection.
					return wr.Lock(storage.CollID(1+k/2)).Put(1, binary.BigEndian.AppendUint16(nil, uint16(k)), nil)
				})
				if err = errors.Join(err, c.Wait()); err != nil {
					if !errors.Is(err, storage.ErrFailed) {
						w.Fail(err)
					}
					return
				}
				mu.Lock()
				acked[k] = true
				mu.Unlock()
				sn := s.Snapshot()
				j.Visible(uint64(sn.LSN()))
				sn.Release()
			})
		}
		w.Parallel("committer", tasks...)
		if err := j.Err(); err != nil {
			w.Fail(err)
		}
	}
	verify := func(r sim.Result) error {
		if r.Err != nil {
			return r.Err
		}
		r.FS.SetHooks(simfs.Hooks{})
		image := r.FS.Crash(simfs.Choice{Gen: simfs.DropAll})
		defer image.Discard()
		s, err := storage.Open(image.Env(1), "/db", o)
		if err != nil {
			return err
		}
		sn := s.Snapshot()
		for k := range committers {
			tree, _ := sn.Collection(storage.CollID(1 + k/2)).Tree(1)
			_, there, err := tree.Get(binary.BigEndian.AppendUint16(nil, uint16(k)))
			if err != nil || acked[k] && !there {
				return fmt.Errorf("committer %d: acknowledged %v, recovered %v, %v", k, acked[k], there, err)
			}
		}
		sn.Release()
		return s.Close()
	}
	type bound struct {
		preemptions int
		points      []string // the ends of their names
	}
	bounds := []bound{
		{1, []string{"seal", "publish", "fs.sync.inside", " gate", " pipeline"}},
		{2, []string{"seal", "publish", "fs.sync.inside"}},
	}
	if testing.Short() {
		bounds = []bound{{1, []string{"seal", "publish", "fs.sync.inside"}}}
	}
	for _, bound := range bounds {
		e := sim.Explore(sim.Options{FS: disk, Decide: func(point string) bool {
			return slices.ContainsFunc(bound.points, func(end string) bool { return strings.HasSuffix(point, end) })
		}}, sim.Bounds{Preemptions: bound.preemptions, Runs: 20_000}, program, verify)
		if e.Err != nil || !e.Complete {
			t.Fatalf("after %d runs, complete %v: %v", e.Runs, e.Complete, e.Err)
		}
		t.Logf("%d schedules with at most %d preemptions", e.Runs, bound.preemptions)
	}
}
