package wal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// must has a test end at an error that it does not expect.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start opens a log and appends n batches of 100 bytes, synced one by one.
func start(t testing.TB, d *simfs.FS, o Options, n int) (*rig, *rand.Rand) {
	t.Helper()
	r, err := newRig(d.Env(1), o)
	must(t, err)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range n {
		must(t, r.append(rnd, 100))
		must(t, r.sync())
	}
	return r, rnd
}

// realDir is an environment whose /db is a directory of the test's on the real disk.
type realDir struct {
	env.FS
	at string
}

func (d realDir) Open(p string, f env.OpenFlag) (env.File, error) { return d.FS.Open(d.at+p, f) }
func (d realDir) Rename(a, b string) error                        { return d.FS.Rename(d.at+a, d.at+b) }
func (d realDir) Remove(p string) error                           { return d.FS.Remove(d.at + p) }
func (d realDir) List(p string) ([]string, error)                 { return d.FS.List(d.at + p) }
func (d realDir) Mkdir(p string) error                            { return d.FS.Mkdir(d.at + p) }
func (d realDir) SyncDir(p string) error                          { return d.FS.SyncDir(d.at + p) }

func realEnv(t testing.TB) *env.Env {
	e := *env.Real()
	e.FS = realDir{FS: e.FS, at: t.TempDir()}
	return &e
}

// The same random life on the real file system and on the simulated one: every close and open finds what was appended.
func TestLogComesBackAfterClose(t *testing.T) {
	for _, c := range []struct {
		name string
		env  *env.Env
	}{{"real", realEnv(t)}, {"simulated", simfs.New(simfs.Options{}).Env(1)}} {
		t.Run(c.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(7, 7))
			r, err := newRig(c.env, tiny)
			must(t, err)
			for range 6 {
				for range 30 {
					must(t, r.step(rnd))
				}
				must(t, r.log.Mark(r.metas[1].gen))
				want := r.log.End()
				must(t, r.log.Close())
				got, err := reopen(c.env, tiny, r.metas)
				must(t, err)
				must(t, r.check(got))
				if got.end != want || len(got.batches) == 0 && r.acked > 0 && r.submitted[r.acked-1].end > r.metas[1].lsn {
					t.Fatalf("the log ended at LSN %d and now at %d", want, got.end)
				}
				again, err := replay(got.log, got.chosen.lsn)
				must(t, err)
				got.batches = again
				must(t, r.check(got))
				r.log = got.log
			}
			must(t, r.log.Close())
		})
	}
}

func TestOpenChangesNothing(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, _ := start(t, d, tiny, 3)
	must(t, r.log.Close())
	d.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) { t.Errorf("%v", e.Call) }})
	got, err := look(r.env, tiny, r.metas)
	must(t, err)
	must(t, r.check(got))
	must(t, got.log.Close())
}

func TestLargeBatchSpansSegments(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, tiny, 2)
	must(t, r.append(rnd, 200_000))
	must(t, r.sync())
	must(t, r.append(rnd, 10))
	must(t, r.sync())
	if n := len(r.log.live); n < 5 {
		t.Errorf("only %d segments", n)
	}
	// Its end has not been called durable by a later block: all of it is copied by the next recovery.
	must(t, r.log.Close())
	for range 3 {
		got, err := reopen(d.Crash(simfs.Choice{Gen: simfs.DropAll}).Env(2), tiny, r.metas)
		must(t, err)
		must(t, r.check(got))
		must(t, got.log.Close())
	}
}

func TestReplayGivesHugeBatchInParts(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, err := newRig(d.Env(1), Options{BlockSize: 64 << 10})
	must(t, err)
	var records []byte
	for i := range 2000 {
		records = AppendRecordPut(records, 1, uint64(i), make([]byte, 1000+i))
	}
	// A record larger than many blocks comes whole.
	records = AppendRecordPut(records, 1, 9999, bytes.Repeat([]byte("x"), 1<<20))
	_, err = r.log.Append([][]byte{records}, 0)
	must(t, err)
	must(t, r.log.Sync())
	must(t, r.log.Close())
	got, err := look(d.Env(2), Options{}, r.metas)
	must(t, err)
	calls, largest := 0, 0
	must(t, got.log.Replay(0, func(_ LSN, _ bool, part []byte) error {
		calls++
		largest = max(largest, len(part))
		return nil
	}))
	if calls < 10 || largest > 1<<20+128<<10 {
		t.Errorf("%d parts, the largest of %d bytes", calls, largest)
	}
	if len(got.batches) != 1 || !bytes.Equal(got.batches[0].records, records) {
		t.Error("the records differ")
	}
	must(t, got.log.Close())
}

func TestMarkSaysOnce(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, tiny, 1)
	end := r.log.End()
	must(t, r.log.Mark(0))
	if r.log.End() != end+unit {
		t.Fatalf("the log ends at %d, want one block after %d", r.log.End(), end)
	}
	must(t, r.log.Mark(0))
	if r.log.End() != end+unit {
		t.Error("a second mark says nothing new")
	}
	must(t, r.log.Mark(3))
	if p, ok := r.log.Proven(); r.log.End() != end+2*unit || p != 3 || !ok {
		t.Errorf("end %d, proven %d", r.log.End(), p)
	}
	must(t, r.append(rnd, 1))
	must(t, r.log.Mark(3)) // syncs the batch first
	if r.log.Durable() != r.log.End() || r.log.Stats().Marks != 3 {
		t.Errorf("durable %d, end %d, %+v", r.log.Durable(), r.log.End(), r.log.Stats())
	}
}

// Proven is what a checkpoint trusts before it overwrites the older meta page: it must not run ahead of the sync.
func TestProvenWaitsForSync(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, _ := start(t, d, tiny, 1)
	_, err := r.log.Append([][]byte{AppendDropCollection(nil, 1)}, 5)
	must(t, err)
	if p, ok := r.log.Proven(); ok {
		t.Errorf("generation %d is proven before the block that says so is durable", p)
	}
	must(t, r.log.Sync())
	if p, _ := r.log.Proven(); p != 5 {
		t.Errorf("proven: %d", p)
	}
}

// A directory of segments stays small: what is released is used again, and the directory holds what Size says.
func TestSegmentsAreUsedAgain(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, rnd := start(t, d, tiny, 0)
	for i := range 200 {
		must(t, r.append(rnd, 5000))
		must(t, r.sync())
		must(t, r.log.Prepare(tiny.SegmentSize))
		if i%3 == 2 {
			must(t, r.checkpoint())
		}
	}
	s := r.log.Stats()
	if s.Made > 20 || s.Recycled < 50 {
		t.Errorf("%+v", s)
	}
	var total int64
	names, err := d.List(dir)
	must(t, err)
	for _, n := range names {
		info, err := d.Stat(dir + "/" + n)
		must(t, err)
		total += info.Size
	}
	if total != r.log.Size() || total > 20*tiny.SegmentSize {
		t.Errorf("files have %d bytes, Size says %d", total, r.log.Size())
	}
	must(t, r.log.Close())
	got, err := reopen(d.Env(3), tiny, r.metas)
	must(t, err)
	must(t, r.check(got))
}

func TestBoundHolds(t *testing.T) {
	for _, o := range []Options{tiny, {SegmentSize: 64 << 10, BlockSize: 4096}, {SegmentSize: 8192, BlockSize: 32 << 10}} {
		d := simfs.New(simfs.Options{})
		r, rnd := start(t, d, o, 0)
		for range 300 {
			size := 1 + rnd.IntN(20000)
			records := r.records(rnd, size)
			before := r.log.End()
			must(t, r.log.Prepare(Bound(len(records))+4*unit))
			if !r.log.Fits(len(records)) {
				t.Fatalf("%d bytes do not fit after Prepare", len(records))
			}
			made := r.log.Stats().Made + r.log.Stats().Recycled
			end, err := r.log.Append([][]byte{records}, 0)
			must(t, err)
			if int64(end-before) > Bound(len(records)) {
				t.Fatalf("%d bytes of records take %d, more than %d", len(records), end-before, Bound(len(records)))
			}
			if s := r.log.Stats(); s.Made+s.Recycled != made {
				t.Fatalf("a segment was made for %d bytes that fit", len(records))
			}
			must(t, r.log.Sync())
		}
		must(t, r.log.Close())
	}
}

// The background makes and releases segments while batches are written.
func TestPrepareAndReleaseRunBesideAppend(t *testing.T) {
	r, err := newRig(realEnv(t), tiny)
	must(t, err)
	rnd := rand.New(rand.NewPCG(5, 5))
	var background sync.WaitGroup
	stop := make(chan bool)
	background.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := r.log.Prepare(3 * tiny.SegmentSize); err != nil {
					t.Error(err)
				}
				if err := r.log.Release(r.log.Durable() &^ (1<<16 - 1)); err != nil {
					t.Error(err)
				}
				r.log.Fits(100)
				r.log.Size()
				r.log.Proven()
				r.log.Stats()
			}
		}
	})
	for range 100 {
		must(t, r.append(rnd, rnd.IntN(5000)))
		must(t, r.sync())
	}
	close(stop)
	background.Wait()
	end := r.log.End()
	must(t, r.log.Close())
	from := r.submitted[95].end
	l, err := Open(r.env, dir, tiny)
	must(t, err)
	got, err := l.Recover(from, from)
	must(t, err)
	batches, err := replay(l, from)
	must(t, err)
	if got != end || len(batches) != 4 {
		t.Errorf("the log ends at %d, not %d; %d batches", got, end, len(batches))
	}
}

func TestUnknownVersionIsNoDamage(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, _ := start(t, d, tiny, 1)
	must(t, r.log.Close())
	f, err := d.Open(dir+"/wal-1", env.OpenExisting)
	must(t, err)
	h := make([]byte, unit)
	_, err = f.ReadAt(h, 0)
	must(t, err)
	h[8] = 2
	reseal(h)
	_, err = f.WriteAt(h, 0)
	must(t, err)
	if _, err := Open(r.env, dir, tiny); !errors.Is(err, errVersion) {
		t.Errorf("%v", err)
	}
}

func TestMisuseIsOurBug(t *testing.T) {
	panics := func(what string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		f()
	}
	d := simfs.New(simfs.Options{})
	must(t, d.Mkdir(dir))
	l, err := Open(d.Env(1), dir, tiny)
	must(t, err)
	panics("accept before recover", func() { l.Accept() })
	l, err = Open(d.Env(1), dir, tiny)
	must(t, err)
	panics("append before accept", func() { l.Append(nil, 0) })
	_, err = l.Recover(0, 0)
	must(t, err)
	panics("oldest after the checkpoint", func() { l.Recover(0, 1) })
	panics("segment size", func() { Open(d.Env(1), dir, Options{SegmentSize: 5000}) })
}

func TestClosedLogRefuses(t *testing.T) {
	d := simfs.New(simfs.Options{})
	r, _ := start(t, d, tiny, 1)
	must(t, r.log.Close())
	_, err := r.log.Append(nil, 0)
	for _, err := range []error{err, r.log.Sync(), r.log.Mark(1), r.log.Prepare(1), r.log.Release(0)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}
