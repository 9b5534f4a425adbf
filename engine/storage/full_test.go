package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/workload"
	"github.com/multiforadb/multiforadb/simfs"
)

// On a full disk the background work once span: a checkpoint that found no room had sealed a batch before, whose account made the
// next checkpoint due. Nothing happens any more until a client does something, or there is room.
func TestFullDiskIsWaitedFor(t *testing.T) {
	for seed := first(); seed < first()+count(6); seed++ {
		r := rand.New(rand.NewPCG(seed, 21))
		disk := simfs.New(simfs.Options{})
		disk.SetCapacity(1<<20 + r.Int64N(1<<20))
		res := sim.Run(sim.Options{Seed: seed, Policy: sim.PolicyOf(seed), FS: disk}, func(w *sim.World) {
			if err := fillAndWait(w, r); err != nil {
				w.Fail(err)
			}
		})
		if res.Err != nil {
			t.Fatalf("seed %d: %v", seed, res.Err)
		}
		disk.Discard()
	}
}

func fillAndWait(w *sim.World, r *rand.Rand) error {
	s, err := storage.Open(w.Env(), "/db", workload.Options(r))
	if err != nil {
		return err
	}
	write := func(f func(*storage.Writer) error) error {
		c, err := s.Write(f)
		return errors.Join(err, c.Wait())
	}
	var id storage.CollID
	err = write(func(w *storage.Writer) error {
		w.Lock(0)
		c, err := w.Create(nil)
		if err == nil {
			id = c.ID()
		}
		return err
	})
	record := make([]byte, 3000)
	for n := 0; err == nil; n++ {
		for i := range record {
			record[i] = byte(r.Uint32())
		}
		err = write(func(w *storage.Writer) error {
			c := w.Lock(id)
			if n%3 == 2 { // something for the cleaner
				return c.Replace(storage.RecordID(1+r.IntN(n/2)), record)
			}
			_, err := c.Insert(record)
			return err
		})
	}
	if !errors.Is(err, storage.ErrDiskFull) {
		return err
	}
	w.Env().Clock.Sleep(time.Minute) // what was asked for is tried
	before := w.Steps()
	w.Env().Clock.Sleep(time.Hour)
	if steps := w.Steps() - before; steps > 1000 {
		return fmt.Errorf("%d steps in an hour on a full disk", steps)
	}
	return s.Close()
}
