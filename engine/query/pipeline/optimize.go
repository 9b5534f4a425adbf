package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// optimize rearranges the stages so that fewer documents go through costly ones:
//
//   - A $match, or those of its conditions for which it is safe, moves before stages that do not touch what it looks at: $sort,
//     $addFields, $project, $unset, $unwind, $lookup, $graphLookup.
//   - Conditions on the _id of a $group move before it, if that is a field.
//   - $skip and $limit move before stages that make one document of each: $project, $addFields, $unset, $replaceRoot, $lookup, $graphLookup.
//   - Neighbours of one kind become one; a $sort learns how many of its documents a $limit behind it wants; a $lookup takes in the $unwind
//     of what it adds.
//
// The documents and their order stay the same; an error that only dropped documents would have met may not come up.
func (p *parser) optimize(r *Pipeline) {
	for changed := true; changed; {
		changed = false
		for i := 0; i+1 < len(r.steps); i++ {
			if p.pair(r, i) {
				changed = true
				break
			}
		}
	}
	for i := range r.steps {
		r.keep(i)
	}
}

// pair looks at stage i and the one behind, and says whether it changed something.
func (p *parser) pair(r *Pipeline, i int) bool {
	a, b := r.steps[i], r.steps[i+1]
	switch second := b.stage.(type) {
	case *matchStage:
		if first, ok := a.stage.(*matchStage); ok && first.rate == 1 && second.rate == 1 {
			f, err := p.both(first.filter.Raw(), second.filter.Raw())
			if err != nil {
				return false
			}
			r.steps[i] = matchStep(first, f)
			r.steps = slices.Delete(r.steps, i+1, i+2)
			return true
		}
		if group, ok := a.stage.(*groupStage); ok && second.rate == 1 {
			return p.liftID(r, i, group, second)
		}
		return second.rate == 1 && r.lift(i, second)
	case *unwindStage:
		first, ok := a.stage.(*lookupStage)
		// The variables of let must not be set anew before the foreign documents are at their end.
		if !ok || first.unwind != nil || first.vars != nil || first.constant || !slices.Equal(first.as, second.path) {
			return false
		}
		both := *first
		both.unwind = second
		arg := newDocument()
		for it := value.Elements(a.arg.Value); it.Next(); {
			arg.field(string(it.Name()), it.Value())
		}
		arg.field("unwinding", b.arg)
		r.steps[i] = step{a.name, value.Document(arg.raw()), &both}
		r.steps = slices.Delete(r.steps, i+1, i+2)
		return true
	case *limitStage:
		if first, ok := a.stage.(*limitStage); ok {
			r.steps[i].stage = &limitStage{min(first.n, second.n)}
			r.steps[i].arg = value.Int64(min(first.n, second.n))
			r.steps = slices.Delete(r.steps, i+1, i+2)
			return true
		}
		return r.swapIfOneToOne(i)
	case *skipStage:
		if first, ok := a.stage.(*skipStage); ok && first.n+second.n >= 0 {
			r.steps[i].stage = &skipStage{first.n + second.n}
			r.steps[i].arg = value.Int64(first.n + second.n)
			r.steps = slices.Delete(r.steps, i+1, i+2)
			return true
		}
		return r.swapIfOneToOne(i)
	}
	return false
}

func matchStep(like *matchStage, f *match.Filter) step {
	return step{"$match", value.Document(f.Raw()), &matchStage{filter: f, rate: 1, c: like.c}}
}

// swapIfOneToOne moves stage i+1 before stage i if that makes one document of each.
func (r *Pipeline) swapIfOneToOne(i int) bool {
	switch s := r.steps[i].stage.(type) {
	case *projectStage, *addStage, *rootStage, *graphStage:
	case *lookupStage:
		if s.unwind != nil {
			return false
		}
	default:
		return false
	}
	r.steps[i], r.steps[i+1] = r.steps[i+1], r.steps[i]
	return true
}

// liftID moves those conditions of the $match behind a $group that are about its _id before it, if that is a field of the document
// and they hold for what has a value: there null stands for what is missing, too.
func (p *parser) liftID(r *Pipeline, i int, group *groupStage, m *matchStage) bool {
	field, ok := group.id.Field()
	if !ok || strings.IndexByte(field, '.') >= 0 {
		return false
	}
	var before *match.Filter
	var behind []match.Node
	for _, n := range conjuncts(m.filter) {
		raw := m.filter.With(n).Raw()
		v := value.Lookup(raw, "_id")
		if !holdsForValues(n) || value.Count(raw) != 1 || v.Type == 0 {
			behind = append(behind, n)
			continue
		}
		d := newDocument()
		d.field(field, v)
		var err error
		if before == nil {
			before, err = p.filter(d.raw())
		} else {
			before, err = p.both(before.Raw(), d.raw())
		}
		if err != nil {
			return false
		}
	}
	if before == nil {
		return false
	}
	r.replace(i, m, before, behind)
	return true
}

// conjuncts are the tests that all must pass.
func conjuncts(f *match.Filter) []match.Node {
	if and, ok := f.Root().(*match.And); ok {
		return and.Nodes
	}
	return []match.Node{f.Root()}
}

// replace puts some tests of the $match behind stage i before it, and leaves the others.
func (r *Pipeline) replace(i int, m *matchStage, before *match.Filter, behind []match.Node) {
	lifted := matchStep(m, before)
	if behind == nil {
		r.steps[i], r.steps[i+1] = lifted, r.steps[i]
		return
	}
	r.steps[i+1] = matchStep(m, m.filter.With(match.Conjunction(behind...)))
	r.steps = slices.Insert(r.steps, i, lifted)
}

// holdsForValues says whether nothing that is null or missing passes a test, which is about values only.
func holdsForValues(n match.Node) bool {
	switch n := n.(type) {
	case *match.And:
		return !slices.ContainsFunc(n.Nodes, func(n match.Node) bool { return !holdsForValues(n) })
	case *match.Comparison:
		return !value.IsNullish(n.Value) && value.RankOf(n.Value.Type) != value.RankMinKey && value.RankOf(n.Value.Type) != value.RankMaxKey
	case *match.In:
		return !slices.ContainsFunc(n.Values, value.IsNullish)
	case *match.Regex:
		return true
	}
	return false
}

// lift moves what it can of the $match behind stage i before it.
func (r *Pipeline) lift(i int, m *matchStage) bool {
	safe := r.untouched(i)
	if safe == nil {
		return false
	}
	var before, behind []match.Node
	for _, n := range conjuncts(m.filter) {
		paths, ok := pathsOf(n)
		for _, path := range paths {
			ok = ok && safe(path)
		}
		if ok {
			before = append(before, n)
		} else {
			behind = append(behind, n)
		}
	}
	if before == nil {
		return false
	}
	r.replace(i, m, m.filter.With(match.Conjunction(before...)), behind)
	return true
}

// untouched says which paths have the same values before and behind stage i, where the stage drops and makes no documents for other
// reasons than those paths'; nil if nothing may move over it.
func (r *Pipeline) untouched(i int) func(path string) bool {
	apart := func(touched ...string) func(string) bool {
		return func(path string) bool {
			for _, t := range touched {
				if overlap(t, path) {
					return false
				}
			}
			return true
		}
	}
	switch s := r.steps[i].stage.(type) {
	case *sortStage:
		return func(string) bool { return true }
	case *addStage:
		var touched []string
		for _, path := range s.paths {
			touched = append(touched, head(path))
		}
		return apart(touched...)
	case *projectStage:
		if s.excludes != nil {
			return apart(s.excludes...)
		}
		return s.includes
	case *unwindStage:
		return apart(strings.Join(s.path, "."), head(strings.Join(s.index, ".")))
	case *lookupStage:
		if s.unwind != nil {
			return apart(s.as[0], head(strings.Join(s.unwind.index, ".")))
		}
		return apart(s.as[0])
	case *graphStage:
		return apart(s.as[0])
	}
	return nil
}

// head is the first part of a path. Setting a.b may make a document of an a that was none, so that a.c is another, too.
func head(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}

// includes says whether an inclusion keeps a path as it is: its first part is kept whole.
func (s *projectStage) includes(path string) bool {
	name := head(path)
	v := value.Lookup(s.raw, name)
	if name == "_id" && v.Type == 0 {
		return true
	}
	return (v.Type == bson.TypeBoolean || value.IsNumber(v.Type)) && value.Truth(v)
}

// overlap says whether one path is the other or leads into it.
func overlap(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// pathsOf are the paths that a test looks at; false if it may look at others. Parts that are numbers may be positions in arrays,
// which stages do not know of: for them the answer is false too.
func pathsOf(n match.Node) ([]string, bool) {
	var path string
	var nodes []match.Node
	switch n := n.(type) {
	case *match.Always:
		return nil, true
	case *match.And:
		nodes = n.Nodes
	case *match.Or:
		nodes = n.Nodes
	case *match.Nor:
		nodes = n.Nodes
	case *match.Not:
		nodes = []match.Node{n.Node}
	case *match.Bits:
		path = n.Path
	case *match.Comparison:
		path = n.Path
	case *match.ElemMatchObject:
		path = n.Path
	case *match.ElemMatchValue:
		path = n.Path
	case *match.Exists:
		path = n.Path
	case *match.In:
		path = n.Path
	case *match.Mod:
		path = n.Path
	case *match.Regex:
		path = n.Path
	case *match.Size:
		path = n.Path
	case *match.Type:
		path = n.Path
	default: // $expr, $jsonSchema
		return nil, false
	}
	if nodes == nil {
		for part := range strings.SplitSeq(path, ".") {
			if part == "" || part[0] >= '0' && part[0] <= '9' {
				return nil, false
			}
		}
		return []string{path}, true
	}
	var all []string
	for _, n := range nodes {
		paths, ok := pathsOf(n)
		if !ok {
			return nil, false
		}
		all = append(all, paths...)
	}
	return all, true
}

// keep tells a $sort at i how many documents the stages behind it want at most.
func (r *Pipeline) keep(i int) {
	s, ok := r.steps[i].stage.(*sortStage)
	if !ok {
		return
	}
	skip := int64(0)
	for _, next := range r.steps[i+1:] {
		switch next := next.stage.(type) {
		case *skipStage:
			skip += next.n
		case *limitStage:
			if skip+next.n > 0 {
				s.keep = skip + next.n
			}
			return
		default:
			return
		}
	}
}
