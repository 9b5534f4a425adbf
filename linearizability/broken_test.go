package linearizability

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/sim"
)

// Databases that break a promise, each made of the good one and a client that cheats.

// headReader sees data before it is durable: it reads what the next write would see.
type headReader struct{ engineClient }

func (c headReader) do(in Input) (Output, error) {
	if in.Kind != Find {
		return c.engineClient.do(in)
	}
	sn := c.db.Store().Snapshot()
	id, ok, err := catalog.Find(sn.Collection(0), namespace)
	sn.Release()
	if err != nil || !ok {
		return Output{}, err
	}
	var out Output
	look := errors.New("nothing is to be written")
	_, err = c.db.Store().Write(func(w *storage.Writer) error {
		docs, err := recordsOf(w.Lock(id))
		if err != nil {
			return err
		}
		out.Seen = 0
		for _, d := range docs {
			if d.ID == in.Doc {
				out.Seen = d.V
			}
		}
		return look
	})
	if !errors.Is(err, look) {
		return out, err
	}
	return out, nil
}

// lostUpdate increments by reading and then writing.
type lostUpdate struct{ engineClient }

func (c lostUpdate) do(in Input) (Output, error) {
	if in.Kind != Inc {
		return c.engineClient.do(in)
	}
	was, err := c.engineClient.do(Input{Kind: Find, Doc: in.Doc})
	if err != nil {
		return was, err
	}
	return c.engineClient.do(Input{Kind: Set, Doc: in.Doc, Value: was.Seen + in.Value})
}

// earlyReply says that documents are in, and then inserts them.
type earlyReply struct {
	engineClient
	w *sim.World
}

func (c earlyReply) do(in Input) (Output, error) {
	if in.Kind != InsertMany || in.If != 0 {
		return c.engineClient.do(in)
	}
	c.w.Go("late", func() {
		if _, err := c.engineClient.do(in); err != nil {
			c.w.Fail(err)
		}
	})
	return Output{N: in.Value}, nil
}

// manySnapshots scans each document in a snapshot of its own.
type manySnapshots struct{ engineClient }

func (c manySnapshots) do(in Input) (out Output, err error) {
	if in.Kind != Scan {
		return c.engineClient.do(in)
	}
	for doc := range int64(docsMax) {
		one, err := c.engineClient.do(Input{Kind: Find, Doc: doc})
		if err != nil {
			return out, err
		}
		if one.Seen != 0 {
			out.Docs = append(out.Docs, Doc{doc, one.Seen})
		}
	}
	return out, nil
}

// checkThenInsert has no unique index, and looks first.
type checkThenInsert struct{ engineClient }

func (c checkThenInsert) do(in Input) (Output, error) {
	if in.Kind == Claim {
		if is, err := c.engineClient.do(Input{Kind: Owner, Value: in.Value}); err != nil || is.Seen != 0 || len(is.Docs) > 0 {
			return Output{Dup: true}, err
		}
	}
	return c.engineClient.do(in)
}

// staleReader answers every second scan with what the one before it saw.
type staleReader struct {
	engineClient
	kept *sync.Map
}

func (c staleReader) do(in Input) (Output, error) {
	if in.Kind != Scan {
		return c.engineClient.do(in)
	}
	if old, ok := c.kept.LoadAndDelete(in); ok {
		return old.(Output), nil
	}
	out, err := c.engineClient.do(in)
	if err == nil {
		c.kept.Store(in, out)
	}
	return out, err
}

func TestCheckerFindsBrokenDatabases(t *testing.T) {
	unindexed := *workloadOf("claims", 0)
	unindexed.unique = false
	for _, x := range []struct {
		name string
		load *workload
		wrap func(w *sim.World, c engineClient) client
	}{
		{"reader at head", workloadOf("register", 0), func(_ *sim.World, c engineClient) client { return headReader{c} }},
		{"lost update", workloadOf("counter", 0), func(_ *sim.World, c engineClient) client { return lostUpdate{c} }},
		{"early reply", workloadOf("bulk", 0), func(w *sim.World, c engineClient) client { return earlyReply{c, w} }},
		{"many snapshots", workloadOf("board", 0), func(_ *sim.World, c engineClient) client { return manySnapshots{c} }},
		{"check, then insert", &unindexed, func(_ *sim.World, c engineClient) client { return checkThenInsert{c} }},
		{"stale reader", workloadOf("claims", 0), func(_ *sim.World, c engineClient) client { return staleReader{c, new(sync.Map)} }},
	} {
		t.Run(x.name, func(t *testing.T) {
			for seed := uint64(1); ; seed++ {
				if seed > 100 {
					t.Fatal("100 histories, and none of them was found illegal")
				}
				h, err := simulate(seed, x.load, x.wrap)
				if err != nil {
					continue // a late insert meets the end of the world, which is not what is asked here
				}
				err = Check(h, t.TempDir())
				illegal, ok := errors.AsType[*IllegalError](err)
				if !ok && err != nil {
					t.Fatal(err)
				}
				if !ok {
					continue
				}
				if info, err := os.Stat(illegal.Path); err != nil || info.Size() < 10_000 {
					t.Errorf("the drawing: %v, %v", info, err)
				}
				t.Logf("found with seed %d: %v", seed, h)
				return
			}
		})
	}
}
