package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// progress is how far a command has come. The zero value is its beginning. It is immutable.
type progress struct {
	at      int  // units behind it
	begun   bool // it has searched
	targets []string
	birth   int // of the collection in which the targets were found

	n, modified int
	errors      string
	done        bool
	reply       string
}

func (p progress) hash() uint64 {
	h := uint64(p.at)<<32 ^ uint64(p.n)<<16 ^ uint64(p.modified) ^ uint64(p.birth)<<48
	if p.begun {
		h ^= 1 << 63
		h += hashOf(strings.Join(p.targets, ","))
	}
	if p.done {
		h += hashOf(p.reply)
	}
	return mix(h + hashOf(p.errors))
}

// way is one way to go on.
type way struct {
	state *State
	progress
}

// Replies are text: what a client learns from a command, in one form for the model and for the database.

// Wrote is the reply of a command that changes documents. errors are the positions and codes of those that were refused.
func Wrote(n, modified int, upserted bool, errors string) string {
	s := fmt.Sprintf("n %d modified %d", n, modified)
	if upserted {
		s += " upserted"
	}
	return s + errors
}

// Refused is one refusal in Wrote.
func Refused(i, code int) string { return fmt.Sprintf(" [%d: %d]", i, code) }

// Gave is the reply of findAndModify: nil if it found nothing.
func Gave(d *Doc, upserted bool) string {
	s := "nothing"
	if d != nil {
		s = d.Text
	}
	if upserted {
		s += " upserted"
	}
	return s
}

// Failed is the reply of a command that fails as a whole.
func Failed(code int) string { return fmt.Sprintf("error %d", code) }

// Saw is the reply of a search.
func Saw(docs []*Doc) string {
	var sum uint64
	for _, d := range docs {
		sum += d.hash
	}
	return fmt.Sprintf("%d documents %016x", len(docs), sum)
}

// MongoDB's codes for what the model refuses.
const (
	codeNamespaceNotFound = 26
	codeIndexNotFound     = 27
	codeNamespaceExists   = 48
	codeDuplicateKey      = 11000
)

func (p progress) end(reply string) progress {
	p.done, p.reply = true, reply
	return p
}

// next is every way in which a command takes its next step.
func (o *Op) next(s *State, p progress) []way {
	c := s.Coll(o.NS)
	one := func(s *State, reply string) []way { return []way{{s, p.end(reply)}} }
	create := func() []way { return []way{{s.create(o.NS), p}} }
	switch o.Kind {
	case Insert:
		if c == nil {
			return create()
		}
		return []way{o.insert(s, c, p)}
	case Update:
		if o.Multi {
			return o.many(s, c, p)
		}
		return o.update(s, c, p)
	case Delete:
		if o.Multi {
			return o.many(s, c, p)
		}
		found := o.search(c)
		if len(found) == 0 {
			return one(s, Wrote(0, 0, false, ""))
		}
		return one(s.set(o.NS, c.put(c.find(found[0].ID), nil)), Wrote(1, 1, false, ""))
	case Modify:
		return o.modify(s, c, p)
	case Find:
		return one(s, Saw(o.search(c)))
	case Count:
		return one(s, fmt.Sprint(len(o.search(c))))
	case ListIndexes:
		if c == nil {
			return one(s, Failed(codeNamespaceNotFound))
		}
		return one(s, names(c))
	case CreateIndex:
		if c == nil {
			return create()
		}
		k := len(c.Indexes) + 1
		if c.index(o.Index.Name) >= 0 {
			return one(s, fmt.Sprintf("before %d after %d", k, k))
		}
		if o.Index.Unique && slices.ContainsFunc(c.Docs, func(d *Doc) bool { return taken(o.Index, c.Docs, d) }) {
			return one(s, Failed(codeDuplicateKey))
		}
		return one(s.set(o.NS, c.with(append(slices.Clip(c.Indexes), o.Index))), fmt.Sprintf("before %d after %d", k, k+1))
	case DropIndex:
		switch {
		case c == nil:
			return one(s, Failed(codeNamespaceNotFound))
		case c.index(o.Index.Name) < 0:
			return one(s, Failed(codeIndexNotFound))
		}
		i := c.index(o.Index.Name)
		return one(s.set(o.NS, c.with(slices.Concat(c.Indexes[:i], c.Indexes[i+1:]))), fmt.Sprintf("before %d", len(c.Indexes)+1))
	case Create:
		if c == nil {
			return one(s.create(o.NS), "ok")
		}
		return one(s, "ok")
	case Drop:
		if c == nil {
			return one(s, "nothing")
		}
		return one(s.set(o.NS, nil), fmt.Sprintf("dropped with %d indexes", len(c.Indexes)+1))
	case DropDB:
		return o.dropAll(s, p)
	case Rename:
		return one(o.rename(s, c))
	case Sweep:
		return o.sweep(s, p)
	}
	panic("model: " + o.String())
}

func (o *Op) search(c *Coll) (found []*Doc) {
	if c != nil {
		for _, d := range c.Docs {
			if o.Filter.match(d) {
				found = append(found, d)
			}
		}
	}
	return found
}

// insert puts the next document in, or refuses it.
func (o *Op) insert(s *State, c *Coll, p progress) way {
	d := o.Docs[p.at]
	if c.refuses(d) {
		p.errors += Refused(p.at, codeDuplicateKey)
		if o.Ordered {
			p.at = len(o.Docs) - 1
		}
	} else {
		s = s.set(o.NS, c.put(-1, d))
		p.n++
	}
	if p.at++; p.at == len(o.Docs) {
		p = p.end(Wrote(p.n, p.n, false, p.errors))
	}
	return way{s, p}
}

// changed is a document as an update makes it.
func (o *Op) changed(d *Doc) *Doc {
	if o.Replace != nil {
		return NewDoc(d.ID, o.Replace.Fields...)
	}
	return apply(d, o.Changes)
}

// fresh is the document that an upsert inserts: what the filter demands to be equal, and the changes.
func (o *Op) fresh() *Doc {
	var id string
	var fields []Field
	for _, t := range o.Filter {
		if t.Field == "_id" {
			id = t.Value.S
		} else if o.Replace == nil {
			fields = append(fields, Field{t.Field, t.Value})
		}
	}
	return o.changed(NewDoc(id, fields...))
}

// refuses reports whether a new document cannot be inserted.
func (c *Coll) refuses(d *Doc) bool { return c.find(d.ID) >= 0 || c.taken(d) }

// update changes the one document that there may be; the filter has an _id.
func (o *Op) update(s *State, c *Coll, p progress) []way {
	found := o.search(c)
	switch {
	case len(found) == 0 && !o.Upsert:
		return []way{{s, p.end(Wrote(0, 0, false, ""))}}
	case c == nil:
		return []way{{s.create(o.NS), p}}
	case len(found) == 0:
		d := o.fresh()
		if c.refuses(d) {
			return []way{{s, p.end(Wrote(0, 0, false, Refused(0, codeDuplicateKey)))}}
		}
		return []way{{s.set(o.NS, c.put(-1, d)), p.end(Wrote(0, 0, true, ""))}}
	}
	s, changed, ok := o.edit(s, c, c.find(found[0].ID))
	if !ok {
		return []way{{s, p.end(Wrote(0, 0, false, Refused(0, codeDuplicateKey)))}}
	}
	return []way{{s, p.end(Wrote(1, changed, false, ""))}}
}

// edit updates document i; ok is false if its new version is refused.
func (o *Op) edit(s *State, c *Coll, i int) (_ *State, changed int, ok bool) {
	before := c.Docs[i]
	after := o.changed(before)
	switch {
	case after.Text == before.Text:
		return s, 0, true
	case c.taken(after):
		return s, 0, false
	}
	return s.set(o.NS, c.put(i, after)), 1, true
}

// modify is findAndModify: any document that matches may be the one.
func (o *Op) modify(s *State, c *Coll, p progress) (ways []way) {
	found := o.search(c)
	for _, d := range found {
		if o.Remove {
			ways = append(ways, way{s.set(o.NS, c.put(c.find(d.ID), nil)), p.end(Gave(d, false))})
			continue
		}
		n, _, ok := o.edit(s, c, c.find(d.ID))
		reply := Gave(d, false)
		switch {
		case !ok:
			reply = Failed(codeDuplicateKey)
		case o.New:
			reply = Gave(o.changed(d), false)
		}
		ways = append(ways, way{n, p.end(reply)})
	}
	switch {
	case len(found) > 0:
	case !o.Upsert:
		ways = append(ways, way{s, p.end(Gave(nil, false))})
	case c == nil:
		ways = append(ways, way{s.create(o.NS), p})
	default:
		d := o.fresh()
		switch {
		case c.refuses(d):
			ways = append(ways, way{s, p.end(Failed(codeDuplicateKey))})
		case o.New:
			ways = append(ways, way{s.set(o.NS, c.put(-1, d)), p.end(Gave(d, true))})
		default:
			ways = append(ways, way{s.set(o.NS, c.put(-1, d)), p.end(Gave(nil, true))})
		}
	}
	return ways
}

// many searches first, and then changes what it found, one by one, in the order of insertion or in that of an index.
func (o *Op) many(s *State, c *Coll, p progress) []way {
	if !p.begun {
		found := o.search(c)
		p.begun = true
		if len(found) == 0 {
			return []way{{s, p.end(Wrote(0, 0, false, ""))}}
		}
		p.birth = c.Birth
		// There may be an index on g and n when it searches.
		ways := []way{{s, p.seeks(found)}}
		slices.SortStableFunc(found, func(a, b *Doc) int { return compare(a.Get("n"), b.Get("n")) })
		if q := p.seeks(found); !slices.Equal(q.targets, ways[0].targets) {
			ways = append(ways, way{s, q})
		}
		return ways
	}
	id := p.targets[p.at]
	i := -1
	if c != nil && c.Birth == p.birth {
		i = c.find(id)
	}
	if i >= 0 && o.Filter.match(c.Docs[i]) {
		if o.Kind == Delete {
			s = s.set(o.NS, c.put(i, nil))
			p.n++
			p.modified++
		} else {
			n, changed, ok := o.edit(s, c, i)
			if !ok {
				return []way{{s, p.end(Wrote(p.n, p.modified, false, Refused(0, codeDuplicateKey)))}}
			}
			s = n
			p.n++
			p.modified += changed
		}
	}
	if p.at++; p.at == len(p.targets) {
		p = p.end(Wrote(p.n, p.modified, false, ""))
	}
	return []way{{s, p}}
}

// compare orders integers and dates as an index does; what is missing comes first.
func compare(a, b Value) int {
	if a.Kind == Missing || b.Kind == Missing {
		return cmp.Compare(a.Kind, b.Kind)
	}
	return cmp.Compare(a.N, b.N)
}

func (p progress) seeks(found []*Doc) progress {
	p.targets = make([]string, len(found))
	for i, d := range found {
		p.targets[i] = d.ID
	}
	return p
}

// dropAll looks which collections there are in a database, and then drops them, one by one.
func (o *Op) dropAll(s *State, p progress) []way {
	if !p.begun {
		p.begun = true
		for _, ns := range o.All {
			if s.Coll(ns) != nil {
				p.targets = append(p.targets, ns)
			}
		}
		if len(p.targets) == 0 {
			return []way{{s, p.end("nothing")}}
		}
		return []way{{s, p}}
	}
	if ns := p.targets[p.at]; s.Coll(ns) != nil {
		s = s.set(ns, nil)
	}
	if p.at++; p.at == len(p.targets) {
		p = p.end("ok")
	}
	return []way{{s, p}}
}

func (o *Op) rename(s *State, c *Coll) (*State, string) {
	switch {
	case c == nil:
		return s, Failed(codeNamespaceNotFound)
	case s.Coll(o.To) != nil && !o.Target:
		return s, Failed(codeNamespaceExists)
	}
	s, birth := s.set(o.NS, nil).bear(o.To)
	return s.set(o.To, (&Coll{NS: o.To, Birth: birth, Docs: c.Docs, Indexes: c.Indexes, sum: c.sum}).sealed()), "ok"
}

// sweep removes what has expired from the one collection that may have an index that says so; no two dates are the same.
func (o *Op) sweep(s *State, p progress) []way {
	ns := o.All[0]
	c := s.Coll(ns)
	if !p.begun {
		p.begun = true
		var found []*Doc
		if c != nil {
			if i := slices.IndexFunc(c.Indexes, func(x Index) bool { return x.ExpireAfter > 0 }); i >= 0 {
				x := c.Indexes[i]
				for _, d := range c.Docs {
					if t := d.Get(x.Fields[0]); t.Kind == Date && t.N+1000*x.ExpireAfter <= o.Now {
						found = append(found, d)
					}
				}
				slices.SortFunc(found, func(a, b *Doc) int { return cmp.Compare(a.Get(x.Fields[0]).N, b.Get(x.Fields[0]).N) })
			}
			p.birth = c.Birth
		}
		if len(found) == 0 {
			return []way{{s, p.end("removed 0")}}
		}
		return []way{{s, p.seeks(found)}}
	}
	if c != nil && c.Birth == p.birth {
		// A document that has got another date meanwhile does not go: the workload gives none another date.
		if i := c.find(p.targets[p.at]); i >= 0 {
			s = s.set(ns, c.put(i, nil))
			p.n++
		}
	}
	if p.at++; p.at == len(p.targets) {
		p = p.end(fmt.Sprintf("removed %d", p.n))
	}
	return []way{{s, p}}
}
