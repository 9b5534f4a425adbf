package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// Every call fails in turn, in every way that it can. Before the first sync of what was written the log goes on as if nothing
// had been asked; after that it refuses. Either way a new start finds all that was acknowledged.
func TestEveryCallFailsInTurn(t *testing.T) {
	faults := []struct {
		name  string
		fault simfs.Fault
		ops   []simfs.Op
	}{
		{"error", simfs.Fault{Err: simfs.EIO}, nil},
		{"short write", simfs.Fault{Err: simfs.EIO, Short: 5000}, []simfs.Op{simfs.OpWrite}},
		{"no space", simfs.Fault{Err: simfs.ENOSPC}, []simfs.Op{simfs.OpWrite, simfs.OpAllocate, simfs.OpCreate, simfs.OpRename}},
		{"sync, pages clean and kept", simfs.Fault{Err: simfs.EIO, Sync: simfs.CleanKept, Written: 0.5, Seed: 1}, []simfs.Op{simfs.OpSync}},
		{"sync, pages clean and reverted", simfs.Fault{Err: simfs.EIO, Sync: simfs.CleanReverted, Written: 0.5, Seed: 2}, []simfs.Op{simfs.OpSync}},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			clean, final := 0, 0
			for n := 1; ; n++ {
				d := simfs.New(simfs.Options{})
				must(t, d.Mkdir(dir))
				inject := simfs.FailNth(n, f.fault, f.ops...)
				hit := ""
				d.SetHooks(simfs.Hooks{Fault: func(c simfs.Call) *simfs.Fault {
					g := inject(c)
					if g != nil {
						hit = c.String()
					}
					return g
				}})
				r := &rig{env: d.Env(1), o: tiny}
				err := r.liveWithFault(rand.New(rand.NewPCG(3, 3)))
				switch {
				case err != nil:
					t.Fatalf("call %d (%s): %v", n, hit, err)
				case hit == "":
					t.Logf("%d calls; %d harmless, %d final", n-1, clean, final)
					if final == 0 && f.name != "no space" || clean == 0 && f.ops == nil {
						t.Error("the test does not reach what it is for")
					}
					return
				case r.log != nil && r.log.Err() == nil:
					clean++
				default:
					final++
				}
				d.SetHooks(simfs.Hooks{})
				images := append(d.Choices(uint64(n), 2), simfs.Choice{Gen: simfs.Killed})
				for i, c := range images {
					if err := r.judge(d.Crash(c), uint64(n*10+i), 1-min(i, 1)); err != nil {
						t.Fatalf("call %d (%s) failed, then %v: %v", n, hit, c, err)
					}
				}
				// After a failed sync the process dies, starts again on what the cache shows, and only then the power fails.
				k := d.Kill()
				got, err := reopen(k.Env(9), tiny, r.metas)
				if err == nil {
					err = r.check(got)
				}
				if err != nil {
					t.Fatalf("call %d (%s) failed, then a kill: %v", n, hit, err)
				}
				again, err := reopen(k.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(9), tiny, r.metas)
				if err == nil {
					err = same(got, again)
				}
				if err != nil {
					t.Fatalf("call %d (%s) failed, then a kill, a start and a power cut: %v", n, hit, err)
				}
			}
		})
	}
}

// liveWithFault lives a short life in which one call fails. It gives what is wrong with how the log took it.
func (r *rig) liveWithFault(rnd *rand.Rand) error {
	var call *fs.PathError
	failed := 0
	for round := range 2 {
		got, err := reopen(r.env, r.o, r.metas)
		if err != nil {
			// Nothing but the fault can be the reason: the next attempt must do.
			if got, err = reopen(r.env, r.o, r.metas); err != nil {
				return fmt.Errorf("second attempt to open: %w", err)
			}
			failed++
		}
		if err := r.check(got); err != nil {
			return err
		}
		r.log = got.log
		for i := range 16 {
			before := r.log.End()
			err := r.step(rnd)
			switch {
			case err == nil && failed > 0 && r.log.Err() != nil:
				return fmt.Errorf("round %d, step %d succeeded on a failed log", round, i)
			case err == nil:
			case r.log.Err() != nil:
				if _, err := r.log.Append([][]byte{AppendDropCollection(nil, 1)}, 0); err == nil {
					return errors.New("a failed log takes a batch")
				}
				if r.log.Sync() == nil || r.log.Mark(99) == nil || r.log.Prepare(1<<20) == nil || r.log.Release(1<<40) == nil {
					return errors.New("a failed log goes on")
				}
				r.log.Close()
				return nil
			case failed > 0:
				return fmt.Errorf("a second failure: %w", err)
			case r.log.End() != before && !errors.Is(err, simfs.EIO) && !errors.Is(err, env.ErrNoSpace):
				return fmt.Errorf("round %d, step %d: %w", round, i, err)
			case errors.As(err, &call) && (call.Op == string(simfs.OpSync) || call.Op == string(simfs.OpSyncDir)):
				return fmt.Errorf("the log goes on after a failed sync: %w", err)
			default:
				failed++
			}
		}
		if round == 0 {
			if err := r.log.Close(); err != nil && failed > 0 {
				return err
			}
		}
	}
	return nil
}

// On a full disk an append fails before it writes anything. With a segment's worth of room kept back, as Prepare advises,
// the program can start again, and what a checkpoint releases can be used.
func TestFullDiskRefusesCleanly(t *testing.T) {
	for seed := range uint64(40) {
		o := Options{SegmentSize: 64 << 10, BlockSize: 8 << 10}
		d := simfs.New(simfs.Options{Capacity: 6*o.SegmentSize + int64(seed)*8192})
		r, err := newRig(d.Env(seed), o)
		must(t, err)
		rnd := rand.New(rand.NewPCG(seed, 4))
		full := 0
		for i := range 300 {
			size := 1 + rnd.IntN(20000)
			end := r.log.End()
			err := r.log.Prepare(Bound(size+3000) + o.SegmentSize)
			if err == nil {
				err = r.append(rnd, size)
				must(t, err)
				must(t, r.sync())
				continue
			}
			if !errors.Is(err, env.ErrNoSpace) || r.log.Err() != nil || r.log.End() != end {
				t.Fatalf("seed %d, batch %d: %v; %v", seed, i, err, r.log.Err())
			}
			full++
			if rnd.IntN(2) == 0 {
				k := d.Kill()
				got, err := reopen(k.Env(seed), o, r.metas)
				if err != nil {
					t.Fatalf("seed %d, batch %d: no start on a full disk: %v", seed, i, err)
				}
				must(t, r.check(got))
				again, err := look(k.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(seed), o, r.metas)
				must(t, err)
				must(t, same(got, again))
				d, r.log, r.env = k, got.log, k.Env(seed+1)
			}
			// Deletes and a checkpoint may use the room kept back.
			must(t, r.append(rnd, 1))
			must(t, r.sync())
			must(t, r.checkpoint())
			must(t, r.checkpoint())
		}
		if full == 0 {
			t.Errorf("seed %d: the disk was never full", seed)
		}
	}
}
