package project_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/value"
)

var (
	cases = flag.Int("cases", 120_000, "how many random cases TestAgainstNaive tries")
	seed  = flag.Uint64("seed", 0, "the seed of the random cases; 0 draws one")
)

// naive projects decoded documents by the manual: first "a.$", then what is kept, then what is computed, then $slice on
// the result, each path on its own.
type naive struct {
	leaves    []leaf
	inclusive bool
}

// leaf is one path of a projection. op is a bool, slice, elem, expr or position.
type leaf struct {
	path string
	op   any
}

type (
	sliceOp  struct{ skip, limit int } // limit < 0: the last so many
	elemOp   struct{ gt int32 }
	exprOp   struct{ name string }
	position struct{ index int }
	gone     struct{}
)

func (n *naive) project(doc bson.D) (bson.D, bool) {
	input, ok := doc, true
	for _, l := range n.leaves {
		if op, is := l.op.(position); is {
			input, ok = only(doc, strings.Split(l.path, "."), op.index)
		}
	}
	out, _ := n.keep(input, "").(bson.D)
	if out == nil {
		out = bson.D{}
	}
	for _, l := range treeOrder(n.leaves, 0) {
		switch op := l.op.(type) {
		case exprOp:
			out = set(out, strings.Split(l.path, "."), get(doc, op.name)).(bson.D)
		case elemOp:
			a, _ := get(doc, l.path).(bson.A)
			for _, e := range a {
				if i, ok := e.(int32); ok && i > op.gt {
					out = append(out, bson.E{Key: l.path, Value: bson.A{e}})
					break
				}
			}
		}
	}
	for _, l := range n.leaves {
		if op, is := l.op.(sliceOp); is {
			out = cut(out, strings.Split(l.path, "."), op)
		}
	}
	return out, ok
}

// treeOrder brings paths that begin alike together, at the place of the first.
func treeOrder(leaves []leaf, depth int) (out []leaf) {
	for i, l := range leaves {
		parts := strings.Split(l.path, ".")
		if len(parts) <= depth {
			return leaves
		}
		begins := func(m leaf) bool {
			other := strings.Split(m.path, ".")
			return len(other) > depth && other[depth] == parts[depth]
		}
		if slices.ContainsFunc(leaves[:i], begins) {
			continue
		}
		out = append(out, treeOrder(slices.DeleteFunc(slices.Clone(leaves), func(m leaf) bool { return !begins(m) }), depth+1)...)
	}
	return out
}

// keep is what is left of v at a path before anything is computed.
func (n *naive) keep(v any, at string) any {
	below, made := false, false
	for _, l := range n.leaves {
		if l.path == at {
			switch op := l.op.(type) {
			case bool:
				return map[bool]any{true: v, false: gone{}}[op]
			case sliceOp, position:
				return v
			}
			return gone{}
		}
		if at == "" || strings.HasPrefix(l.path, at+".") {
			below = true
			_, expr := l.op.(exprOp)
			made = made || expr
		}
	}
	if !below {
		return map[bool]any{true: gone{}, false: v}[n.inclusive]
	}
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			path := e.Key
			if at != "" {
				path = at + "." + e.Key
			}
			if kept := n.keep(e.Value, path); kept != any(gone{}) {
				out = append(out, bson.E{Key: e.Key, Value: kept})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			// What is computed below will need the place.
			if kept := n.keep(e, at); kept != any(gone{}) || made {
				out = append(out, kept)
			}
		}
		return out
	}
	return map[bool]any{true: gone{}, false: v}[n.inclusive]
}

func get(doc bson.D, name string) any {
	for _, e := range doc {
		if e.Key == name {
			return e.Value
		}
	}
	return gone{}
}

// set puts a computed value at a path.
func set(v any, parts []string, x any) any {
	if a, ok := v.(bson.A); ok {
		out := bson.A{}
		for _, e := range a {
			out = append(out, set(e, parts, x))
		}
		return out
	}
	d, ok := v.(bson.D)
	if !ok {
		d = bson.D{}
	}
	if len(parts) == 1 {
		if x == any(gone{}) {
			return d
		}
		return append(d, bson.E{Key: parts[0], Value: x})
	}
	i := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == parts[0] })
	if i < 0 {
		return append(d, bson.E{Key: parts[0], Value: set(gone{}, parts[1:], x)})
	}
	d = slices.Clone(d)
	d[i].Value = set(d[i].Value, parts[1:], x)
	return d
}

func only(d bson.D, parts []string, index int) (bson.D, bool) {
	d = slices.Clone(d)
	for i := range d {
		if d[i].Key != parts[0] {
			continue
		}
		switch v := d[i].Value.(type) {
		case bson.A:
			if index >= len(v) {
				return d, false
			}
			d[i].Value = bson.A{v[index]}
		case bson.D:
			if len(parts) > 1 {
				var ok bool
				if d[i].Value, ok = only(v, parts[1:], index); !ok {
					return d, false
				}
			}
		}
	}
	return d, true
}

func cut(d bson.D, parts []string, op sliceOp) bson.D {
	d = slices.Clone(d)
	for i := range d {
		if d[i].Key != parts[0] {
			continue
		}
		switch v := d[i].Value.(type) {
		case bson.D:
			if len(parts) > 1 {
				d[i].Value = cut(v, parts[1:], op)
			}
		case bson.A:
			if len(parts) == 1 {
				from, to := op.skip, op.skip+op.limit
				if op.limit < 0 {
					from, to = len(v)+op.limit, len(v)
				} else if op.skip < 0 {
					from = max(0, len(v)+op.skip)
					to = from + op.limit
				}
				from, to = min(max(from, 0), len(v)), min(to, len(v))
				d[i].Value = append(bson.A{}, v[from:to]...)
				continue
			}
			v = slices.Clone(v)
			for k := range v {
				if e, ok := v[k].(bson.D); ok {
					v[k] = cut(e, parts[1:], op)
				}
			}
			d[i].Value = v
		}
	}
	return d
}

type generator struct{ *rand.Rand }

func (g *generator) name() string { return []string{"a", "b", "c", "0"}[g.IntN(4)] }

func (g *generator) value(depth int) any {
	switch n := g.IntN(6); {
	case n < 2 && depth > 0:
		a := bson.A{}
		for range g.IntN(4) {
			a = append(a, g.value(depth-1))
		}
		return a
	case n < 4 && depth > 0:
		return g.document(depth - 1)
	case n == 4:
		return nil
	}
	return int32(g.IntN(4))
}

func (g *generator) document(depth int) bson.D {
	d := bson.D{}
	for _, i := range g.Perm(4)[:g.IntN(5)] {
		d = append(d, bson.E{Key: []string{"a", "b", "c", "0"}[i], Value: g.value(depth)})
	}
	return d
}

// projection draws the two forms of a projection. It may be one that Parse refuses.
func (g *generator) projection() (*naive, bson.D, *int) {
	n := &naive{inclusive: g.IntN(2) == 0}
	spec := bson.D{}
	var index *int
	decided := false
	for range 1 + g.IntN(4) {
		path := g.name()
		for g.IntN(2) == 0 {
			path += "." + g.name()
		}
		var op, v any
		switch k := g.IntN(10); {
		case k == 0:
			s := sliceOp{g.IntN(7) - 3, 1 + g.IntN(3)}
			op, v = s, bson.D{{Key: "$slice", Value: bson.A{s.skip, s.limit}}}
		case k == 1:
			s := sliceOp{0, g.IntN(7) - 3}
			op, v = s, bson.D{{Key: "$slice", Value: s.limit}}
		case k == 2:
			path, _, _ = strings.Cut(path, ".")
			e := elemOp{int32(g.IntN(3))}
			op, v = e, bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$gt", Value: e.gt}}}}
		case k == 3 && n.inclusive:
			e := exprOp{g.name()}
			op, v, decided = e, "$"+e.name, true
		case k == 4 && n.inclusive && index == nil:
			index = new(int)
			op, v, decided = index, 1, true
		default:
			op, v, decided = n.inclusive, n.inclusive, true
		}
		n.leaves = append(n.leaves, leaf{path, op})
		if op == any(index) {
			path += ".$"
		}
		for g.IntN(3) == 0 && strings.Contains(path, ".") && !strings.HasSuffix(path, "$") {
			// The last part as a projection below: {a: {b: 1}}.
			i := strings.LastIndexByte(path, '.')
			v, path = bson.D{{Key: path[i+1:], Value: v}}, path[:i]
		}
		spec = append(spec, bson.E{Key: path, Value: v})
	}
	if !decided {
		n.inclusive = slices.ContainsFunc(n.leaves, func(l leaf) bool { _, ok := l.op.(elemOp); return ok })
	}
	return n, spec, index
}

func TestAgainstNaive(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	g := &generator{rand.New(rand.NewPCG(s, 0))}
	query, err := match.Parse(value.MustParseDocument("{q: 1}"), match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opts := options()
	opts.Query = query
	refused, mismatched := 0, 0
	for range *cases / 10 {
		n, spec, index := g.projection()
		raw, err := bson.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := project.Parse(raw, opts)
		if err != nil {
			if !mongoerr.Is(err, mongoerr.LocationProjectPathCollision) && !mongoerr.Is(err, mongoerr.LocationProjectPathRemaining) &&
				!mongoerr.Is(err, 31255) && !mongoerr.Is(err, 31256) {
				t.Fatalf("-seed %d: %s: %v", s, text(raw), err)
			}
			refused++
			continue
		}
		for range 10 {
			doc := g.document(3)
			wanted := naive{inclusive: n.inclusive}
			at := g.IntN(4)
			for _, l := range n.leaves {
				if l.op == any(index) {
					l.op = position{at}
				}
				wanted.leaves = append(wanted.leaves, l)
			}
			q := bson.A{0, 0, 0, 0}
			q[at] = 1
			doc = append(doc, bson.E{Key: "q", Value: q})
			rawDoc, err := bson.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Apply(nil, rawDoc)
			want, ok := wanted.project(doc)
			if !ok {
				if mismatched++; !mongoerr.Is(err, 51247) {
					t.Fatalf("-seed %d: %s of %s: no error but %s, %v", s, text(raw), text(rawDoc), text(got), err)
				}
				continue
			}
			rawWant, e := bson.Marshal(want)
			if e != nil {
				t.Fatal(e)
			}
			if err != nil || string(got) != string(rawWant) {
				t.Fatalf("-seed %d: %s of\n%s\ngot  %s, %v\nwant %s", s, text(raw), text(rawDoc), text(got), err, text(rawWant))
			}
			if err := value.Validate(got); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of %d projections refused, %d positions not there", refused, *cases/10, mismatched)
}

func text(doc bson.Raw) string { return value.Text(value.Document(doc)) }

func BenchmarkInclusion(b *testing.B) { benchmark(b, `{n3: 1, "sub5.x": 1}`) }
func BenchmarkExclusion(b *testing.B) { benchmark(b, `{n3: 0, "sub5.x": 0}`) }

func benchmark(b *testing.B, spec string) {
	d := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	for i := range 10 {
		n := string(rune('0' + i))
		d = append(d, bson.E{Key: "n" + n, Value: int32(i)}, bson.E{Key: "name" + n, Value: strings.Repeat("x", 50)},
			bson.E{Key: "sub" + n, Value: bson.D{{Key: "x", Value: 1.5}}})
	}
	doc, err := bson.Marshal(d)
	if err != nil {
		b.Fatal(err)
	}
	p, err := project.Parse(value.MustParseDocument(spec), project.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	var dst []byte
	for b.Loop() {
		if dst, err = p.Apply(dst[:0], doc); err != nil {
			b.Fatal(err)
		}
	}
}
