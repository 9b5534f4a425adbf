package model

import (
	"fmt"
	"slices"
	"strings"
)

// OpKind is a command, in one of its forms.
type OpKind string

// The commands that the model knows.
const (
	Insert      OpKind = "insert"
	Update      OpKind = "update"
	Delete      OpKind = "delete"
	Modify      OpKind = "findAndModify"
	Find        OpKind = "find"
	Count       OpKind = "count"
	ListIndexes OpKind = "listIndexes"
	CreateIndex OpKind = "createIndexes"
	DropIndex   OpKind = "dropIndexes"
	Create      OpKind = "create"
	Drop        OpKind = "drop"
	DropDB      OpKind = "dropDatabase"
	Rename      OpKind = "renameCollection"
	Sweep       OpKind = "sweep" // removes what a TTL index says has expired
)

// Test is a condition on a field.
type Test struct {
	Field string
	Least bool // the field's value, an integer, is at least Value; else it equals it, or an element of it does
	Value Value
}

// Filter are conditions that all must hold.
type Filter []Test

func (f Filter) match(d *Doc) bool {
	for _, t := range f {
		v := d.Get(t.Field)
		switch {
		case t.Least && (v.Kind != Int || v.N < t.Value.N):
			return false
		case t.Least:
		case v.Kind == Ints && t.Value.Kind == Int:
			if !slices.Contains(v.A, t.Value.N) {
				return false
			}
		case !v.Equal(t.Value):
			return false
		}
	}
	return true
}

// ByID is the filter for one document.
func ByID(id string) Filter { return Filter{{Field: "_id", Value: S(id)}} }

// Change is one modifier of an update. A whole update changes no field twice.
type Change struct {
	Op    string // $set, $inc, $unset or $push
	Field string
	Value Value
}

// apply gives the document as the changes make it: field by field, by name.
func apply(d *Doc, changes []Change) *Doc {
	sorted := slices.SortedFunc(slices.Values(changes), func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	for _, c := range sorted {
		old := d.Get(c.Field)
		switch c.Op {
		case "$set":
			d = d.with(c.Field, c.Value)
		case "$unset":
			d = d.with(c.Field, Value{})
		case "$inc":
			d = d.with(c.Field, N(old.N+c.Value.N))
		case "$push":
			d = d.with(c.Field, A(append(slices.Clone(old.A), c.Value.N)...))
		}
	}
	return d
}

// Op is a command. Which fields count depends on its kind.
type Op struct {
	Kind OpKind
	NS   string // of DropDB, the database

	Docs    []*Doc // Insert
	Ordered bool   // Insert

	Filter  Filter
	Multi   bool     // Update, Delete: all that match; else Filter has an _id
	Changes []Change // Update, Modify
	Replace *Doc     // Update, Modify: instead of Changes; its _id does not count
	Upsert  bool     // Update, Modify
	Remove  bool     // Modify
	New     bool     // Modify: give the document as it became

	Index  Index    // CreateIndex; DropIndex goes by its name
	To     string   // Rename
	Target bool     // Rename: drop what has the name
	Now    int64    // Sweep: milliseconds since 1970
	All    []string // DropDB, Sweep: the collections that there may be
}

// String is the command as text.
func (o *Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", o.Kind, o.NS)
	if len(o.Docs) > 0 {
		b.WriteString(" [")
		for i, d := range o.Docs {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(d.Text)
		}
		b.WriteString("]")
		if !o.Ordered {
			b.WriteString(" unordered")
		}
	}
	for _, t := range o.Filter {
		op := "="
		if t.Least {
			op = ">="
		}
		fmt.Fprintf(&b, " %s%s%v", t.Field, op, t.Value)
	}
	for _, c := range o.Changes {
		fmt.Fprintf(&b, " %s %s: %v", c.Op, c.Field, c.Value)
	}
	if o.Replace != nil {
		b.WriteString(" replace by " + o.Replace.Text)
	}
	if o.Index.Name != "" {
		fmt.Fprintf(&b, " %s", o.Index.Name)
	}
	if o.To != "" {
		b.WriteString(" to " + o.To)
	}
	if o.Kind == Sweep {
		fmt.Fprintf(&b, " at %d", o.Now)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{o.Multi, "multi"}, {o.Upsert, "upsert"}, {o.Remove, "remove"}, {o.New, "new"}, {o.Target, "dropTarget"}, {o.Index.Unique, "unique"}} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	return b.String()
}

// Group is the part of an _id before its dash. The documents of a group are one thing when commands are put in order.
func Group(id string) string {
	g, _, _ := strings.Cut(id, "-")
	return g
}

// theIndexes stands among groups for a collection's list of indexes.
const theIndexes = "the indexes"

// scope is what a command may look at or change in a collection: some groups, or all of it.
func (o *Op) scope() (groups []string, all bool) {
	switch o.Kind {
	case Insert:
		for _, d := range o.Docs {
			if g := Group(d.ID); !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
		return groups, false
	case Update, Delete, Modify, Find, Count:
		for _, t := range o.Filter {
			switch {
			case t.Field == "_id" && !t.Least:
				return []string{Group(t.Value.S)}, false
			case t.Field == "g":
				return []string{t.Value.S}, false
			}
		}
	case ListIndexes, Create:
		return []string{theIndexes}, false
	case CreateIndex, DropIndex:
		if o.Index.Unique {
			return []string{theIndexes, o.Index.Name}, false
		}
		return []string{theIndexes}, false
	}
	return nil, true
}

// reads reports whether a command changes nothing.
func (o *Op) reads() bool { return o.Kind == Find || o.Kind == Count || o.Kind == ListIndexes }

// on are the collections that a command is about.
func (o *Op) on() []string {
	switch o.Kind {
	case Rename:
		return []string{o.NS, o.To}
	case DropDB, Sweep:
		return o.All
	}
	return []string{o.NS}
}

// meets reports whether the order of two commands may matter, where there are the collections that exists says. Commands on different
// groups of a collection do not meet: so a workload must see to it that a field g holds the group, that the unique index has only
// keys of the group that it is named for, and that what changes many documents keeps to one group, or has no other command
// beside it. Those that may make a collection meet as long as there is none.
func (o *Op) meets(p *Op, exists func(ns string) bool) bool {
	for _, ns := range o.on() {
		if !slices.Contains(p.on(), ns) {
			continue
		}
		a, all := o.scope()
		b, every := p.scope()
		if all || every || !exists(ns) || slices.ContainsFunc(a, func(g string) bool { return slices.Contains(b, g) }) {
			return true
		}
	}
	return false
}
