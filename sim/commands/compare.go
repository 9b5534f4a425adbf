package commands

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim/model"
	"github.com/multiforadb/multiforadb/simfs"
)

// Configuration is a set of sizes under which an engine must do what it does under any other.
type Configuration struct {
	Name    string
	Storage storage.Options
}

// Configurations are those that Compare is meant for.
func Configurations() []Configuration {
	tiny := page.Geometry{RegionPages: 1024, Inline: 2, PerPage: 8}
	return []Configuration{
		{"as shipped", storage.Options{}},
		{"fan-out 4", storage.Options{Tree: btree.Config{MaxEntries: 4}}},
		{"fan-out 4, tiny checkpoints", storage.Options{Tree: btree.Config{MaxEntries: 4}, CheckpointBytes: 4000, CheckpointEdits: 30, CheckpointPages: 40, SegmentSize: 64 << 10}},
		{"tiny segments", storage.Options{SegmentSize: 32 << 10, CheckpointBytes: 20_000}},
		{"small blocks", storage.Options{BlockSize: 4096, SegmentSize: 64 << 10}},
		{"large blocks", storage.Options{BlockSize: 128 << 10, SegmentSize: 1 << 20}},
		{"tiny regions", storage.Options{Geometry: tiny, Reserve: 16}},
		{"tiny regions, eager cleaning", storage.Options{Geometry: tiny, Reserve: 16, CleanSlack: 4096, CheckpointBytes: 10_000, CheckpointEdits: 100}},
		{"a checkpoint after each few edits", storage.Options{CheckpointEdits: 5, CheckpointPages: 10, CheckpointBytes: 1000, SegmentSize: 32 << 10}},
		{"nothing in the background", storage.Options{Manual: true}},
	}
}

// Compare does one client's operations, drawn from a seed, under a configuration; the files are e's, in dir. In between the database is closed and
// opened again. It answers with the replies, and last with what is there at the end, for comparison with those of other configurations;
// an error is a reply that the model does not give, or damage.
func Compare(e *env.Env, dir string, c Configuration, seed uint64, operations int) (replies []string, err error) {
	d := newDrawer(rand.New(rand.NewPCG(seed, 55)), mood{ddl: 6, large: seed%4 == 0})
	h := model.NewHistory(nil)
	o := engine.Options{Env: e, TTLSweep: -1, Storage: c.Storage}
	if o.Storage.MapReserve == 0 {
		o.Storage.MapReserve = 1 << 30
	}
	db, err := engine.Open(dir, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for k, s := range d.steps("alone", operations) {
		if s.op == nil {
			continue
		}
		if k%40 == 39 {
			if err := db.Close(); err != nil {
				return replies, err
			}
			if db, err = engine.Open(dir, o); err != nil {
				return replies, err
			}
		}
		a := asker{db: db, forgives: never}
		out, err := a.follow(h, s)
		if err != nil {
			return replies, fmt.Errorf("operation %d: %w", k, err)
		}
		replies = append(replies, fmt.Sprintf("%v: %s", s.op, out))
	}
	a := asker{db: db, forgives: never}
	state, err := a.observe()
	if err != nil {
		return replies, err
	}
	if err := h.Cut().Judge(state); err != nil {
		return replies, err
	}
	return append(replies, state.Text()), sound(db)
}

// Agree runs a seed under all configurations on simulated files. It gives the replies, or the first difference.
func Agree(seed uint64, operations int) (first []string, err error) {
	for i, c := range Configurations() {
		disk := simfs.New(simfs.Options{})
		replies, err := Compare(disk.Env(seed), "/db", c, seed, operations)
		disk.Discard()
		if err == nil && i > 0 {
			err = differ(first, replies)
		}
		if err != nil {
			return nil, fmt.Errorf("seed %d, %s: %w", seed, c.Name, err)
		}
		if i == 0 {
			first = replies
		}
	}
	return first, nil
}

// differ tells where two lists of replies differ.
func differ(a, b []string) error {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Errorf("reply %d: %s\ninstead of %s", i, b[i], a[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Errorf("%d replies instead of %d", len(b), len(a))
	}
	return nil
}
