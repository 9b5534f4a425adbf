package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// tiny makes segments of four units, so that a few batches use many.
var tiny = Options{SegmentSize: 16 << 10, BlockSize: 8 << 10}

const dir = "/db"

// batch is what the model knows of one.
type batch struct {
	end     LSN
	records []byte
}

// meta is a checkpoint's: what a meta page would say.
type meta struct {
	gen uint64
	lsn LSN
}

// rig is a log, and the model of what it must hold. It stands for the store: it has two meta pages, and releases the log
// that neither needs.
type rig struct {
	env *env.Env
	o   Options
	log *Log

	submitted []batch // from the older meta's LSN on, and marks not counted
	acked     int     // how many of them are acknowledged
	metas     [2]meta // older, newer; the newer perhaps not proven
	serial    uint64  // of the next batch: no two are alike
}

// opened is what a recovery gives.
type opened struct {
	log     *Log
	chosen  meta
	end     LSN
	batches []batch
}

// reopen does what the store does: it opens the log, chooses the newest proven meta, recovers, replays, accepts.
func reopen(e *env.Env, o Options, metas [2]meta) (r opened, err error) {
	r, err = look(e, o, metas)
	if err != nil {
		return r, err
	}
	if err := r.log.Accept(); err != nil {
		r.log.Close()
		return r, err
	}
	return r, nil
}

// look is reopen without Accept: it changes nothing.
func look(e *env.Env, o Options, metas [2]meta) (r opened, err error) {
	r.log, err = Open(e, dir, o)
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			r.log.Close()
		}
	}()
	proven, _ := r.log.Proven()
	r.chosen = metas[0]
	if metas[1].gen <= proven {
		r.chosen = metas[1]
	}
	if r.chosen.gen > proven {
		return r, fmt.Errorf("the older meta page, of generation %d, is not proven: %d", metas[0].gen, proven)
	}
	if r.end, err = r.log.Recover(r.chosen.lsn, metas[0].lsn); err != nil {
		return r, err
	}
	r.batches, err = replay(r.log, r.chosen.lsn)
	return r, err
}

func replay(l *Log, from LSN) (batches []batch, err error) {
	var b batch
	err = l.Replay(from, func(end LSN, last bool, records []byte) error {
		d := NewDecoder(records)
		for d.Next() {
		}
		if d.Err() != nil {
			return d.Err()
		}
		b.end = end
		b.records = append(b.records, records...)
		if last {
			batches = append(batches, b)
			b = batch{}
		}
		return nil
	})
	if err == nil && b.records != nil {
		err = fmt.Errorf("the batch that ends at LSN %d has no last part", b.end)
	}
	return batches, err
}

func newRig(e *env.Env, o Options) (*rig, error) {
	r := &rig{env: e, o: o}
	if err := e.FS.Mkdir(dir); err != nil {
		return nil, err
	}
	op, err := reopen(e, o, r.metas)
	r.log = op.log
	return r, err
}

// records draws whole records of about size bytes: every second one compresses well. Each holds its serial.
func (r *rig) records(rnd *rand.Rand, size int) []byte {
	var buf []byte
	for {
		r.serial++
		doc := binary.LittleEndian.AppendUint64(nil, r.serial)
		n := min(rnd.IntN(3000), max(size-len(buf), 0))
		if rnd.IntN(2) == 0 {
			doc = append(doc, bytes.Repeat([]byte("abcdefgh"), n/8)...)
		} else {
			for range n {
				doc = append(doc, byte(rnd.Uint32()))
			}
		}
		if buf = AppendRecordPut(buf, 1, r.serial, doc); len(buf) >= size {
			return buf
		}
	}
}

// append submits a batch, cut into pieces anywhere.
func (r *rig) append(rnd *rand.Rand, size int) error {
	records := r.records(rnd, size)
	var pieces [][]byte
	for rest := records; len(rest) > 0; {
		n := 1 + rnd.IntN(len(rest))
		pieces = append(pieces, rest[:n])
		rest = rest[n:]
	}
	// It may turn up after a crash from the first byte written on, when its end is not known yet.
	r.submitted = append(r.submitted, batch{records: records})
	end, err := r.log.Append(pieces, r.metas[1].gen)
	if err != nil {
		if r.log.Err() == nil {
			r.submitted = r.submitted[:len(r.submitted)-1]
		}
		return err
	}
	r.submitted[len(r.submitted)-1].end = end
	return nil
}

func (r *rig) sync() error {
	n := len(r.submitted)
	if err := r.log.Sync(); err != nil {
		return err
	}
	r.acked = n
	return nil
}

// checkpoint publishes a meta page of the newest durable state, says so in the log, and releases what is not needed any more.
func (r *rig) checkpoint() error {
	lsn := r.metas[1].lsn
	if r.acked > 0 {
		lsn = max(lsn, r.submitted[r.acked-1].end)
	}
	r.metas = [2]meta{r.metas[1], {gen: r.metas[1].gen + 1, lsn: lsn}}
	if err := r.log.Mark(r.metas[1].gen); err != nil {
		return err
	}
	n := 0
	for n < r.acked && r.submitted[n].end <= r.metas[0].lsn {
		n++
	}
	r.submitted, r.acked = r.submitted[n:], r.acked-n
	return r.log.Release(r.metas[0].lsn)
}

// step does one random thing, as a store might.
func (r *rig) step(rnd *rand.Rand) error {
	switch rnd.IntN(10) {
	case 0:
		return r.checkpoint()
	case 1:
		return r.log.Prepare(int64(rnd.IntN(40 << 10)))
	case 2:
		return r.log.Mark(r.metas[1].gen)
	}
	size := []int{1, 1, 1, 3000, 4024, 9000, 30000}[rnd.IntN(7)]
	if err := r.append(rnd, size); err != nil || rnd.IntN(5) == 0 {
		return err // the next sync is for two batches
	}
	return r.sync()
}

// check compares what a recovery gave with the model: acknowledged ⊆ recovered ⊆ submitted, and a prefix.
func (r *rig) check(got opened) error {
	i := 0
	for i < len(r.submitted) && r.submitted[i].end != 0 && r.submitted[i].end <= got.chosen.lsn {
		i++
	}
	want := r.submitted[i:]
	acked := r.acked - i
	if len(got.batches) < acked {
		return fmt.Errorf("%d batches recovered, of %d acknowledged", len(got.batches), acked)
	}
	if len(got.batches) > len(want) {
		return fmt.Errorf("%d batches recovered, of %d submitted", len(got.batches), len(want))
	}
	for k, b := range got.batches {
		w := want[k]
		if !bytes.Equal(b.records, w.records) || w.end != 0 && b.end != w.end {
			return fmt.Errorf("batch %d of %d, which ends at LSN %d: not the one submitted, which ends at %d", k, len(want), b.end, w.end)
		}
		if b.end > got.end {
			return fmt.Errorf("batch %d ends at LSN %d, after the log, which ends at %d", k, b.end, got.end)
		}
	}
	return nil
}

// same compares two recoveries.
func same(a, b opened) error {
	eq := func(x, y batch) bool { return x.end == y.end && bytes.Equal(x.records, y.records) }
	if !slices.EqualFunc(a.batches, b.batches, eq) || a.end != b.end || a.chosen != b.chosen {
		return fmt.Errorf("one recovery found %d batches up to LSN %d from %v, the next %d up to %d from %v",
			len(a.batches), a.end, a.chosen, len(b.batches), b.end, b.chosen)
	}
	return nil
}

// life goes on after a recovery: what is appended then is there after a power cut that keeps only what was synced.
func (r *rig) life(d *simfs.FS, got opened, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 2))
	next := &rig{env: r.env, o: r.o, log: got.log, metas: [2]meta{r.metas[0], got.chosen}, serial: r.serial + 1<<32}
	if got.chosen == r.metas[0] {
		// The newer one is not proven. Its slot is written next, with a higher generation.
		next.metas = [2]meta{r.metas[0], {gen: r.metas[1].gen + 1, lsn: got.chosen.lsn}}
	}
	next.submitted = slices.Clone(got.batches)
	next.acked = len(got.batches)
	for i := range 4 {
		if err := next.append(rnd, 2000*i); err != nil {
			return err
		}
		if err := next.sync(); err != nil {
			return err
		}
	}
	if err := next.checkpoint(); err != nil {
		return err
	}
	if err := next.append(rnd, 10000); err != nil {
		return err
	}
	if err := next.sync(); err != nil {
		return err
	}
	got.log.Close()
	again, err := reopen(d.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(seed), r.o, next.metas)
	if err != nil {
		return err
	}
	defer again.log.Close()
	if again.chosen != next.metas[1] {
		return fmt.Errorf("life: meta %v chosen, %v was proven", again.chosen, next.metas[1])
	}
	return next.check(again)
}
