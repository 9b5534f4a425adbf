package model

import (
	"fmt"
	"slices"
	"strings"
)

// Index is one that a collection has beside that on _id. Its name says what it is: two of one name are the same.
type Index struct {
	Name        string
	Fields      []string
	Unique      bool  // and sparse: a document that has not the first field has no key
	ExpireAfter int64 // seconds; 0: never
}

// Coll is a collection. It is immutable.
type Coll struct {
	NS      string // database.collection
	Birth   int    // counts the collections that have had the name
	Docs    []*Doc // in the order of their insertion
	Indexes []Index
	sum     uint64 // of the documents' hashes: their order is not part of it
	hash    uint64
}

func (c *Coll) sealed() *Coll {
	h := hashOf(fmt.Sprint(c.NS, c.Birth, c.Indexes))
	c.hash = mix(h ^ mix(c.sum))
	return c
}

func (c *Coll) find(id string) int {
	for i, d := range c.Docs {
		if d.ID == id {
			return i
		}
	}
	return -1
}

// put replaces document i, takes it away if d is nil, or adds d if i is -1.
func (c *Coll) put(i int, d *Doc) *Coll {
	n := &Coll{NS: c.NS, Birth: c.Birth, Indexes: c.Indexes, sum: c.sum}
	switch {
	case i < 0:
		n.Docs = append(slices.Clip(c.Docs), d)
		n.sum += d.hash
	case d == nil:
		n.Docs = slices.Concat(c.Docs[:i], c.Docs[i+1:])
		n.sum -= c.Docs[i].hash
	default:
		n.Docs = slices.Clone(c.Docs)
		n.Docs[i] = d
		n.sum += d.hash - c.Docs[i].hash
	}
	return n.sealed()
}

// with is the collection with other indexes.
func (c *Coll) with(indexes []Index) *Coll {
	return (&Coll{NS: c.NS, Birth: c.Birth, Docs: c.Docs, Indexes: indexes, sum: c.sum}).sealed()
}

func (c *Coll) index(name string) int {
	return slices.IndexFunc(c.Indexes, func(x Index) bool { return x.Name == name })
}

// taken reports whether another document has the key of d in a unique index.
func (c *Coll) taken(d *Doc) bool {
	return slices.ContainsFunc(c.Indexes, func(x Index) bool { return x.Unique && taken(x, c.Docs, d) })
}

func taken(x Index, docs []*Doc, d *Doc) bool {
	if d.Get(x.Fields[0]).Kind == Missing {
		return false
	}
	for _, o := range docs {
		if o.ID == d.ID {
			continue
		}
		same := true
		for _, name := range x.Fields {
			same = same && o.Get(name).Equal(d.Get(name))
		}
		if same {
			return true
		}
	}
	return false
}

// State is all of a database's collections. It is immutable; nil is the empty one.
type State struct {
	colls  []*Coll // sorted by name
	births map[string]int
	hash   uint64
}

// Coll is the collection of a name, or nil.
func (s *State) Coll(ns string) *Coll {
	if s != nil {
		for _, c := range s.colls {
			if c.NS == ns {
				return c
			}
		}
	}
	return nil
}

// Colls are all collections, by name.
func (s *State) Colls() []*Coll {
	if s == nil {
		return nil
	}
	return s.colls
}

// Text is all of the state, for comparison: documents are in the order of their _ids.
func (s *State) Text() string {
	var b strings.Builder
	for _, c := range s.Colls() {
		fmt.Fprintf(&b, "%s [%s]\n", c.NS, indexes(c))
		for _, d := range slices.SortedFunc(slices.Values(c.Docs), func(a, b *Doc) int { return strings.Compare(a.ID, b.ID) }) {
			b.WriteString(d.Text + "\n")
		}
	}
	return b.String()
}

// set puts a collection in the place of the one of its name, or takes that away.
func (s *State) set(ns string, c *Coll) *State {
	n := &State{}
	if s != nil {
		n.births = s.births
	}
	for _, o := range s.Colls() {
		if o.NS != ns {
			n.colls = append(n.colls, o)
		}
	}
	if c != nil {
		i, _ := slices.BinarySearchFunc(n.colls, ns, func(o *Coll, ns string) int { return strings.Compare(o.NS, ns) })
		n.colls = slices.Insert(n.colls, i, c)
	}
	for _, o := range n.colls {
		n.hash += o.hash
	}
	return n
}

// bear counts a collection that gets the name ns.
func (s *State) bear(ns string) (*State, int) {
	births := map[string]int{ns: 1}
	n := &State{births: births}
	if s != nil {
		n.colls, n.hash = s.colls, s.hash
		for name, k := range s.births {
			births[name] += k
		}
	}
	return n, births[ns]
}

// create makes an empty collection.
func (s *State) create(ns string) *State {
	n, birth := s.bear(ns)
	return n.set(ns, (&Coll{NS: ns, Birth: birth}).sealed())
}

// Observed makes a state of what a database holds; documents are in any order.
func Observed(colls []*Coll) *State {
	var s *State
	for _, c := range colls {
		for _, d := range c.Docs {
			c.sum += d.hash
		}
		s = s.set(c.NS, c.sealed())
	}
	return s
}

// difference tells what differs between two collections in the groups that of admits, in words; "" is nothing. Birth does not count,
// and order does not.
func difference(ns string, got, want *Coll, of func(group string) bool) string {
	switch {
	case got == nil && want == nil:
		return ""
	case want == nil:
		return fmt.Sprintf("%s is there, and should not be", ns)
	case got == nil:
		return fmt.Sprintf("%s is not there", ns)
	}
	if g, w := indexes(got), indexes(want); g != w && of(theIndexes) {
		return fmt.Sprintf("%s has the indexes [%s] instead of [%s]", ns, g, w)
	}
	if got.sum == want.sum && len(got.Docs) == len(want.Docs) {
		return ""
	}
	have := make(map[string]*Doc, len(got.Docs))
	for _, d := range got.Docs {
		if o := have[d.ID]; o != nil {
			return fmt.Sprintf("%s has two documents of one _id: %s, %s", ns, o.Text, d.Text)
		}
		have[d.ID] = d
	}
	n := 0
	for _, d := range want.Docs {
		if !of(Group(d.ID)) {
			continue
		}
		n++
		switch o := have[d.ID]; {
		case o == nil:
			return fmt.Sprintf("%s lacks %s", ns, d.Text)
		case o.Text != d.Text:
			return fmt.Sprintf("%s has %s where it should have %s", ns, o.Text, d.Text)
		}
	}
	for _, d := range got.Docs {
		if of(Group(d.ID)) && want.find(d.ID) < 0 {
			return fmt.Sprintf("%s has %s, and should not", ns, d.Text)
		}
	}
	return ""
}

func indexes(c *Coll) string {
	list := slices.SortedFunc(slices.Values(c.Indexes), func(a, b Index) int { return strings.Compare(a.Name, b.Name) })
	return strings.Trim(fmt.Sprintf("%+v", list), "[]")
}

func names(c *Coll) string {
	var out []string
	for _, x := range c.Indexes {
		out = append(out, x.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
