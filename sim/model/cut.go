package model

import (
	"errors"
	"fmt"
	"slices"
)

// Cut are the states that a power cut at one moment may leave. It is immutable.
type Cut struct {
	pending []*Call
	worlds  []*world
	around  string
}

// Judge says whether a state is one of them: an error tells the nearest difference.
func (c *Cut) Judge(got *State) error {
	var first error
	for _, w := range c.worlds {
		err := c.explain(w, got)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("model: %w (%d explanations of what was acknowledged, none fits)\n%s", first, len(c.worlds), c.around)
}

// JudgeSome compares only the collections that got has.
func (c *Cut) JudgeSome(got *State) error {
	var first error
	for _, w := range c.worlds {
		err := agree(got, w.state)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("model: %w", first)
}

func agree(got, want *State) error {
	for _, o := range got.Colls() {
		if d := difference(o.NS, o, want.Coll(o.NS), func(string) bool { return true }); d != "" {
			return errors.New(d)
		}
	}
	return nil
}

// explain looks for steps of the pending commands that lead from w to what is there. Commands that do not meet are looked at in
// parts, each for the groups and collections that it is about.
func (c *Cut) explain(w *world, got *State) error {
	var mine []string // collections of which a part answers for all
	type share struct{ ns, group string }
	parted := map[share]bool{}
	left := make([]bool, len(c.pending))
	for i := range c.pending {
		if left[i] {
			continue
		}
		with := meeting(c.pending, i, w)
		var parts []part
		for _, j := range with {
			left[j] = true
			parts = append(parts, c.part(w, j))
		}
		s := search{pending: c.pending, seen: map[uint64]bool{}}
		var first error
		found := false
		s.each(w, func(w *world) []int {
			err := compareParts(parts, got, w.state)
			if found = found || err == nil; first == nil {
				first = err
			}
			if found {
				return nil
			}
			return with
		})
		if s.err != nil {
			return s.err
		}
		if !found {
			return first
		}
		for _, p := range parts {
			if p.groups == nil {
				mine = append(mine, p.on...)
			}
			for _, g := range p.groups {
				parted[share{p.on[0], g}] = true
			}
		}
	}
	// What no pending command is about is as it was.
	var all []string
	for _, s := range []*State{w.state, got} {
		for _, o := range s.Colls() {
			if !slices.Contains(all, o.NS) && !slices.Contains(mine, o.NS) {
				all = append(all, o.NS)
			}
		}
	}
	for _, ns := range all {
		if d := difference(ns, got.Coll(ns), w.state.Coll(ns), func(group string) bool { return !parted[share{ns, group}] }); d != "" {
			return errors.New(d)
		}
	}
	return nil
}

// part is what a command is about: some groups of a collection, or all of some collections.
type part struct {
	on     []string
	groups []string
}

func (c *Cut) part(w *world, j int) part {
	op := c.pending[j].Op
	groups, all := op.scope()
	// Whether there is a collection is the business of all who may make it.
	if all || w.state.Coll(op.NS) == nil {
		groups = nil
	}
	return part{op.on(), groups}
}

func compareParts(parts []part, got, want *State) error {
	for _, p := range parts {
		of := func(group string) bool { return p.groups == nil || slices.Contains(p.groups, group) }
		for _, ns := range p.on {
			if d := difference(ns, got.Coll(ns), want.Coll(ns), of); d != "" {
				return errors.New(d)
			}
		}
	}
	return nil
}
