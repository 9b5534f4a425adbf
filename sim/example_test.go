package sim_test

import (
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/sim"
)

// Two clients write under a schedule that the seed decides; the power fails at a step that the seed decides; the next
// process finds what was acknowledged.
func Example() {
	lost := 0
	for seed := range uint64(200) {
		var acked [2]int64 // each client has its own
		writer := func(w *sim.World, client int) {
			f, err := w.Env().FS.Open(fmt.Sprint("file", client), env.OpenCreate)
			if err != nil {
				w.Fail(err)
			}
			for i := range int64(5) {
				if _, err := f.WriteAt([]byte("x"), i); err != nil {
					w.Fail(err)
				}
				if err := f.Datasync(); err != nil {
					w.Fail(err)
				}
				if err := w.Env().FS.SyncDir("/"); err != nil {
					w.Fail(err)
				}
				acked[client] = i + 1
			}
		}
		r := sim.Run(sim.Options{Seed: seed, Policy: sim.PolicyOf(seed), StopAt: 1 + int(seed)}, func(w *sim.World) {
			w.Parallel("client", func() { writer(w, 0) }, func() { writer(w, 1) })
		})
		if r.Err != nil {
			panic(r.Err)
		}
		for _, choice := range r.FS.Choices(seed, 10) {
			after := sim.Run(sim.Options{Seed: seed, FS: r.FS.Crash(choice)}, func(w *sim.World) {
				for client, n := range acked {
					info, _ := w.Env().FS.Stat(fmt.Sprint("file", client))
					if info.Size < n {
						lost++
					}
				}
			})
			if after.Err != nil {
				panic(after.Err)
			}
			after.FS.Discard()
		}
	}
	fmt.Println("lost:", lost)
	// Output: lost: 0
}
