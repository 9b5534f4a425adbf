package commands

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/sim/model"
	"github.com/multiforadb/multiforadb/sim/workload"
	"github.com/multiforadb/multiforadb/simfs"
)

// known is what a power cut may leave, and how such a database is opened.
type known struct {
	cut  *model.Cut
	opt  engine.Options
	seed uint64 // of what is done to a database that was recovered
}

// opened is a database that was recovered, and what it holds.
type opened struct {
	*known
	asker
	state *model.State
}

func (k *known) open(e *env.Env) (*engine.DB, error) {
	o := k.opt
	o.Env, o.TTLSweep, o.Storage.Manual = e, -1, true
	return engine.Open(workload.Dir, o)
}

// Open opens the database of an image, and judges it.
func (k *known) Open(e *env.Env) (workload.Opened, error) {
	db, err := k.open(e)
	if err != nil {
		return nil, fmt.Errorf("does not open: %w", err)
	}
	o := &opened{known: k, asker: asker{db: db, forgives: never}}
	if err := sound(db); err != nil {
		return nil, err
	}
	if o.state, err = o.observe(); err == nil {
		err = k.cut.Judge(o.state)
	}
	return o, err
}

// never is the disk's fault on a disk without faults.
func never(error) bool { return false }

// sound is nil if the engine finds no fault in its database.
func sound(db *engine.DB) error {
	var faults []error
	for _, f := range db.Store().Check().Faults {
		faults = append(faults, fmt.Errorf("check: %s", f))
	}
	err := db.Check(context.Background(), func(fault error) { faults = append(faults, fmt.Errorf("check: %w", fault)) })
	return errors.Join(append(faults, err)...)
}

// Known is what was recovered, and nothing else: all of an image is durable, but for what only the page cache holds.
func (o *opened) Known(durable bool) workload.Known {
	if !durable {
		return o.known
	}
	return &known{model.NewHistory(o.state).Cut(), o.opt, o.seed}
}

func (o *opened) Close() error { return o.db.Close() }

// LiveOn goes on with operations of another workload.
func (o *opened) LiveOn(image *simfs.FS) error {
	d := newDrawer(rand.New(rand.NewPCG(o.seed, 77)), mood{ddl: 5})
	h := model.NewHistory(o.state)
	for k, s := range d.steps("after", 20) {
		if s.op == nil {
			continue
		}
		if _, err := o.follow(h, s); err != nil {
			return fmt.Errorf("after recovery: %w", err)
		}
		if k == 10 {
			if err := o.db.Store().Checkpoint(); err != nil {
				return fmt.Errorf("checkpoint after recovery: %w", err)
			}
		}
	}
	dropped := image.Crash(simfs.Choice{Gen: simfs.DropAll})
	defer dropped.Discard()
	again, err := (&known{h.Cut(), o.opt, o.seed}).Open(dropped.Env(2))
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	return errors.Join(again.Close(), o.db.Close())
}

// follow does a step with nobody beside it, and compares with the model.
func (a *asker) follow(h *model.History, s step) (model.Outcome, error) {
	c := h.Begin("alone", s.op)
	out, err := a.ask(context.Background(), s.op, s.way)
	if err != nil {
		return out, fmt.Errorf("%v: %w", s.op, err)
	}
	return out, h.End(c, out)
}

// Damaged opens a database whose bytes were damaged after it was closed: each collection is as it was, or tells what is damaged.
func (k *known) Damaged(e *env.Env) error {
	db, err := k.open(e)
	if err != nil {
		return workload.Told(err)
	}
	a := asker{db: db, forgives: never}
	names, err := a.collections()
	if err != nil {
		return workload.Told(err)
	}
	told := false
	var colls []*model.Coll
	for _, name := range names {
		c, err := a.collection(name)
		if err != nil {
			if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				return err
			}
			if err := workload.Told(err); err != nil {
				return err
			}
			told = true
			continue
		}
		colls = append(colls, c)
	}
	state := model.Observed(colls)
	if told {
		return k.cut.JudgeSome(state)
	}
	if err := k.cut.Judge(state); err != nil {
		return err
	}
	return db.Close()
}
