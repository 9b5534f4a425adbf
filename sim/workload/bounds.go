package workload

import (
	"errors"
	"fmt"
	"strings"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/simfs"
)

// bounds are what the counters may stand at: each between what was acknowledged and what was submitted.
type bounds struct {
	o           storage.Options
	least, most [counters]uint64
}

// Known is what a power cut may leave now.
func (u *counting) Known() Known {
	b := &bounds{o: u.o}
	b.o.Manual = true
	b.least, b.most = u.known.bounds()
	return b
}

// opened is a database that was recovered, and where its counters stand.
type opened struct {
	*bounds
	s *storage.Store
	n [counters]uint64
}

func (b *bounds) Open(e *env.Env) (Opened, error) {
	s, err := storage.Open(e, Dir, b.o)
	if err != nil {
		return nil, fmt.Errorf("does not open: %w", err)
	}
	if rep := s.Check(); len(rep.Faults) > 0 {
		return nil, fmt.Errorf("check: %q", rep.Faults)
	}
	n, err := b.counts(s)
	return &opened{b, s, n}, err
}

// counts reads the counters, which must lie within the bounds.
func (b *bounds) counts(s *storage.Store) (n [counters]uint64, err error) {
	sn := s.Snapshot()
	defer sn.Release()
	for i := range counters {
		if sn.Collection(coll(i)) == nil {
			if b.most[i] > 0 {
				return n, fmt.Errorf("counter %d is gone", i)
			}
			continue
		}
		if n[i], err = look(sn, i); err != nil {
			return n, err
		}
		if n[i] < b.least[i] || n[i] > b.most[i] {
			return n, fmt.Errorf("counter %d: recovered at %d; %d was acknowledged, %d submitted", i, n[i], b.least[i], b.most[i])
		}
	}
	return n, nil
}

// Damaged opens a damaged image of a database that was closed with the counters at most.
func (b *bounds) Damaged(e *env.Env) error {
	s, err := storage.Open(e, Dir, b.o)
	if err == nil {
		if _, err = (&bounds{b.o, b.most, b.most}).counts(s); err == nil {
			return s.Close()
		}
	}
	return Told(err)
}

// Told is nil if err says that something is damaged.
func Told(err error) error {
	if errors.Is(err, storage.ErrCorrupt) || strings.Contains(err.Error(), "format version") {
		return nil
	}
	return fmt.Errorf("a wrong answer: %w", err)
}

// Known tells that no more than what this recovery has seen can come; and no less, if it was durable.
func (d *opened) Known(durable bool) Known {
	if durable {
		return &bounds{d.o, d.n, d.n}
	}
	return &bounds{d.o, d.least, d.n}
}

func (d *opened) Close() error { return d.s.Close() }

func (d *opened) LiveOn(image *simfs.FS) error {
	if d.most == [counters]uint64{} {
		return d.s.Close()
	}
	n := d.n
	for k := range 20 {
		i := k % counters
		got, err := increment(d.s, i, 100*k, new(known))
		if err != nil {
			return fmt.Errorf("write after recovery: %w", err)
		}
		n[i] = got
		if k == 10 {
			if err := d.s.Checkpoint(); err != nil {
				return fmt.Errorf("checkpoint after recovery: %w", err)
			}
		}
	}
	dropped := image.Crash(simfs.Choice{Gen: simfs.DropAll})
	defer dropped.Discard()
	again, err := (&bounds{d.o, n, n}).Open(dropped.Env(2))
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	return errors.Join(again.Close(), d.s.Close())
}
