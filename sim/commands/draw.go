package commands

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/multiforadb/multiforadb/sim/model"
)

// step is one thing that a client does: an operation, or something that the model has nothing to say of.
type step struct {
	op    *model.Op // nil: one of the others below
	way   Way       // of a search
	pause int       // yields between the documents of a search
	leash int       // steps of the world after which the operation is interrupted; 0: it is not
	clock bool      // a sweep goes by the clock, not by the time drawn

	jump time.Duration // of the wall clock
	park string        // a cursor on the client's documents of this collection is opened, a little read, and left
	take int           // so many documents of the parked cursor are read
}

func (s step) String() string {
	switch {
	case s.op != nil && s.leash > 0:
		return fmt.Sprintf("%v, for %d steps at most", s.op, s.leash)
	case s.op != nil:
		return s.op.String()
	case s.jump != 0:
		return fmt.Sprintf("the clock jumps by %v", s.jump)
	case s.park != "":
		return "open a cursor on " + s.park
	}
	return fmt.Sprintf("read %d more documents from the cursor", s.take)
}

// Where things are. A document's _id begins with its group, which is also its field g: see model.Op.meets for what must keep to one.
//
//	h0-0 … h3-0   hot documents, everybody's
//	u-0 … u-7     those that have a field u, on which there may be a unique index
//	c2-0 … c2-15  the documents of client c2, which it also changes many at a time
//
// Collection t.events alone has dates, and an index by which they expire.
var (
	places   = []string{"a.others", "a.things", "b.moved", "b.things"}
	events   = "t.events"
	database = map[string][]string{"a": {"a.others", "a.things"}, "b": {"b.moved", "b.things"}, "t": {"t.events"}}

	indexes = []model.Index{
		{Name: "g", Fields: []string{"g"}},
		{Name: "gn", Fields: []string{"g", "n"}},
		{Name: "k", Fields: []string{"k"}},
		{Name: "a", Fields: []string{"a"}},
		{Name: "pad", Fields: []string{"pad"}},
		{Name: "u", Fields: []string{"u"}, Unique: true},
	}
	expiry = model.Index{Name: "t", Fields: []string{"t"}, ExpireAfter: 600}
)

const (
	hots   = 4
	claims = 8
	// firstDay is when simulated clocks begin: 2026-01-01, in milliseconds.
	firstDay = 1767225600000
	hour     = 3600_000
)

// mood is what a workload is like.
type mood struct {
	crowd  int  // how many work at once: if there is more than one, no operation changes many documents of more than one group
	large  bool // some documents are of hundreds of KiB
	leash  bool // operations are interrupted
	simple bool // inserts are ordered: a disk that is full refuses all that follows, not this or that document
	ddl    int  // collections and indexes come and go: per cent
}

// drawer draws what clients do. All of it is drawn before anything is done.
type drawer struct {
	r     *rand.Rand
	mood  mood
	dates map[int64]bool
	fresh int
}

func newDrawer(r *rand.Rand, m mood) *drawer { return &drawer{r: r, mood: m, dates: map[int64]bool{}} }

// steps are what one client does. Its name is its group.
func (d *drawer) steps(client string, n int) []step {
	home := places[0]
	if d.r.IntN(3) == 0 {
		home = places[d.r.IntN(len(places))]
	}
	out := make([]step, n)
	for i := range out {
		ns := home
		if d.r.IntN(3) == 0 {
			ns = places[d.r.IntN(len(places))]
		}
		s := d.step(client, ns)
		if s.op != nil && d.mood.leash && d.r.IntN(15) == 0 {
			s.leash = 1 + d.r.IntN(150)
		}
		out[i] = s
	}
	return out
}

func (d *drawer) step(client, ns string) step {
	n := d.r.IntN(100)
	if n < d.mood.ddl {
		return step{op: d.define(ns)}
	}
	switch n = d.r.IntN(100); {
	case n < 22:
		return step{op: d.insert(client, ns)}
	case n < 45:
		return step{op: d.hot(ns)}
	case n < 53:
		return step{op: d.claim(ns)}
	case n < 72:
		return step{op: d.many(client, ns)}
	case n < 88:
		return d.look(client, ns)
	case n < 94:
		return d.event(client)
	case n < 96:
		return step{jump: time.Duration(d.r.Int64N(4*hour)-2*hour) * time.Millisecond}
	case n < 98:
		return step{park: ns}
	}
	return step{take: 1 + d.r.IntN(5)}
}

// own is how many documents a client has: the more of them work at once, the fewer, since all that may have become of them is searched.
func (d *drawer) own() int { return 3 + 24/(1+d.mood.crowd) }

// pad is a string of a length that is mostly small.
func (d *drawer) pad() model.Value {
	n := 0
	switch k := d.r.IntN(40); {
	case k < 6:
	case k < 30:
		n = d.r.IntN(200)
	case k < 38:
		n = d.r.IntN(3000)
	case k < 39 || !d.mood.large:
		n = d.r.IntN(20_000)
	default:
		n = d.r.IntN(1 << (12 + d.r.IntN(9)))
	}
	var b strings.Builder
	for b.Len() < n {
		word := fmt.Sprintf("%016x", d.r.Uint64())
		b.WriteString(word)
		if n > 30_000 {
			b.WriteString(strings.Repeat(word[:8], 60))
		}
	}
	return model.S(b.String()[:n])
}

func (d *drawer) ints() model.Value {
	a := make([]int64, d.r.IntN(4))
	for i := range a {
		a[i] = d.r.Int64N(6)
	}
	return model.A(a...)
}

// doc is a new document of a group.
func (d *drawer) doc(group string, number int) *model.Doc {
	id := fmt.Sprintf("%s-%d", group, number)
	if d.r.IntN(12) == 0 {
		return model.NewDoc(id) // as small as can be
	}
	return model.NewDoc(id, d.fields(group)...)
}

func (d *drawer) fields(group string) []model.Field {
	f := []model.Field{{Name: "g", Value: model.S(group)}, {Name: "n", Value: model.N(d.r.Int64N(40))}}
	if d.r.IntN(3) > 0 {
		f = append(f, model.Field{Name: "k", Value: model.N(d.r.Int64N(5))})
	}
	if d.r.IntN(3) > 0 {
		f = append(f, model.Field{Name: "a", Value: d.ints()})
	}
	if d.r.IntN(2) == 0 {
		f = append(f, model.Field{Name: "pad", Value: d.pad()})
	}
	return f
}

func (d *drawer) insert(client, ns string) *model.Op {
	op := &model.Op{Kind: model.Insert, NS: ns, Ordered: d.mood.simple || d.r.IntN(2) == 0}
	n := 1
	switch d.r.IntN(6) {
	case 0, 1:
		n += d.r.IntN(d.own())
	case 2:
		// Longer than one write of the engine takes, now and then.
		if d.mood.crowd <= 2 && d.r.IntN(4) == 0 {
			n += d.r.IntN(200)
		}
	}
	first := d.r.IntN(d.own())
	for i := range n {
		op.Docs = append(op.Docs, d.doc(client, first+i))
	}
	return op
}

// changes are modifiers of fields that are not part of what a document is.
func (d *drawer) changes() []model.Change {
	all := []model.Change{
		{Op: "$inc", Field: "n", Value: model.N(1 + d.r.Int64N(9))},
		{Op: "$push", Field: "a", Value: model.N(d.r.Int64N(6))},
		{Op: "$set", Field: "k", Value: model.N(d.r.Int64N(5))},
		{Op: "$set", Field: "pad", Value: d.pad()},
		{Op: "$unset", Field: "pad"},
		{Op: "$unset", Field: "k"},
		{Op: "$set", Field: "w", Value: model.N(d.r.Int64N(2))},
	}
	out := []model.Change{all[d.r.IntN(len(all))]}
	if more := all[d.r.IntN(len(all))]; more.Field != out[0].Field {
		out = append(out, more)
	}
	return out
}

// hot changes one of everybody's documents.
func (d *drawer) hot(ns string) *model.Op {
	group := fmt.Sprintf("h%d", min(d.r.IntN(2*hots), d.r.IntN(hots))) // the first are the hottest
	id := group + "-0"
	op := &model.Op{NS: ns, Filter: model.ByID(id)}
	switch n := d.r.IntN(12); {
	case n < 4:
		op.Kind, op.Upsert = model.Update, d.r.IntN(3) > 0
		op.Changes = d.changes()
	case n < 7:
		op.Kind, op.Upsert, op.New = model.Modify, d.r.IntN(2) == 0, d.r.IntN(2) == 0
		op.Changes = d.changes()
	case n < 8:
		op.Kind, op.Remove = model.Modify, true
	case n < 9:
		op.Kind, op.Upsert = model.Update, d.r.IntN(2) == 0
		op.Replace = model.NewDoc(id, d.fields(group)...)
	case n < 10:
		op.Kind = model.Delete
	case n < 11:
		op.Kind = model.Find
	default:
		op.Kind, op.Filter, op.Ordered = model.Insert, nil, true
		op.Docs = []*model.Doc{d.doc(group, 0)}
	}
	if op.Filter != nil && op.Kind != model.Find && d.r.IntN(3) == 0 {
		// If it is still so when its turn comes: such a filter is searched for first, and looked at again when the change is made.
		if op.Changes != nil && d.r.IntN(2) == 0 {
			w := d.r.Int64N(2)
			op.Filter = append(op.Filter, model.Test{Field: "w", Value: model.N(w)})
			op.Changes = []model.Change{{Op: "$set", Field: "w", Value: model.N(1 - w)}, {Op: "$inc", Field: "n", Value: model.N(1)}}
		} else {
			op.Filter = append(op.Filter, model.Test{Field: "k", Value: model.N(d.r.Int64N(5))})
		}
		op.Multi = (op.Kind == model.Update && !op.Upsert && op.Replace == nil || op.Kind == model.Delete) && d.r.IntN(2) == 0
	}
	return op
}

// claim takes, moves or gives up a value of u.
func (d *drawer) claim(ns string) *model.Op {
	u := model.N(d.r.Int64N(claims - 2))
	number := d.r.IntN(claims)
	op := &model.Op{NS: ns, Filter: model.ByID(fmt.Sprintf("u-%d", number))}
	switch d.r.IntN(6) {
	case 0, 1:
		f := append(d.fields("u"), model.Field{Name: "u", Value: u})
		op.Kind, op.Filter, op.Ordered = model.Insert, nil, true
		op.Docs = []*model.Doc{model.NewDoc(fmt.Sprintf("u-%d", number), f...)}
	case 2:
		op.Kind, op.Upsert = model.Update, d.r.IntN(2) == 0
		op.Changes = []model.Change{{Op: "$set", Field: "u", Value: u}}
	case 3:
		op.Kind, op.New = model.Modify, d.r.IntN(2) == 0
		op.Changes = []model.Change{{Op: "$set", Field: "u", Value: u}, {Op: "$inc", Field: "n", Value: model.N(1)}}
	case 4:
		op.Kind = model.Delete
	default:
		op.Kind = model.Find
		op.Filter = model.Filter{{Field: "g", Value: model.S("u")}}
	}
	return op
}

// filter is for documents of the client, or now and then for any, if there is nobody else.
func (d *drawer) filter(client string) model.Filter {
	f := model.Filter{{Field: "g", Value: model.S(client)}}
	if d.mood.crowd <= 1 && d.r.IntN(4) == 0 {
		f = nil
	}
	switch d.r.IntN(4) {
	case 0:
		f = append(f, model.Test{Field: "n", Least: true, Value: model.N(d.r.Int64N(40))})
	case 1:
		f = append(f, model.Test{Field: "a", Value: model.N(d.r.Int64N(6))})
	case 2:
		f = append(f, model.Test{Field: "k", Value: model.N(d.r.Int64N(5))})
	}
	return f
}

func (d *drawer) many(client, ns string) *model.Op {
	op := &model.Op{NS: ns, Filter: d.filter(client)}
	switch n := d.r.IntN(10); {
	case n < 5:
		op.Kind, op.Multi, op.Changes = model.Update, true, d.changes()
	case n < 7:
		op.Kind, op.Multi = model.Delete, true
	case n < 8:
		op.Kind, op.Remove = model.Modify, true
		op.Filter = model.ByID(fmt.Sprintf("%s-%d", client, d.r.IntN(d.own())))
	default:
		op.Kind, op.New, op.Changes = model.Modify, d.r.IntN(2) == 0, d.changes()
		if d.r.IntN(2) == 0 {
			op.Filter = model.ByID(fmt.Sprintf("%s-%d", client, d.r.IntN(d.own())))
		}
	}
	return op
}

func (d *drawer) look(client, ns string) step {
	op := &model.Op{Kind: model.Find, NS: ns}
	switch d.r.IntN(6) {
	case 0:
		op.Kind = model.ListIndexes
	case 1:
		op.Kind = model.Count
		if d.mood.crowd > 1 {
			op.Filter = model.Filter{{Field: "g", Value: model.S("u")}}
		}
	case 2:
		op.Kind = model.Count
		op.Filter = d.filter(client)
	case 3, 4:
		op.Filter = d.filter(client)
	}
	return step{op: op, way: Way(d.r.IntN(int(ways))), pause: d.r.IntN(3)}
}

// define makes, drops and renames collections and indexes.
func (d *drawer) define(ns string) *model.Op {
	op := &model.Op{NS: ns}
	switch n := d.r.IntN(20); {
	case n < 10:
		op.Kind, op.Index = model.CreateIndex, indexes[d.r.IntN(len(indexes))]
	case n < 14:
		op.Kind, op.Index = model.DropIndex, indexes[d.r.IntN(len(indexes))]
	case n < 16:
		op.Kind = model.Drop
	case n < 17:
		op.Kind = model.Create
	case n < 19:
		op.Kind, op.Target = model.Rename, d.r.IntN(3) > 0
		for op.To == "" || op.To == ns {
			op.To = places[d.r.IntN(len(places))]
		}
	default:
		op.Kind = model.DropDB
		op.NS, _, _ = strings.Cut(ns, ".")
		op.All = database[op.NS]
	}
	return op
}

// event is about documents that expire. No two have one date, and none gets another.
func (d *drawer) event(client string) step {
	switch d.r.IntN(8) {
	case 0:
		return step{op: &model.Op{Kind: model.CreateIndex, NS: events, Index: expiry}}
	case 1, 2:
		now := firstDay + d.r.Int64N(3*hour) - hour
		return step{op: &model.Op{Kind: model.Sweep, NS: "", All: []string{events}, Now: now}, clock: d.mood.crowd > 0}
	case 3:
		return step{op: &model.Op{Kind: model.Find, NS: events}, way: Way(d.r.IntN(int(ways)))}
	}
	op := &model.Op{Kind: model.Insert, NS: events, Ordered: true}
	for range 1 + d.r.IntN(4) {
		t := firstDay + d.r.Int64N(3*hour) - 2*hour
		for d.dates[t] {
			t++
		}
		d.dates[t] = true
		d.fresh++
		op.Docs = append(op.Docs, model.NewDoc(fmt.Sprintf("%s-%d", client, d.fresh), model.Field{Name: "g", Value: model.S(client)}, model.Field{Name: "t", Value: model.D(t)}))
	}
	return step{op: op}
}
