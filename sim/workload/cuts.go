package workload

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/simfs"
)

// cuts takes crash images of a run, and judges each: it opens, is sound, and in a state that the program's clients know to be possible
// at that moment.
type cuts struct {
	u     *Frame
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
	kind := kindOf(e)
	if only := c.u.edit.Kind; c.r.IntN(c.share) > 0 || only != "" && only != kind {
		return
	}
	list := c.u.disk.Choices(c.u.Seed+uint64(e.N), 6)
	if c.u.edit.Kind != "" { // a search for one that fails
		for _, choice := range append(list, simfs.Choice{Gen: simfs.Killed}) {
			for range 4 {
				c.take(where, Cut{At: c.events, Kind: kind, Choice: choice, Seed: c.r.Uint64()})
			}
		}
		return
	}
	choice := list[c.r.IntN(len(list))]
	if c.r.IntN(5) == 0 {
		choice = simfs.Choice{Gen: simfs.Killed}
	}
	c.take(where, Cut{At: c.events, Kind: kind, Choice: choice, Seed: c.r.Uint64()})
}

// kindOf is what moments of one kind have in common.
func kindOf(e simfs.Event) string {
	return fmt.Sprintf("%s %s %s", e.When, e.Op, numbers.ReplaceAllString(e.Path, "#"))
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
	case c.u.Profile == Damage:
		c.damage(where, 60)
	default:
		for _, choice := range append(c.u.disk.Choices(c.u.Seed, 4), simfs.Choice{Gen: simfs.Killed}) {
			c.take(where, Cut{Choice: choice, Seed: c.r.Uint64()})
		}
	}
}

// take judges one image.
func (c *cuts) take(where string, cut Cut) {
	if c.err != nil {
		return
	}
	known := c.u.program.Known()
	image := c.u.disk.Crash(cut.Choice)
	defer image.Discard()
	var err error
	if d := cut.Rot; d == nil {
		one := judging{cuts: c, r: rand.New(rand.NewPCG(cut.Seed, 33))}
		if err = standing(func() error { return one.judge(image, cut.Choice, known, 2) }); err != nil {
			c.err = fmt.Errorf("power cut %s, choice %v: %w\n%s", where, cut.Choice, err, c.u.disk.Describe(cut.Choice))
		}
	} else if err = d.do(image); err == nil {
		c.images++
		c.damaged++
		if err = standing(func() error { return known.Damaged(image.Env(1)) }); err != nil {
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

// standing makes a panic of the database under judgement the image's failure, and not that of the task that was looked at.
func standing(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

// judging is the judgement of one image, with chances of its own.
type judging struct {
	*cuts
	r *rand.Rand
}

// judge opens an image. Recoveries of the same image may be interrupted in turn, to depth levels.
func (c *judging) judge(image *simfs.FS, choice simfs.Choice, known Known, depth int) error {
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
	found, err := c.open(image, choice.Gen != simfs.Killed, known)
	if err != nil || inner == nil {
		return err
	}
	defer inner.Discard()
	probe.NestedRecovery.Hit()
	if err := c.judge(inner, innerChoice, found, depth-1); err != nil {
		return fmt.Errorf("recovery interrupted, choice %v: %w", innerChoice, err)
	}
	return nil
}

// open opens an image, and answers with what its own recovery may have left when it was interrupted.
func (c *judging) open(image *simfs.FS, durable bool, known Known) (Known, error) {
	opened, err := known.Open(image.Env(1))
	if err != nil {
		return nil, err
	}
	image.SetHooks(simfs.Hooks{})
	if c.r.IntN(4) == 0 {
		return opened.Known(durable), opened.LiveOn(image)
	}
	return opened.Known(durable), opened.Close()
}

// damage flips bits and zeroes sectors of what a run left, and demands the right answer or an error that says so.
func (c *cuts) damage(where string, times int) {
	names, err := c.u.disk.List(Dir)
	if err != nil {
		c.err, c.cause = err, err
		return
	}
	dropped := simfs.Choice{Gen: simfs.DropAll}
	image := c.u.disk.Crash(dropped)
	defer image.Discard()
	for range times {
		d := &Rot{Path: Dir + "/" + names[c.r.IntN(len(names))]}
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
