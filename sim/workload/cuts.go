package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/simfs"
)

// cuts takes crash images of a run, and judges each: it opens, is sound, and every counter stands between what was
// acknowledged and what was submitted at that moment.
type cuts struct {
	u     *run
	share int // one event in so many is looked at

	mu      sync.Mutex // images are judged beside the world, where nothing waits
	r       *rand.Rand // draws where, and what survives; each cut draws how it is judged by itself
	events  int
	images  int
	damaged int
	err     error // the first failure,
	cause   error // what the image was blamed for,
	failed  Cut   // and which it was
}

// failure is the first failure of an image.
func (c *cuts) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *cuts) watch(e simfs.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events++
	where := fmt.Sprintf("%s %v", e.When, e.Call)
	if only := c.u.edit.Cut; only != nil {
		if only.At == c.events {
			c.take(where, *only)
		}
		return
	}
	if c.r.IntN(c.share) > 0 {
		return
	}
	list := c.u.disk.Choices(c.u.seed+uint64(e.N), 6)
	choice := list[c.r.IntN(len(list))]
	if c.r.IntN(5) == 0 {
		choice = simfs.Choice{Gen: simfs.Killed}
	}
	c.take(where, Cut{At: c.events, Choice: choice, Seed: c.r.Uint64()})
}

// atEnd takes the images of what the program has left.
func (c *cuts) atEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	const where = "at the end"
	switch only := c.u.edit.Cut; {
	case only != nil:
		if only.At == 0 {
			c.take(where, *only)
		}
	case c.u.profile == Damage:
		c.damage(where, 60)
	default:
		for _, choice := range append(c.u.disk.Choices(c.u.seed, 4), simfs.Choice{Gen: simfs.Killed}) {
			c.take(where, Cut{Choice: choice, Seed: c.r.Uint64()})
		}
	}
}

// take judges one image.
func (c *cuts) take(where string, cut Cut) {
	if c.err != nil {
		return
	}
	least, most := c.u.known.bounds()
	image := c.u.disk.Crash(cut.Choice)
	defer image.Discard()
	var err error
	if d := cut.Rot; d == nil {
		one := judging{cuts: c, r: rand.New(rand.NewPCG(cut.Seed, 33))}
		if err = one.judge(image, cut.Choice, least, most, 2); err != nil {
			c.err = fmt.Errorf("power cut %s, choice %v: %w\n%s", where, cut.Choice, err, c.u.disk.Describe(cut.Choice))
		}
	} else if err = d.do(image); err == nil {
		c.images++
		c.damaged++
		if err = c.told(image, most); err != nil {
			c.err = fmt.Errorf("%v: %w", d, err)
		}
	} else {
		c.err = err
	}
	if err != nil {
		c.cause, c.failed = err, cut
	}
	if c.u.told.Cut != nil {
		c.u.told.Cut(c.u.world.Steps(), where, c.u.disk, cut, err)
	}
}

// judging is the judgement of one image, with chances of its own.
type judging struct {
	*cuts
	r *rand.Rand
}

// judge opens an image. Recoveries of the same image may be interrupted in turn, to depth levels.
func (c *judging) judge(image *simfs.FS, choice simfs.Choice, least, most [counters]uint64, depth int) error {
	c.images++
	var inner *simfs.FS
	var innerChoice simfs.Choice
	if depth > 0 && c.r.IntN(3) == 0 {
		at := 1 + c.r.IntN(40)
		image.SetHooks(simfs.Hooks{Watch: func(simfs.Event) {
			if at--; at == 0 {
				list := append(image.Choices(c.r.Uint64(), 6), simfs.Choice{Gen: simfs.Killed})
				innerChoice = list[c.r.IntN(len(list))]
				inner = image.Crash(innerChoice)
			}
		}})
	}
	n, err := c.open(image, least, most)
	if err != nil {
		return err
	}
	if inner == nil {
		return nil
	}
	defer inner.Discard()
	// What the outer recovery has seen may be what only the page cache held; but no more than that can come.
	if err := c.judge(inner, innerChoice, least, n, depth-1); err != nil {
		return fmt.Errorf("recovery interrupted, choice %v: %w", innerChoice, err)
	}
	return nil
}

// open gives the counters of an image.
func (c *judging) open(image *simfs.FS, least, most [counters]uint64) (n [counters]uint64, err error) {
	o := c.u.o
	o.Manual = true
	s, err := storage.Open(image.Env(1), dir, o)
	if err != nil {
		return n, fmt.Errorf("does not open: %w", err)
	}
	image.SetHooks(simfs.Hooks{})
	if rep := s.Check(); len(rep.Faults) > 0 {
		return n, fmt.Errorf("check: %q", rep.Faults)
	}
	if n, err = counts(s, least, most); err != nil {
		return n, err
	}
	if c.r.IntN(4) == 0 && most != [counters]uint64{} {
		return n, liveOn(s, image, o, n)
	}
	return n, s.Close()
}

// counts reads the counters, which must lie within bounds.
func counts(s *storage.Store, least, most [counters]uint64) (n [counters]uint64, err error) {
	sn := s.Snapshot()
	defer sn.Release()
	for i := range counters {
		if sn.Collection(coll(i)) == nil {
			if most[i] > 0 {
				return n, fmt.Errorf("counter %d is gone", i)
			}
			continue
		}
		if n[i], err = look(sn, i); err != nil {
			return n, err
		}
		if n[i] < least[i] || n[i] > most[i] {
			return n, fmt.Errorf("counter %d: recovered at %d; %d was acknowledged, %d submitted", i, n[i], least[i], most[i])
		}
	}
	return n, nil
}

// liveOn sees whether a recovered database is good for more than reading, and survives the next power cut.
func liveOn(s *storage.Store, image *simfs.FS, o storage.Options, n [counters]uint64) error {
	for k := range 20 {
		i := k % counters
		got, err := increment(s, i, 100*k, new(known))
		if err != nil {
			return fmt.Errorf("write after recovery: %w", err)
		}
		n[i] = got
		if k == 10 {
			if err := s.Checkpoint(); err != nil {
				return fmt.Errorf("checkpoint after recovery: %w", err)
			}
		}
	}
	dropped := image.Crash(simfs.Choice{Gen: simfs.DropAll})
	defer dropped.Discard()
	again, err := storage.Open(dropped.Env(2), dir, o)
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	if _, err := counts(again, n, n); err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	if rep := again.Check(); len(rep.Faults) > 0 {
		return fmt.Errorf("check after the second recovery: %q", rep.Faults)
	}
	return errors.Join(again.Close(), s.Close())
}

// damage flips bits and zeroes sectors of what a run left, and demands the right answer or an error that says so.
func (c *cuts) damage(where string, times int) {
	names, err := c.u.disk.List(dir)
	if err != nil {
		c.err, c.cause = err, err
		return
	}
	dropped := simfs.Choice{Gen: simfs.DropAll}
	image := c.u.disk.Crash(dropped)
	defer image.Discard()
	for range times {
		d := &Rot{Path: dir + "/" + names[c.r.IntN(len(names))]}
		info, err := image.Stat(d.Path)
		if err != nil || info.Size == 0 {
			continue
		}
		if c.r.IntN(3) > 0 {
			d.Bit = c.r.Int64N(info.Size * 8)
		} else {
			off := c.r.Int64N(info.Size) &^ 511
			d.Bit, d.Zero = off*8, min(512, info.Size-off)
		}
		c.take(where, Cut{Choice: dropped, Rot: d})
	}
}

func (d *Rot) String() string {
	if d.Zero > 0 {
		return fmt.Sprintf("%d bytes at %d of %s zeroed", d.Zero, d.Bit/8, d.Path)
	}
	return fmt.Sprintf("bit %d of %s flipped", d.Bit, d.Path)
}

func (d *Rot) do(image *simfs.FS) error {
	if d.Zero > 0 {
		return image.Zero(d.Path, d.Bit/8, d.Zero)
	}
	return image.FlipBit(d.Path, d.Bit)
}

// told opens a damaged image of a database that was closed with the counters at n.
func (c *cuts) told(image *simfs.FS, n [counters]uint64) error {
	o := c.u.o
	o.Manual = true
	s, err := storage.Open(image.Env(1), dir, o)
	if err == nil {
		if _, err = counts(s, n, n); err == nil {
			return s.Close()
		}
	}
	if errors.Is(err, storage.ErrCorrupt) || strings.Contains(err.Error(), "format version") {
		return nil
	}
	return fmt.Errorf("a wrong answer: %w", err)
}
