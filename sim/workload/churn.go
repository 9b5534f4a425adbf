package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/sim"
)

// life is what a churner does to one collection, from its making to its drop: its tree grows high and shrinks again, with keys and
// values that need overflow pages, and its records are replaced until the cleaner has work. Its states are not the counters'
// business, but all that it leaves is looked at by the checks of every image.
type life struct {
	records []int  // their sizes
	again   int    // how often each is replaced
	keys    []key  // put in this order
	deleted []int  // of keys, in this order
	long    []byte // what long keys begin with
	drop    bool   // the tree, before the collection
}

type key struct {
	n    int
	long bool
	size int // of the value
}

const churnTree = 7

// drawLife draws one of a few kinds.
func drawLife(r *rand.Rand) *life {
	l := &life{again: r.IntN(4), drop: r.IntN(2) == 0, long: bytes.Repeat([]byte{'k'}, 1000)}
	for range 1 + r.IntN(3) {
		l.records = append(l.records, r.IntN(9000))
	}
	if r.IntN(2) == 0 {
		return l
	}
	kind := r.IntN(4)
	for n := range 10 + r.IntN(100) {
		k := key{n: n, size: r.IntN(40)}
		switch kind {
		case 1:
			k.size = r.IntN(700)
		case 2:
			k.long = r.IntN(2) == 0
		case 3:
			if r.IntN(6) == 0 {
				k.size = r.IntN(9000)
			}
		}
		l.keys = append(l.keys, k)
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(l.keys), func(i, j int) { l.keys[i], l.keys[j] = l.keys[j], l.keys[i] })
	}
	l.deleted = r.Perm(len(l.keys))[:r.IntN(len(l.keys)+1)]
	if r.IntN(2) == 0 {
		slices.Sort(l.deleted)
	}
	return l
}

func (l *life) String() string {
	return fmt.Sprintf("make a collection with records of %v bytes, replace each %d times, put %d keys, delete %d, and drop it",
		l.records, l.again, len(l.keys), len(l.deleted))
}

// bytes are the key's in the tree.
func (l *life) bytes(k key) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(k.n))
	if k.long {
		b = append(slices.Clone(l.long), b...)
	}
	return b
}

// live lives it.
func (l *life) live(s *storage.Store) error {
	id, err := l.make(s)
	if err != nil {
		return err
	}
	for range l.again {
		if err := wrote(s.Write(func(w *storage.Writer) error {
			c := w.Lock(id)
			for i, n := range l.records {
				if err := c.Replace(storage.RecordID(i+1), make([]byte, n)); err != nil {
					return err
				}
			}
			return nil
		})); err != nil {
			return err
		}
	}
	if err := l.fill(s, id); err != nil {
		return err
	}
	if l.drop {
		if err := wrote(s.WriteFreeing(func(w *storage.Writer) error { return w.Lock(id).DropTree(churnTree) })); err != nil {
			return err
		}
	}
	return wrote(s.WriteFreeing(func(w *storage.Writer) error {
		w.Lock(0)
		return w.Lock(id).Drop()
	}))
}

func (l *life) make(s *storage.Store) (id storage.CollID, err error) {
	err = wrote(s.Write(func(w *storage.Writer) error {
		w.Lock(0)
		c, err := w.Create([]byte("churn"))
		if err != nil {
			return err
		}
		id = c.ID()
		for _, n := range l.records {
			if _, err := c.Insert(make([]byte, n)); err != nil {
				return err
			}
		}
		return c.CreateTree(churnTree)
	}))
	return id, err
}

// fill puts the keys, some to a write, then deletes, and looks at what is left.
func (l *life) fill(s *storage.Store, id storage.CollID) error {
	const perWrite = 40
	want := map[string]int{}
	for some := range slices.Chunk(l.keys, perWrite) {
		err := wrote(s.Write(func(w *storage.Writer) error {
			c := w.Lock(id)
			for _, k := range some {
				if err := c.Put(churnTree, l.bytes(k), make([]byte, k.size)); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
		for _, k := range some {
			want[string(l.bytes(k))] = k.size
		}
	}
	for some := range slices.Chunk(l.deleted, perWrite) {
		err := wrote(s.WriteFreeing(func(w *storage.Writer) error {
			c := w.Lock(id)
			for _, i := range some {
				if found, err := c.Delete(churnTree, l.bytes(l.keys[i])); err != nil || !found {
					return errors.Join(err, l.missing(found, i))
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
		for _, i := range some {
			delete(want, string(l.bytes(l.keys[i])))
		}
	}
	return l.compare(s, id, want)
}

func (l *life) missing(found bool, i int) error {
	if found {
		return nil
	}
	return fmt.Errorf("churn: key %d is not there", l.keys[i].n)
}

// compare looks at the tree in a snapshot.
func (l *life) compare(s *storage.Store, id storage.CollID, want map[string]int) error {
	keys := slices.Sorted(maps.Keys(want))
	sn := s.Snapshot()
	defer sn.Release()
	return sn.Guard(func() error {
		t, ok := sn.Collection(id).Tree(churnTree)
		if !ok {
			return errors.New("churn: the tree is gone")
		}
		it := t.Iter()
		for ok := it.Seek(nil); ok; ok = it.Next() {
			value, err := it.Value(), it.Err()
			if err != nil {
				return err
			}
			if len(keys) == 0 || string(it.Key()) != keys[0] || len(value) != want[keys[0]] {
				return fmt.Errorf("churn: a key of %d bytes with a value of %d, which should not be there", len(it.Key()), len(value))
			}
			keys = keys[1:]
		}
		if len(keys) > 0 {
			return errors.Join(it.Err(), fmt.Errorf("churn: %d keys are not there", len(keys)))
		}
		return it.Err()
	})
}

// wrote waits for a write.
func wrote(c storage.Commit, err error) error { return errors.Join(err, c.Wait()) }

// churn makes and drops collections of its own.
func (u *counting) churn(w *sim.World, s *storage.Store, name string, r *rand.Rand, rounds int) {
	for round := range rounds {
		l := drawLife(r)
		u.Do(name, round, l.String(), func() string { return u.outcome(w, s, l.live(s), "done") })
	}
}
